"""Unsafe fixes of values that are read on the host."""
