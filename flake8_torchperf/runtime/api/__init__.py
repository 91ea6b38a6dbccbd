"""What a test or a notebook uses: budgets, the pytest plugin, the text report.

`noqa` tells which lines a budget leaves alone; `confirm` and `run` ask it too.
"""
