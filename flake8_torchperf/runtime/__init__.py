"""Everything that runs code: the only part that imports torch."""
