"""Unsafe fixes of reads and writes through a mask."""
