"""First-order learning on explicit features."""
