"""Findings cached between runs, by everything that they depend on."""
