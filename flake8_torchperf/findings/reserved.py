"""Codes that no rule page may take. Light, as every start imports it."""

from __future__ import annotations

# The linter itself failed in a file.
INTERNAL_ERROR = "TPF900"
RESERVED = (INTERNAL_ERROR,)
