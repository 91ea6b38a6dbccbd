"""Imports that start in a folder which a module puts on the search path."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from check_run import check
from test_cache import analysed

from flake8_torchperf.project.texts.text_search import TextSearch

if TYPE_CHECKING:
    from pathlib import Path

# What a script in `tools/` does -> the folder, below the project, in which `import ops` starts.
SCRIPTS = {
    "a literal": ('sys.path.append("lib")', "lib"),
    "above": ('sys.path.insert(0, "../lib")', "lib"),
    "joined": ('sys.path.append(os.path.join(os.path.dirname(__file__), "..", "lib"))', "lib"),
    "a name": ('root = os.path.dirname(__file__)\nlib = osp.join(root, "lib")\nsys.path += [lib]', "lib"),
    "a function": ('def add(path):\n    sys.path.insert(0, path)\n\n\nadd(join(here, "lib"))', "lib"),
    "a loop": ('for one in ("lib", "data"):\n    sys.path.append(one)', "lib"),
    "pathlib": ('sys.path.append(str(Path(__file__).parents[1] / "lib"))', "lib"),
    "assigned": ('sys.path = ["lib", *sys.path]', "lib"),
    "site": ('site.addsitedir("lib")', "lib"),
    "the folder itself": ('sys.path.append(".")', ""),
    "another literal": ('sys.path.append(HERE)\nprint("lib")', ""),
    "nothing": ('print("lib")', ""),
    "two folders": ('sys.path += ["lib", "old/lib"]', ""),
    "no Python": ('sys.path.append("lib"', ""),
}  # fmt: skip


def written(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.mark.parametrize(("script", "start"), SCRIPTS.values(), ids=SCRIPTS)
def test_where_an_import_starts(script: str, start: str, tmp_path: Path) -> None:
    files = {"tools/run.py": script, "lib/ops.py": "", "old/lib/ops/loss.py": "", "data/set.py": ""}
    written(tmp_path, files)
    texts = TextSearch([str(tmp_path / name) for name in files], f"{tmp_path}/")
    assert texts.start_on_path("ops") == (str(tmp_path / start) if start else "")
    assert texts.start_on_path("numpy") == ""


NET = """\
import sys

import torch

sys.path.append("lib")

from ops import total


def train(model, loader, optimizer):
    for x in loader:
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        print(total(loss))


if __name__ == "__main__":
    train(1, 2, 3)
"""


def test_a_change_of_the_search_path_is_looked_at(tmp_path: Path) -> None:
    project, cache = tmp_path / "project", tmp_path / "cache"
    ops = "import torch\n\n\ndef total(x: torch.Tensor):\n    return x.sum().item()\n"
    written(project, {"requirements.txt": "", "train.py": NET, "lib/ops.py": ops})
    assert "./lib/ops.py:5:" in check(cwd=project, cache=cache).output
    changed = NET.replace('append("lib")', 'append("bin")')
    written(project, {"train.py": changed})
    assert "./lib/ops.py" in analysed(project, cache)
