"""Unsafe fixes of what is read and written through a mask."""
