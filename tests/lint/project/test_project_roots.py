"""Where a project's imports start, and which of its modules are searched for callers."""

from __future__ import annotations

import ast
import os
import textwrap
from pathlib import Path

import pytest
from check_run import check
from linting import HOT, expected
from test_cache import analysed

from flake8_torchperf.linter import lint
from flake8_torchperf.prefilter import concerns
from flake8_torchperf.project import file_index
from flake8_torchperf.project.import_roots import project_folder
from flake8_torchperf.project.mapped_files import read_file
from flake8_torchperf.project.module_index import read_module
from flake8_torchperf.project.resolver import Project, import_root
from flake8_torchperf.project.texts import text_search

TORCH = "import torch\nfrom torch import Tensor, nn\n"
RESAMPLE = """
    def resample(x: Tensor):
        return torch.linalg.pinv(x)  # TPF404
    """
# Set-up code that calls it: `resample` is silent by default if this is seen.
NET = """
    class Net(nn.Module):
        def __init__(self, x: Tensor):
            super().__init__()
            self.weight = resample(x)
    """
HALVE = """
    def halve(x: Tensor):
        return resample(x / 2)
    """


def written(folder: Path, files: dict[str, str]) -> None:
    for name, code in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = textwrap.dedent(code)
        path.write_text(TORCH + text if name.endswith(".py") and text else text)


def rows(path: Path) -> list[tuple[int, str]]:
    found = lint(path.read_text(), str(path), HOT)
    return sorted((f.line, f.code) for f in found)


def importing(module: str, code: str = NET) -> str:
    """Code that imports `resample` from a module."""
    return f"from {module} import resample\n{textwrap.dedent(code)}"


# The files of a project, of which the first is linted and has its callers in others.
SEEN: dict[str, dict[str, str]] = {
    "a script beside a package": {
        "utils/loss.py": RESAMPLE,
        "utils/__init__.py": "",
        "requirements.txt": "",
        "train.py": importing("utils.loss"),
    },
    "a script beside a folder without __init__.py": {
        "utils/loss.py": RESAMPLE,
        "setup.cfg": "",
        "train.py": importing("utils.loss"),
    },
    "beside a script outside any project": {
        "loss.py": RESAMPLE,
        "train.py": importing("loss"),
    },
    "a script beside a script": {
        "loss.py": RESAMPLE,
        "setup.py": "",
        "train.py": importing("loss"),
    },
    "a namespace package": {
        "megatron/core/ops.py": RESAMPLE,
        ".git/HEAD": "",
        "megatron/core/__init__.py": "",
        "megatron/training/net.py": importing("megatron.core.ops"),
    },
    "an inner folder without __init__.py": {
        "pkg/inner/ops.py": RESAMPLE,
        ".git/HEAD": "",
        "pkg/__init__.py": "",
        "pkg/net.py": importing(".inner.ops"),
    },
    "a caller in an inner folder without __init__.py": {
        "pkg/ops.py": RESAMPLE,
        ".git/HEAD": "",
        "pkg/__init__.py": "",
        "pkg/inner/net.py": importing("..ops"),
    },
    "tools beside src": {
        "src/pkg/ops.py": RESAMPLE,
        "pyproject.toml": "",
        "src/pkg/__init__.py": "",
        "tools/net.py": importing("pkg.ops"),
    },
    "by way of another script, deeper down": {
        "pkg_a/ops.py": RESAMPLE,
        "pyproject.toml": "",
        "pkg_a/__init__.py": "",
        "examples/small/mid.py": importing("pkg_a.ops", HALVE),
        "examples/small/net.py": importing("mid", NET).replace("resample", "halve"),
    },
    "in a folder whose name is no name": {
        "utils/loss.py": RESAMPLE,
        ".git/HEAD": "",
        "my-scripts/train.py": importing("utils.loss"),
    },
    "in a checkout whose top holds __init__.py": {
        "pkg/ops.py": RESAMPLE,
        "pkg/__init__.py": "",
        ".git/HEAD": "",
        "__init__.py": "",
        "train.py": importing("pkg.ops"),
    },
    "in a checkout that is a package": {
        "ops.py": RESAMPLE,
        ".git/HEAD": "",
        "__init__.py": "",
        "net.py": importing(".ops"),
    },
    "below a checkout that is a package": {
        "ops.py": RESAMPLE,
        ".git/HEAD": "",
        "__init__.py": "",
        "nets/__init__.py": "",
        "nets/net.py": importing("..ops"),
    },
    "in a package named build": {
        "pkg/ops.py": RESAMPLE,
        "pkg/__init__.py": "",
        "pkg/build/__init__.py": "",
        "pkg/build/net.py": importing("pkg.ops"),
    },
}
UNSEEN: dict[str, dict[str, str]] = {
    "in the script itself": {
        "train.py": f"{textwrap.dedent(RESAMPLE)}\n{textwrap.dedent(NET)}",
        ".git/HEAD": "",
    },
    "of another module of that name": {
        "first/ops.py": RESAMPLE,
        "pyproject.toml": "",
        "second/ops.py": RESAMPLE,
        "second/net.py": importing("ops"),
    },
    "in a virtual environment": {
        "utils/loss.py": RESAMPLE,
        ".git/HEAD": "",
        "env/pyvenv.cfg": "",
        "env/lib/train.py": importing("utils.loss"),
    },
    "in a hidden folder": {
        "utils/loss.py": RESAMPLE,
        "pyproject.toml": "",
        ".tox/train.py": importing("utils.loss"),
    },
    "in a copy": {
        "utils/loss.py": RESAMPLE,
        "pyproject.toml": "",
        "build/lib/train.py": importing("utils.loss"),
    },
    "beside an installed package": {
        "site-packages/pkg/ops.py": RESAMPLE,
        "pyproject.toml": "",
        "site-packages/pkg/__init__.py": "",
        "site-packages/other/__init__.py": "",
        "site-packages/other/net.py": importing("pkg.ops"),
    },
    "in a test": {
        "utils/loss.py": RESAMPLE,
        "pyproject.toml": "",
        "tests/test_loss.py": importing("utils.loss"),
    },
}


@pytest.mark.parametrize("files", SEEN.values(), ids=list(SEEN))
def test_callers_that_are_seen(tmp_path: Path, files: dict[str, str]) -> None:
    written(tmp_path, files)
    linted = tmp_path / next(iter(files))
    assert expected(linted.read_text())
    assert rows(linted) == []


@pytest.mark.parametrize("files", UNSEEN.values(), ids=list(UNSEEN))
def test_callers_that_are_not(tmp_path: Path, files: dict[str, str]) -> None:
    written(tmp_path, files)
    linted = tmp_path / next(iter(files))
    assert rows(linted) == expected(linted.read_text()) != []


def test_a_caller_in_the_training_script_is_named(tmp_path: Path) -> None:
    written(
        tmp_path,
        {
            "requirements.txt": "",
            "utils/loss.py": """
                def settle(pred, x: Tensor):
                    return x * torch.ones(3).to(x.device)
                """,
            "train.py": """
                from utils.loss import settle

                def train(model, loader, optimizer):
                    for x in loader:
                        loss = model(x)
                        loss.backward()
                        optimizer.step()
                        settle(loss, x)
                """,
        },
    )
    path = tmp_path / "utils" / "loss.py"
    found = lint(path.read_text(), str(path), HOT)
    assert ["called by `train`" in f.message for f in found] == [True]


def test_a_step_that_set_up_code_defines_stays_hot(tmp_path: Path) -> None:
    written(
        tmp_path,
        {
            "patches.py": """
                def patch(model):
                    def _chunked_forward(x: Tensor):
                        return x[x > 0]  # TPF402

                    model.forward = _chunked_forward
                """,
            "setup.py": "",
            "train.py": """
                from patches import patch

                class Net(nn.Module):
                    def __init__(self, model):
                        super().__init__()
                        patch(model)
                """,
        },
    )
    path = tmp_path / "patches.py"
    assert rows(path) == expected(path.read_text())


def test_a_large_project_is_searched_by_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_index, "MAX_FILES", 12)
    written(tmp_path, SEEN["tools beside src"])
    written(tmp_path, {"src/pkg/other.py": importing("pkg.ops")})
    for number in range(12):
        (tmp_path / f"picture{number}").touch()
    module, _ = read_file(str(tmp_path / "src" / "pkg" / "ops.py"))
    assert module is not None
    project = Project(module)
    assert project.is_searched_whole
    found = project.modules_that_say("resample")
    assert found is not None
    assert [Path(path).name for path in found] == ["ops.py", "other.py"]


def test_a_word_of_too_many_modules_is_searched_in_the_package(tmp_path: Path) -> None:
    written(tmp_path, SEEN["tools beside src"])
    written(tmp_path, {"src/pkg/net.py": importing("pkg.ops")})
    for number in range(text_search.MOST_MODULES):
        written(tmp_path, {f"tools/more{number}.py": importing("pkg.ops")})
    assert rows(tmp_path / "src" / "pkg" / "ops.py") == []


# The file, its text, its module's name, and the files beside it.
NAMES: list[tuple[str, str, str, list[str]]] = [
    ("core/models/gpt.py", "from core.models import x", "core.models.gpt", ["core/models/x.py"]),
    ("core/models/gpt.py", "import core.a.b", "core.models.gpt", ["core/a/b/c.py"]),
    ("core/models/gpt.py", "from models.x import y", "models.gpt", ["core/models/x.py"]),
    ("core/models/gpt.py", "from core import y", "gpt", ["core/models/x.py"]),
    ("core/models/gpt.py", "import core", "gpt", ["core/x.py"]),
    ("core/models/gpt.py", "from .x import y", "gpt", ["core/models/x.py"]),
    ("core/models/gpt.py", "from ..x import y", "core.models.gpt", ["core/x.py"]),
    ("core/models/gpt.py", "from ..x import y", "gpt", []),
    ("core/models/gpt.py", "from ..x import y", "r.core.models.gpt", ["core/x.py", "__init__.py"]),
    ("transformers/run.py", "from transformers import AutoModel", "run", []),
    ("torch/train.py", "from torch.utils.data import DataLoader", "train", ["torch/utils.py"]),
    ("logging/run.py", "from logging import handlers", "run", ["logging/handlers.py"]),
]


@pytest.mark.parametrize(("file", "text", "name", "others"), NAMES)
def test_names(tmp_path: Path, file: str, text: str, name: str, others: list[str]) -> None:
    root = tmp_path / "r"
    written(root, dict.fromkeys(others, ""))
    path = root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    module = read_module(ast.parse(text), (f"{text}\n",), path)
    assert module.name == name
    start = import_root(module)
    assert start is not None
    assert Path(start).joinpath(*module.name.split(".")).with_suffix(".py") == path.resolve()


def test_the_project_is_the_last_folder_that_can_be_a_package(tmp_path: Path) -> None:
    written(tmp_path / "r", {"pyproject.toml": "", "r/core/x.py": ""})
    module = read_module(ast.parse(""), ("from r.pyproject import x\n",), tmp_path / "r" / "x.py")
    assert module.name == "x"


def test_project_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = os.path.realpath(tmp_path)
    written(tmp_path, {"home/r/setup.py": "", "home/.git/HEAD": "", "home/r/pkg/setup.py": ""})
    written(tmp_path, {"home/r/pkg/__init__.py": "", "home/r/venv/site-packages/p/a.py": ""})
    assert project_folder(f"{root}/home/r/pkg") == f"{root}/home/r"  # a package is no project
    assert project_folder(f"{root}/home/r/other") == f"{root}/home/r"
    assert project_folder(f"{root}/home/r/venv/site-packages") == ""
    assert project_folder(f"{root}/home") == f"{root}/home"
    monkeypatch.setattr("flake8_torchperf.project.import_roots._home", lambda: f"{root}/home")
    assert project_folder(f"{root}/home/other") == f"{root}/home/other"  # where its imports start
    assert project_folder(f"{root}/home") == ""
    assert project_folder("/") == ""


def test_imports_of_a_script_start_in_its_folder_then_above_it_then_in_others(
    tmp_path: Path,
) -> None:
    files = ["tools/near.py", "near.py", "above.py", "src/pkg/ops.py", "src/pkg/__init__.py"]
    written(tmp_path, {**dict.fromkeys(files, "x = 1\n"), "pyproject.toml": "", "src/lone.py": ""})
    path = tmp_path / "tools" / "run.py"
    path.touch()
    project = Project(read_module(ast.parse(""), (), path))

    def found(name: str) -> str:
        module = project.module(name)
        assert module is None or module.path is not None
        return "" if module is None else str(module.path.relative_to(tmp_path.resolve()))

    assert found("near") == "tools/near.py"
    assert found("above") == "above.py"
    assert found("pkg.ops") == "src/pkg/ops.py"
    assert found("lone") == ""  # what is no package is not installed
    assert project.module("run") is project.linted


def test_a_file_that_imports_tensors_of_another_folder_concerns_us(tmp_path: Path) -> None:
    written(tmp_path, {"pyproject.toml": "", "utils/loss.py": RESAMPLE, "tools/run.py": ""})
    path = str(tmp_path / "tools" / "run.py")
    assert concerns(["from utils.loss import resample\n"], path)
    assert not concerns(["from utils.others import resample\n"], path)


# A change of the project -> the files that are analysed again.
CHANGED: dict[str, tuple[dict[str, str], list[str]]] = {
    "the caller calls it in each step": (
        {"train.py": importing("utils.loss", NET.replace("__init__", "forward"))},
        ["train", "utils/loss"],
    ),
    "another caller": ({"tools/more.py": importing("utils.loss")}, ["tools/more", "utils/loss"]),
    "a module that does not import it": ({"tools/more.py": NET}, ["tools/more"]),
    "the mark of a project nearer by": ({"utils/setup.py": ""}, ["utils/loss"]),
}


@pytest.mark.parametrize(("change", "again"), CHANGED.values(), ids=list(CHANGED))
def test_what_is_analysed_again(tmp_path: Path, change: dict[str, str], again: list[str]) -> None:
    project, cache = tmp_path / "project", tmp_path / "cache"
    written(project, SEEN["a script beside a folder without __init__.py"])
    check(cwd=project, cache=cache)
    written(project, change)
    assert analysed(project, cache) == [f"./{name}.py" for name in again]


def test_a_change_of_the_caller_changes_the_finding(tmp_path: Path) -> None:
    project, cache = tmp_path / "project", tmp_path / "cache"
    written(project, SEEN["a script beside a folder without __init__.py"])
    assert "loss.py" not in check(cwd=project, cache=cache).output
    written(project, {"train.py": importing("utils.loss", NET.replace("__init__", "forward"))})
    assert "./utils/loss.py:5:" in check(cwd=project, cache=cache).output
