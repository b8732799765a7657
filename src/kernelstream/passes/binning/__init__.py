"""Random binning features: cells, and the solvers and the pass on them."""
