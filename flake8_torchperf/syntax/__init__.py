"""The ast and source text of one module: traversal, names, positions."""
