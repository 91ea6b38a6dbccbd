"""Weigh evidence by a table of the test's own: the package's numbers change whenever it is fitted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

from flake8_torchperf.judgement.worth import model


@contextmanager
def weighed(weights: Mapping[str, float], intercept: float = 0.0) -> Iterator[None]:
    """Use this table of weights."""
    rows = [f"{name!r} = {weight}" for name, weight in weights.items()]
    head = [f"intercept = {intercept}", "threshold = 0.5", "[weights]"]
    with TemporaryDirectory() as folder:
        table = Path(folder, "worth.toml")
        table.write_text("\n".join([*head, *rows]), encoding="utf-8")
        with mock.patch.object(model, "TABLE", table):
            model.weights.cache_clear()
            try:
                yield
            finally:
                model.weights.cache_clear()
