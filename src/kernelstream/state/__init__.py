"""What every model's state has in common: what it may hold, whose turn it is, and how a call is undone."""
