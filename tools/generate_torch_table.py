"""Generates `flake8_torchperf/knowledge/torch_table.json` from the installed torch.

    python tools/generate_torch_table.py            writes the table
    python tools/generate_torch_table.py --check    exits with 1 where the committed table differs

Run it with the newest torch first. With an older one it writes, or checks, the entries that differ
in that release: `tools/torch_table/releases/VERSION.json`. Without the newest torch, an older one
brings what is new in the supplement or the measurements into the table:

    python tools/generate_torch_table.py --carry

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

from generated_file import Instead, main  # noqa: E402
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


def carry() -> tuple[Path, str]:
    """Return the table's file, with what an older torch shows to be new since its last run.

    Ends with one line for a torch that is as new as the table, or has no recorded differences.
    """
    newest, older = json.loads(TABLE.read_bytes()), assemble()
    path = releases.path_of(older["torch"])
    if not releases.is_older(older["torch"], newest["torch"]) or not path.is_file():
        raise SystemExit(f"--carry needs a torch of {releases.FOLDER}, not {older['torch']}")
    recorded = json.loads(path.read_bytes())["differs"]
    changed = releases.carried(releases.differences(older, newest), recorded)
    return TABLE, render(releases.with_answers(newest, changed))


if __name__ == "__main__":
    CARRY = Instead("bring what an older torch shows to be new into the table", carry)
    sys.exit(main("Regenerate the table of torch.", lambda: target(assemble()), {"--carry": CARRY}))
