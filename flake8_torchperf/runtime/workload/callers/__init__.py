"""The calls that led to each wait."""
