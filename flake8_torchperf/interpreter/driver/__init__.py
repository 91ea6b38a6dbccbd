"""Interprets functions and modules, and fills the tables that evaluation uses."""
