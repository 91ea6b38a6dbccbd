"""Fixes that read the numbers of a loop, or of several uses, at once."""
