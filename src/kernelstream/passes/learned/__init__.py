"""Random features whose frequencies are learned (RRF)."""
