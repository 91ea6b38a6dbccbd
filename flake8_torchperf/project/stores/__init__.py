"""Stores of what was learned from texts: in memory, in a module's map, and on disk."""
