"""What is true of every model's state: what it may hold, whose turn it is, and how a call is taken back."""
