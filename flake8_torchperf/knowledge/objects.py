"""Classes of other packages whose objects are known by what they are made of: dicts, namespaces.

The classes are data (`objects.toml`). The file is read when the first class is asked for.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from flake8_torchperf.knowledge.toml_file import read_toml

OBJECTS_PATH: Final = Path(__file__).with_name("objects.toml")
# The kinds whose objects are dicts.
DICTS: Final = frozenset(("dict", "attributes", "output", "tensors"))


def object_kind(name: str) -> str:
    """Return the kind of a class or decorator, by its qualified name; "" for others."""
    return _kinds().get(name, "")


@cache
def _kinds() -> dict[str, str]:
    return {name: kind for kind, row in read_toml(OBJECTS_PATH).items() for name in row["classes"]}
