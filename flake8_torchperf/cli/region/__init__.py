"""Records part of a program from within it: a region of a long job, or a cell of a notebook."""
