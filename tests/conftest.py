"""Helpers that tests of several folders import lie beside this file, which puts its folder on the path."""
