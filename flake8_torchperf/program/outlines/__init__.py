"""Outlines of modules: their parts, how they are made, kept and asked."""
