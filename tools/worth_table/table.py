"""The text of `worth.toml`."""

from __future__ import annotations

from collections import Counter

from worth_table.evaluation import VERDICTS, Pairs
from worth_table.regression import Model


def render(model: Model, least: float, pairs: Pairs) -> str:
    """Return the table of a model, the suggested limit, and what it is fitted to."""
    counts = Counter(place.verdict for _, place in pairs)
    listed = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS)
    sources = len({application for application, _ in pairs})
    rounded = {name: round(weight, 2) for name, weight in sorted(model.weights.items())}
    rows = [f'"{name}" = {weight:.2f}' for name, weight in rounded.items() if weight]
    return f"""\
# The weights from which the worth of a finding is computed (see worth/fitted.py).
# Written by `python tools/fit_worth.py fit`; do not edit.
# Fitted to {len(pairs)} judged places ({listed}) in {sources} applications and libraries.
intercept = {model.intercept:.2f}
# With `--min-worth` of this, nine in ten findings that are worth telling are told.
threshold = {least:.3f}

[weights]
""" + "".join(f"{row}\n" for row in rows)
