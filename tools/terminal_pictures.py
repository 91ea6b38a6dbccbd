"""Draws the output of `torchperf check` and `torchperf run` as SVG files for the README.

    python tools/terminal_pictures.py      writes docs/_static/check.svg and run.svg

The pictures are made by rich from what the commands print, so they need torch and rich.
"""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text
from update_readme import EXAMPLE, ROOT, TRAINING, torchperf_output

FOLDER = ROOT / "docs" / "_static"
WIDTH = 142


def picture(title: str, command: str, printed: str) -> str:
    """Return a terminal with a command and its output, as SVG."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text(f"$ {command}", style="bold"))
    console.print(Text.from_ansi(printed.rstrip("\n")))
    return console.export_svg(title=title, unique_id="torchperf")


def pictures() -> dict[str, str]:
    """Return the pictures by their file names."""
    check = ["check", "--no-cache", "--exit-zero", "--format=grouped", EXAMPLE]
    shown = f"torchperf check --format=grouped {EXAMPLE}"
    found = {"check.svg": picture("torchperf check", shown, torchperf_output(check, ROOT).stdout)}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "train.py").write_text(TRAINING, encoding="utf-8")
        ran = torchperf_output(["run", "train.py"], Path(folder)).stderr.strip("\n")
    found["run.svg"] = picture("torchperf run", "torchperf run train.py", ran)
    return found


if __name__ == "__main__":
    for name, drawn in pictures().items():
        (FOLDER / name).write_text(drawn, encoding="utf-8")
    sys.exit(0)
