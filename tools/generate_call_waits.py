"""Generates `flake8_torchperf/knowledge/call_waits.json` from the sources of the installed torch.

    python tools/generate_call_waits.py             writes the table
    python tools/generate_call_waits.py --check     exits with 1 where the committed table differs

The linter itself finds the lines of torch's functions that wait; the tests on the way to such a
line give the arguments that make it wait. The output is the same on every run with the same torch.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from call_waits.public import assemble  # noqa: E402
from generated_file import main  # noqa: E402

TABLE = ROOT / "flake8_torchperf" / "knowledge" / "call_waits.json"


def render(table: dict[str, Any]) -> str:
    """Return compact JSON with one line per function or class."""
    lines = ["{", f'"torch":{json.dumps(table["torch"])},']
    for section in ("functions", "classes"):
        lines.append(f'"{section}":{{')
        entries = [
            f"{json.dumps(name)}:{json.dumps(value, separators=(',', ':'))}"
            for name, value in sorted(table[section].items())
        ]
        lines.append(",\n".join(entries))
        lines.append("},")
    lines.append(f'"names":{json.dumps(table["names"])}')
    lines.append("}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(
        main("Find which calls of torch's functions wait.", lambda: (TABLE, render(assemble())))
    )
