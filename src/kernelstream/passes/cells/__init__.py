"""Tables of cells: the pass of the learners on grids."""
