"""Types that the source states: annotations, docstrings, base classes, tests."""
