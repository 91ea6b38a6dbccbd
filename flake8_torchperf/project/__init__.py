"""Modules of a project: found, indexed by name and resolved; never imported."""
