"""Parts by name: the catalogue, parts of installed packages, and compiled twins."""
