"""Finds which of torch's own functions wait, and for which arguments, by walking its sources."""
