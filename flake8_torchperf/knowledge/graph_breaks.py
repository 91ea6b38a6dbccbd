"""Calls that end a graph of ``torch.compile``: names in, the operations of rule pages out.

Reads the generated `graph_breaks.json` (see `tools/generate_graph_breaks.py`); never imports torch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

TABLE_PATH: Final = Path(__file__).with_name("graph_breaks.json")


@lru_cache(maxsize=1)
def breaking_calls() -> Mapping[str, str]:
    """Return the operations by qualified name (``Tensor.backward`` for a method of tensors)."""
    table = json.loads(TABLE_PATH.read_text(encoding="utf-8"))
    return {name: operation for name, (operation, _rule, _identifier) in table["calls"].items()}
