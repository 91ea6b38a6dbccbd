"""Facts about loops and what they collect, on the ast; they import neither libcst nor torch."""
