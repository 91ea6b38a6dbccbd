"""Contracts reach what no call in the code shows: context managers, hooks, names that are passed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from linting import ALL, expected, in_package, program

from flake8_torchperf.linter import lint

if TYPE_CHECKING:
    from pathlib import Path

CONTRACT = replace(ALL, sync_free=("step",))
CODE = """
    class Timer:
        def __init__(self, x: Tensor):
            self.x = x

        def __enter__(self):
            show(self.x.sum(), 1)
            self.x.sum().item(){entered}
            return self

        def __exit__(self, *args):
            self.x.max().item(){entered}

    def show(x: Tensor, n: int):
        print(x.item()){entered}

    def hook(module, args, out: Tensor):
        out.sum().item(){hooked}

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(3, 3)
            {register}

        def forward(self, x):
            return self.lin(x)

    class Callback:
        def on_end(self, x: Tensor):
            x.sum().item(){passed}

        def on_start(self, x: Tensor):
            x.sum().item()  # no

    def call(owner, name, x: Tensor):
        getattr(owner, name)(x)

    class Engine:
        def __init__(self):
            self.net = Net()
            self.callback = Callback()

        def step(self, x: Tensor):
            {inside}

        def other(self, x: Tensor):
            {outside}
    """
ENTERS, RUNS = "with Timer(x): x = x + 1", "self.net(x)"
REGISTERS = "self.lin.register_forward_hook(hook)"
PASSES = 'call(self.callback, "on_end", x)'
# How the step runs a function, or code beside it does -> the functions that it leads to.
CASES = {
    "a context manager": ("", ENTERS, "pass", "entered"),
    "a context manager elsewhere": ("", "pass", ENTERS, ""),
    "a hook": (REGISTERS, RUNS, "pass", "hooked"),
    "a hook that isn't registered": ("", RUNS, "pass", ""),
    "a hook of a module that runs elsewhere": (REGISTERS, "pass", RUNS, ""),
    "a name that is passed": ("", PASSES, "pass", "passed"),
    "a name that is passed elsewhere": ("", "pass", PASSES, ""),
}


@pytest.mark.parametrize(
    ("register", "inside", "outside", "led_to"), CASES.values(), ids=list(CASES)
)
def test_what_runs_in_a_contract_keeps_it(
    register: str, inside: str, outside: str, led_to: str, tmp_path: Path
) -> None:
    marks = {
        part: "  # TPF101" if part == led_to else "  # no"
        for part in ("entered", "hooked", "passed")
    }
    code = program(
        CODE.format(register=register or "pass", inside=inside, outside=outside, **marks)
    )
    found = lint(code, in_package(tmp_path / "package", "engine.py", code), CONTRACT)
    broken = sorted((one.line, one.code) for one in found if "on the way from" in one.message)
    assert broken == expected(code)


def test_the_path_names_each_function(tmp_path: Path) -> None:
    code = program(
        CODE.format(register="", inside=ENTERS, outside="pass", entered="", hooked="", passed="")
    ).replace("            \n", "            pass\n")
    found = lint(code, in_package(tmp_path / "package", "engine.py", code), CONTRACT)
    paths = [
        one.message.partition("waits on the way from ")[2].partition(" -> line")[0] for one in found
    ]
    assert {"Engine.step: __enter__", "Engine.step: __enter__ -> show"} <= set(paths)
