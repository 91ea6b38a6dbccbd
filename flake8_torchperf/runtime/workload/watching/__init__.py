"""Watches what one process, or a region of a program, does."""
