"""Folds the hand-written, cited supplement into the generated entries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch_table.model import Entry


def fold(
    functions: Mapping[str, Entry],
    methods: Mapping[str, Entry],
    attributes: dict[str, str],
    classes: dict[str, Any],
    aliases: dict[str, str],
) -> None:
    pass
