"""Generates `flake8_torchperf/knowledge/torch_table.json` from the installed torch.

    python tools/generate_torch_table.py            writes the table
    python tools/generate_torch_table.py --check    exits with 1 where the committed table differs

Run it with the newest torch first. With an older one it writes, or checks, the entries that differ
in that release: `tools/torch_table/releases/VERSION.json`.

Sources, in this order: torch's stubs, its Python annotations, the operator registry's schemas,
docstrings; then every operation is called with small samples to see the dtype, rank and form of its
result. The output is the same on every run with the same torch.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from generated_file import main  # noqa: E402
from torch_table import releases  # noqa: E402
from torch_table.assemble import assemble  # noqa: E402

TABLE = ROOT / "flake8_torchperf" / "knowledge" / "torch_table.json"


def render(table: dict[str, Any]) -> str:
    """Return compact JSON with a line per entry, so that a new torch release is a readable diff."""
    lines = ["{", *(f'"{key}":{json.dumps(table[key])},' for key in ("torch", "measured"))]
    sections = ("functions", "methods", "attributes", "classes", "aliases")
    for section in sections:
        entries = sorted(table[section].items())
        lines.append(f'"{section}":{{')
        for index, (name, value) in enumerate(entries):
            comma = "," if index < len(entries) - 1 else ""
            lines.append(f"{json.dumps(name)}:{json.dumps(value, separators=(',', ':'))}{comma}")
        lines.append("}," if section != sections[-1] else "}")
    lines.append("}")
    return "\n".join(lines) + "\n"


def target(table: dict[str, Any]) -> tuple[Path, str]:
    """Return the file to write for the installed torch, and its text.

    That is the table if torch is as new as the committed table, else this release's differences.
    """
    newest = json.loads(TABLE.read_bytes()) if TABLE.is_file() else table
    if not releases.is_older(table["torch"], newest["torch"]):
        return TABLE, render(table)
    found = releases.differences(table, newest)
    return releases.path_of(table["torch"]), releases.render(found, newest["torch"])


if __name__ == "__main__":
    sys.exit(main("Regenerate the table of torch.", lambda: target(assemble())))
