"""The lines of new code: their length, their breaks and their quotes."""
