"""Fixes that change something that their page names; applied with ``--unsafe``."""
