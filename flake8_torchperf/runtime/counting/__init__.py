"""Counts dispatches, host reads and synchronisations while code runs."""
