"""Recursions over rows, one folder each: the readable specification (python) and its fast twin (native)."""
