"""Searches in the texts of a project, which are not parsed for them."""
