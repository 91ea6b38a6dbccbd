"""A function is compiled by whichever module of its project compiles it."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest
from linting import ALL, expected

from flake8_torchperf.linter import lint

if TYPE_CHECKING:
    from pathlib import Path

NET = """
    import torch
    from torch import nn
    from layers import Block, size

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.block = Block()

        def forward(self, x: torch.Tensor):
            if x.sum() > 0:{forward}
                x = x * 2
            return self.block(x) * size(x)

        def step(self, x: torch.Tensor):
            if x.sum() > 0:{step}
                return x * 2
            return x
    """
LAYERS = """
    import torch
    from torch import nn

    class Block(nn.Module):
        def forward(self, x: torch.Tensor):
            if x.max() > 0:{inside}
                return x
            return x * 2

    def size(x: torch.Tensor):
        if x.min() > 0:{inside}
            return 1
        return 2

    def unused(x: torch.Tensor):
        if x.min() > 0:  # TPF301
            return 1
        return 2
    """
TRAIN = """
    import torch
    from torch.utils.data import DataLoader
    from net import Net

    def fit(model, data):
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for x in DataLoader(data):
            loss = model(x.cuda()).mean()
            loss.backward()
            opt.step()

    {code}
    """
# How train.py compiles -> which parts of the others it compiles.
WAYS = {
    "an object": ("fit(torch.compile(Net()), [1])", "forward inside"),
    "a name": (
        "model = Net().cuda()\nmodel = torch.compile(model)\nfit(model, [1])",
        "forward inside",
    ),
    "by keyword": ("fit(torch.compile(model=Net()), [1])", "forward inside"),
    "disabled": ("fit(torch.compile(Net(), disable=True), [1])", ""),
    "the method of a module": ("model = Net()\nmodel.compile()\nfit(model, [1])", "forward inside"),
    "one of several methods": (
        "model = Net()\nstep = torch.compile(model.step)\nfit(model, [1])",
        "step",
    ),
    "an attribute": (
        """class Trainer:
    def __init__(self, model):
        self.model = torch.compile(model)

Trainer(Net())
fit(Net(), [1])""",
        "forward inside",
    ),
    "by a factory": (
        "def build():\n    return Net()\n\nmodel = build()\nfit(torch.compile(model), [1])",
        "forward inside",
    ),
    "a function that runs it": (
        "@torch.compile\ndef run(x):\n    return Net()(x)\n\nrun(1)\nfit(Net(), [1])",
        "forward inside",
    ),
    "with options": (
        "@torch.compile(dynamic=True)\ndef run(x):\n    return Net()(x)\n\nrun(1)\nfit(Net(), [1])",
        "forward inside",
    ),
    "under its own name": (
        """def run(x):
    return Net()(x)

def main():
    global run
    run = torch.compile(run)
    fit(Net(), [1])

main()""",
        "forward inside",
    ),
    "nothing": ("fit(Net(), [1])", ""),
    "a pattern": ("import re\n\nfit(Net(), re.compile('a').findall('a'))", ""),
    "in a function that nothing runs": (
        "def _old():\n    fit(torch.compile(Net()), [1])\n\nif __name__ == '__main__':\n    fit(Net(), [1])",
        "",
    ),
}


def _written(folder: Path, code: str, compiled: str) -> dict[str, str]:
    """Write a project whose train.py holds some code; its texts, with what should be found."""
    marks = {
        part: "  # TPF603" if part in compiled.split() else "  # TPF301"
        for part in ("forward", "step", "inside")
    }
    texts = {
        "requirements.txt": "torch\n",
        "train.py": textwrap.dedent(TRAIN).format(code=code),
        "net.py": textwrap.dedent(NET).format(**marks),
        "layers.py": textwrap.dedent(LAYERS).format(**marks),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    return texts


def _found(folder: Path, name: str) -> list[tuple[int, str]]:
    path = folder / name
    found = lint(path.read_text(), str(path), ALL)
    return sorted((one.line, one.code) for one in found if one.code in ("TPF301", "TPF603"))


@pytest.mark.parametrize(("code", "compiled"), WAYS.values(), ids=list(WAYS))
def test_a_module_is_compiled_in_another(code: str, compiled: str, tmp_path: Path) -> None:
    texts = _written(tmp_path, code, compiled)
    for name in ("net.py", "layers.py"):
        assert _found(tmp_path, name) == expected(texts[name])
