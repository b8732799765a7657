"""Rows unlike those before, without labels."""
