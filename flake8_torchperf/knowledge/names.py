"""Names of code beside torch by class: what queues no work, lies on the host, counts rounds, ...

The classes are data (`names.toml`). The file is read when the first class is asked for.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from flake8_torchperf.knowledge.toml_file import read_toml

if TYPE_CHECKING:
    from collections.abc import Mapping

NAMES_PATH: Final = Path(__file__).with_name("names.toml")


def names_of(kind: str) -> frozenset[str]:
    """Return the names of a class. Raises `KeyError` for no class."""
    return _classes()[kind]


@cache
def _classes() -> Mapping[str, frozenset[str]]:
    return {kind: frozenset(row["names"]) for kind, row in read_toml(NAMES_PATH).items()}
