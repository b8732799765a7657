"""First-order learning in the kernel expansion, with or without a budget."""
