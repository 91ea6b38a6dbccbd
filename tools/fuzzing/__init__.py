"""Odd inputs for the linter: real torch sources mutated, whole modules made up, and what must hold.

`tools/fuzz.py` runs it for as long as one likes; `tests/lint/test_fuzz.py` for a minute.
"""
