"""Doubly stochastic functional gradients: blocks of features made when needed, and the recursions on them."""
