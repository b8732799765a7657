"""Kernels made of kernels."""
