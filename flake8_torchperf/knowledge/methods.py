"""Torch's methods by class: those that read values, copy to the host, cast, join, ...

The classes are data (`methods.toml`). The file is read when the first class is asked for.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from flake8_torchperf.knowledge.toml_file import read_toml

if TYPE_CHECKING:
    from collections.abc import Mapping

METHODS_PATH: Final = Path(__file__).with_name("methods.toml")


@cache
def methods_of(*classes: str) -> frozenset[str]:
    """Return the names of the methods in any of these classes. Raises `KeyError` for no class."""
    found: set[str] = set()
    for name in classes:
        row = _classes()[name]
        found |= methods_of(*row.get("includes", ()))
        found |= set(row["methods"])
    return frozenset(found)


@cache
def kinds_of(name: str) -> Mapping[str, str]:
    """Return the methods of a class with the kind of each one's result: `long` gives "int"."""
    methods = _classes()[name]["methods"]
    return MappingProxyType(dict(methods))


@cache
def casts_to(kind: str) -> frozenset[str]:
    """Return the methods that cast to a dtype of this kind."""
    return frozenset(name for name, given in kinds_of("casts").items() if given == kind)


@cache
def _classes() -> dict[str, Any]:
    return read_toml(METHODS_PATH)
