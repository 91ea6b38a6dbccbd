"""Weigh evidence by a table of the test's own: the package's numbers change whenever it is fitted."""

from __future__ import annotations

import atexit
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

from flake8_torchperf.judgement.worth import fitted

# The package's own table, which processes of tests replace.
PUBLISHED = fitted.TABLE


def without_threshold() -> None:
    """From here on, let the default scope tell findings of whatever worth in this process.

    Most tests ask what is found. Its worth changes whenever the weights are fitted anew.
    """
    text = PUBLISHED.read_text(encoding="utf-8")
    lines = [row for row in text.splitlines() if not row.startswith("threshold")]
    folder = TemporaryDirectory()
    table = Path(folder.name, "worth.toml")
    table.write_text("\n".join(["threshold = 0.0", *lines]), encoding="utf-8")
    atexit.register(folder.cleanup)
    fitted.TABLE = table
    fitted.weights.cache_clear()


@contextmanager
def weighed(
    weights: Mapping[str, float], intercept: float = 0.0, threshold: float = 0.0
) -> Iterator[None]:
    """Use this table of weights."""
    rows = [f"{name!r} = {weight}" for name, weight in weights.items()]
    head = [f"intercept = {intercept}", f"threshold = {threshold}", "[weights]"]
    with TemporaryDirectory() as folder:
        table = Path(folder, "worth.toml")
        table.write_text("\n".join([*head, *rows]), encoding="utf-8")
        with _weighed_by(table):
            yield


@contextmanager
def as_published() -> Iterator[None]:
    """Use the package's own table, with its threshold."""
    with _weighed_by(PUBLISHED):
        yield


@contextmanager
def _weighed_by(table: Path) -> Iterator[None]:
    with mock.patch.object(fitted, "TABLE", table):
        fitted.weights.cache_clear()
        try:
            yield
        finally:
            fitted.weights.cache_clear()
