"""The tools for tests and notebooks: budgets, the pytest plugin, the text report.

`noqa` finds the lines that a budget leaves alone; `confirm` and `run` use it too.
"""
