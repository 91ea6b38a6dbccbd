"""A project that would leave a mark wherever it is run: linting executes nothing of what it lints."""

from __future__ import annotations

import os
from pathlib import Path

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


def project_in(tmp_path: Path) -> Path:
    """Make the project in a folder; returns its own, beside which lies the folder for marks."""
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


def marked_environment() -> dict[str, str]:
    """This process's variables, and those of ours, each of which names a module that must not run."""
    ours = {f"TORCHPERF_{name}": "model.py" for name in VARIABLES}
    return {**os.environ, **ours, "TORCHPERF_DEBUG": "1"}
