"""Fixes that are shown, and written only where ``--select`` names their code."""
