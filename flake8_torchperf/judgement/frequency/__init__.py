"""Frequency: how often functions, branches and loops run."""
