"""Kernel machines on all rows at once, through centres: nearly exact, and out of core."""
