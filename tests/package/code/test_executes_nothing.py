"""Linting executes nothing of what it lints: a project that would leave a mark wherever it is run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from hangs import HANG
from language_server import LanguageServer

DRIVER = Path(__file__).with_name("audited.py")
PAGES = Path(__file__).resolve().parents[3] / "rules"
# A statement that leaves a mark; the file's name says which place was run.
MARK = "open({place!r}, 'w').close()"

# Every expression in it is evaluated by one who imports or calls this; none by one who reads it.
MODEL = '''\
# -*- coding: utf-8 -*-
"""A module that marks whatever is evaluated. >>> {doctest}"""
from __future__ import annotations

import json as helper_json
import torch
from helper import scaled, Registry, LIMIT
from package.inner import Layer
from package import *


def mark(place, value=None):
    open({marks!r} + "/" + place, "w").close()
    return value


mark("import")
RATE = mark("constant", 0.5)
KNOWN: torch.Tensor = mark("annotated-constant", torch.ones(3))
if mark("condition", True) and __name__ != "other":
    mark("branch")


@mark("decorator", lambda f: f)
def step(x: torch.Tensor, rate=mark("default"), *, k: mark("annotation") = mark("keyword")) -> "mark('returns')":
    """x (torch.Tensor): {doctest}"""
    total = 0.0
    for row in x:
        total += row.sum().item()
        if row.isnan().any():
            print(f"{{mark('f-string')}} {{row}}")
    return total + scaled(x).item() * RATE + (lambda: mark("lambda"))()


def other_step(x: torch.Tensor):
    return x.item()


class Meta(type):
    def __new__(cls, name, bases, space):
        mark("metaclass")
        return super().__new__(cls, name, bases, space)

    def __getattr__(cls, name):
        return mark("class-getattr")


class Net(Layer, torch.nn.Module, metaclass=mark("class-keyword", Meta)):
    mark("class-body")
    field: "mark('string-annotation')" = mark("class-default")
    __slots__ = mark("slots", ())

    def __init_subclass__(cls, **more):
        mark("init-subclass")

    def __class_getitem__(cls, item):
        return mark("class-getitem")

    @property
    def scale(self):
        return mark("property", torch.ones(1))

    def __del__(self):
        mark("finaliser")

    def forward(self, x: torch.Tensor):
        while x.sum() > 1:
            x = x * self.scale.item() * Registry.find("scale").item()
        match x:
            case Net(field=y):
                return y.item()
        return eval("mark('eval')") + exec("mark('exec')") + LIMIT.item()


def __getattr__(name):
    return mark("module-getattr")
'''
HELPER = """\
import torch
{mark}


class Registry:
    {mark}
    items: dict[str, torch.Tensor] = {{}}

    @classmethod
    def find(cls, name: str) -> torch.Tensor:
        {mark}
        return cls.items[name]


LIMIT = torch.ones(1).cuda() if not {mark} else None


def scaled(x: torch.Tensor, by={mark}) -> torch.Tensor:
    {mark}
    return x * 2
"""
# Found by whoever starts Python or a test in this folder, or has it on the path.
PASSED_BY = (
    "conftest.py", "sitecustomize.py", "usercustomize.py", "setup.py", "noxfile.py", "torch.py",
    "json.py", "tomllib.py", "tomli.py", "numpy.py", "rich.py", "difflib.py", "flake8_torchperf.py",
    "pyflakes.py", "__main__.py", "__init__.py", "ast.py", "tests/conftest.py",
)  # fmt: skip
PAGE = """\
+++
code = "TPF701"
name = "read-of-ours"
family = "host reads"
scope = "hot"
priority = 100
message = "{expression} reads"

[instead]
default = "nothing"

[[match]]
kind = "HostRead"
operations = ["item"]
+++
# read-of-ours (TPF701)

## What it does

`{{cycler.__init__.__globals__.os.system('touch MARKS/page')}}`
<script>__import__("os").system("touch MARKS/page")</script>

## Why it is slow

It is not.

## Bad

```python
open("MARKS/page-bad", "w").close()
```

## Good

```python
open("MARKS/page-good", "w").close()
```

## When to ignore it

Always.

## References

- None.
"""
CONFIGURATION = """\
[flake8]
extend-select = TPF
torchperf-scope = all
torchperf-hot = step, *_mark
torchperf-explain = true
torchperf-rules = ./pages
confirm = model.py
run = model.py
harness = model.py

[torchperf]
confirm = model.py
run = model.py

[torchperf:confirm]
inputs = x=open('MARKS/inputs', 'w')
"""
VARIABLES = ("CONFIRM", "RUN", "HARNESS", "INPUTS", "RULES", "SCRIPT", "OPTIONS")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The project's folder; beside it lies the folder for marks."""
    folder, marks = tmp_path / "project", tmp_path / "marks"
    marks.mkdir()
    for name in ("package", "pages", "tests"):
        (folder / name).mkdir(parents=True)

    def mark(place: str) -> str:
        return MARK.format(place=str(marks / place))

    doctest = mark("doctest").replace('"', "'")
    (folder / "model.py").write_text(MODEL.format(marks=str(marks), doctest=doctest))
    (folder / "helper.py").write_text(HELPER.format(mark=mark("helper")))
    (folder / "package" / "__init__.py").write_text(f"{mark('package')}\n__all__ = ['x']\n")
    (folder / "package" / "inner.py").write_text(
        f"import torch\n{mark('inner')}\nclass Layer:\n    {mark('inner-class')}\n"
    )
    for name in PASSED_BY:
        (folder / name).write_text(f"import torch\n{mark(name.replace('/', '-'))}\n")
    (folder / "startup.pth").write_text(f"import os; {mark('pth')}\n")
    page = PAGE.replace("MARKS", str(marks))
    (folder / "pages" / "TPF701-read-of-ours.md").write_text(page)
    (folder / "pages" / "conftest.py").write_text(mark("pages-conftest"))
    (folder / "setup.cfg").write_text(CONFIGURATION.replace("MARKS", str(marks)))
    (folder / "pyproject.toml").write_text("[tool.torchperf]\nscope = 'all'\n")
    return folder


def marks_of(project: Path) -> list[str]:
    return sorted(one.name for one in (project.parent / "marks").iterdir())


def environment() -> dict[str, str]:
    ours = {f"TORCHPERF_{name}": "model.py" for name in VARIABLES}
    return {**os.environ, **ours, "TORCHPERF_DEBUG": "1"}


def script(name: str) -> str:
    """The installed command: unlike ``python -m``, it does not put the folder on the path."""
    found = shutil.which(name, path=str(Path(sys.executable).parent))
    assert found, f"{name} is not installed beside {sys.executable}"
    return found


def run(project: Path, *command: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=project, env=environment(), input=text, capture_output=True, text=True,
        timeout=HANG, check=False,
    )  # fmt: skip


def test_the_marks_work(project: Path) -> None:
    """Were it run, it would show: so the absence of marks means something."""
    run(project, sys.executable, "-c", "import package.inner")
    run(project, sys.executable, "-c", "import helper")
    # helper ends where the project's own torch.py has no Tensor, after its first mark.
    assert marks_of(project) == ["helper", "inner", "inner-class", "package", "torch.py"]


def with_slow(cases: Mapping[str, list[str]], *quick: str) -> list[ParameterSet]:
    """Return the cases for ``parametrize``; those that `quick` does not name are slow tests."""
    return [
        pytest.param(case, id=name, marks=[] if name in quick else [pytest.mark.slow])
        for name, case in cases.items()
    ]


LINTING = {
    "a file": ["model.py"],
    "the folder": ["."],
    "the folder by eight": ["-j8", "."],
    "cold code too": ["--torchperf-scope=all", "--torchperf-explain", "model.py", "helper.py"],
    "with flake8's own checks": ["--select=E,F,W,C,TPF", "--doctests", "--max-complexity=3", "."],
    "with the source": ["--show-source", "--statistics", "--benchmark", "."],
}  # fmt: skip


@pytest.mark.parametrize("arguments", with_slow(LINTING, "the folder", "cold code too"))
def test_flake8_leaves_no_mark(project: Path, arguments: list[str]) -> None:
    done = run(project, script("flake8"), *arguments)
    assert done.returncode == 1
    assert "model.py" in done.stdout
    assert "TPF" in done.stdout
    assert "TPF701" in done.stdout, "the project's own page was read"
    assert marks_of(project) == []


def test_flake8_on_standard_input_leaves_no_mark(project: Path) -> None:
    text = (project / "model.py").read_text()
    done = run(project, script("flake8"), "--stdin-display-name=model.py", "-", text=text)
    assert "TPF" in done.stdout
    assert marks_of(project) == []


CHECKING = {
    "once": ["."],
    "with four processes": ["-j4", "."],
    "cold code too": ["--torchperf-scope=all", "--torchperf-explain", "."],
    "without memory": ["--no-cache", "model.py"],
}


@pytest.mark.parametrize("arguments", with_slow(CHECKING, "once", "with four processes"))
def test_torchperf_check_leaves_no_mark(project: Path, arguments: list[str]) -> None:
    """Twice: the second time from what is remembered."""
    folder = project.parent / "memory"
    memory = [] if "--no-cache" in arguments else ["--cache-dir", str(folder)]
    first, second = (run(project, script("torchperf"), "check", *memory, *arguments) for _ in "12")
    assert "TPF701" in first.stdout
    assert (first.stdout, first.returncode) == (second.stdout, second.returncode)
    assert marks_of(project) == []
    assert folder.exists() == bool(memory)


TELLING = {
    "explain": ["explain", "TPF203"],
    "explain as json": ["explain", "TPF203", "--format", "json"],
    "why": ["why", "model.py:3"],
    "rules": ["rules"],
    "rules as json": ["rules", "--format", "json"],
    "skill": ["skill"],
    "help": ["--help"],
    "an unknown command": ["chekc", "model.py"],
    "confirm without a path": ["confirm"],
    "run without a script": ["run"],
}  # fmt: skip


@pytest.mark.parametrize("arguments", list(TELLING.values()), ids=list(TELLING))
def test_torchperf_leaves_no_mark(project: Path, arguments: list[str]) -> None:
    done = run(project, script("torchperf"), *arguments)
    assert done.stdout or done.stderr
    assert "Traceback" not in done.stderr
    assert marks_of(project) == []


def audited(project: Path, *command: str) -> dict[str, object]:
    report = project.parent / "report.json"
    done = run(project, sys.executable, str(DRIVER), str(project), str(report), *command)
    assert report.exists(), done.stderr
    found: dict[str, object] = json.loads(report.read_text())
    assert "Traceback" not in done.stderr, done.stderr
    return found


# Findings, pages, and a command line without what there is to run.
STATUS = {
    "flake8 -j1": 1, "torchperf explain": 0, "torchperf rules": 0, "torchperf confirm": 2,
    "torchperf run": 2, "torchperf check": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    "command",
    [
        ["flake8", "-j1", "."],
        ["flake8", "-j1", "--torchperf-scope=all", "--torchperf-explain", "model.py"],
        ["torchperf", "check", "--no-cache", "-j1", "."],
        ["torchperf", "explain", "TPF203"],
        ["torchperf", "rules"],
        ["torchperf", "confirm"],
        ["torchperf", "run"],
    ],
    ids=" ".join,
)
def test_no_process_no_socket_no_file_written(project: Path, command: list[str]) -> None:
    found = audited(project, *command)
    assert found["status"] == STATUS[" ".join(command[:2])]
    assert found["events"] == []
    assert found["loaded"] == [], "neither torch nor anything of the project is imported"
    assert marks_of(project) == []


def test_the_audit_sees_what_it_looks_for(project: Path) -> None:
    """`confirm` with a path starts a process: that this shows is what makes the rest worth it."""
    if find_spec("torch") is None:
        pytest.skip("confirm needs torch")
    (project / "cold.py").write_text("import torch\n\n\ndef step(x: torch.Tensor):\n    x.item()\n")
    found = audited(project, "torchperf", "confirm", "cold.py")
    assert "subprocess.Popen" in str(found["events"])


@pytest.mark.slow
def test_an_editor_leaves_no_mark(project: Path, clients: Path) -> None:
    """python-lsp-server, over standard input and output, on a buffer that is not saved."""
    path = project / "model.py"
    plugins = {
        "flake8": {"enabled": True, "executable": str(clients.parent / "flake8")},
        **{name: {"enabled": False} for name in ("pycodestyle", "pyflakes", "mccabe", "jedi")},
    }
    settings = {"pylsp": {"plugins": plugins, "configurationSources": ["flake8"]}}
    with LanguageServer([clients.parent / "pylsp"], project, environment()) as server:
        server.notify("workspace/didChangeConfiguration", {"settings": settings})
        opened = {"uri": path.as_uri(), "languageId": "python", "version": 1}
        document = {"textDocument": {**opened, "text": path.read_text(encoding="utf-8")}}
        server.notify("textDocument/didOpen", document)
        codes = {diagnostic["code"] for diagnostic in server.diagnostics(path.as_uri(), 1)}
    assert any(code.startswith("TPF") for code in codes)
    assert marks_of(project) == []
