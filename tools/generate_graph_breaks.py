"""Generates `flake8_torchperf/knowledge/graph_breaks.json` from the installed torch.

    python tools/generate_graph_breaks.py            writes the table
    python tools/generate_graph_breaks.py --check    exits with 1 where the committed table differs

Every type of torch's registry of graph breaks is in the table: whether this torch's tracer still
raises it, and, where `torch_table/graph_breaks.toml` says that source text shows it, the rule and
the calls that do.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

from generated_file import ROOT, main

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TABLE = ROOT / "flake8_torchperf" / "knowledge" / "graph_breaks.json"
SEEN = ROOT / "tools" / "torch_table" / "graph_breaks.toml"


def seen() -> list[dict[str, Any]]:
    """Return the entries that source text can show."""
    entries: list[dict[str, Any]] = tomllib.loads(SEEN.read_text(encoding="utf-8"))["seen"]
    return entries


def registry() -> dict[str, list[str]]:
    """Return by identifier the names of its type, newest first, from the installed torch."""
    folder = dynamo()
    text = (folder / "graph_break_registry.json").read_text(encoding="utf-8")
    return {
        identifier: list(dict.fromkeys(entry["Gb_type"] for entry in entries))
        for identifier, entries in json.loads(text).items()
    }


def dynamo() -> Path:
    """Return the folder of the installed torch's tracer; torch itself is not imported."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise SystemExit("torch is not installed")
    return Path(spec.origin).parent / "_dynamo"


def build() -> dict[str, Any]:
    """Return the table. Raises SystemExit where an entry names a type that the registry lacks."""
    source = "\n".join(path.read_text(encoding="utf-8") for path in sorted(dynamo().rglob("*.py")))
    types = registry()
    known = {name: identifier for identifier, names in types.items() for name in names}
    rules: dict[str, str] = {}
    calls: dict[str, list[str]] = {}
    for entry in seen():
        identifier = known.get(entry["type"], "")
        if not identifier and entry["type"] not in source:
            raise SystemExit(f"no such graph break in this torch: {entry['type']!r}")
        if identifier:
            rules.setdefault(identifier, entry["rule"])
        for name in entry.get("calls", ()):
            calls[name] = [entry["operation"], entry["rule"], identifier]
    table = {
        identifier: {
            "type": names[0],
            "raised": any(name in source for name in names),
            "rule": rules.get(identifier, ""),
        }
        for identifier, names in types.items()
    }
    return {"torch": importlib.metadata.version("torch"), "calls": calls, "types": table}


def render(table: dict[str, Any]) -> str:
    """Return JSON with one line per entry, so that a new torch release is a readable diff."""
    lines = ["{", f'"torch": {json.dumps(table["torch"].partition("+")[0])},']
    for section in ("calls", "types"):
        entries = sorted(table[section].items())
        rows = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in entries]
        lines.append(f'"{section}": {{')
        lines.append(",\n".join(rows))
        lines.append("}," if section == "calls" else "}")
    lines.append("}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main("Regenerate the table of graph breaks.", lambda: (TABLE, render(build()))))
