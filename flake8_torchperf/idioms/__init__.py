"""Idioms: facts that the text of one function shows, without values."""
