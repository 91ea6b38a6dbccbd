"""Facts about loops and the values that they collect; imports neither libcst nor torch."""
