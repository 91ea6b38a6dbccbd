"""Unsafe fixes that put one operation in the place of a loop."""
