"""Odd inputs for the linter: mutated torch sources and generated modules, with checks of results.

`tools/fuzz.py` runs them for any time; `tests/lint/bounds/test_fuzz.py` for a minute.
"""
