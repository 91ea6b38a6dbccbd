"""Which functions are analysed, in which setting, and what their callers add."""
