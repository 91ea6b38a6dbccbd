"""Inputs for a function under examination: described, chosen, built."""
