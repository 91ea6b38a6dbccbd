"""Facts about torch: a table generated from torch itself, and a cited supplement."""
