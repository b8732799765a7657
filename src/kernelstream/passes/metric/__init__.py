"""Kernel functions at some rows in a learned metric."""
