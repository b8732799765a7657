"""How unusual rows are."""
