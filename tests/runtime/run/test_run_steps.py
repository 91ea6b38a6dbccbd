"""`torchperf run --warmup N --step NAME`: what a step costs, without the first ones."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from check_run import torchperf

pytest.importorskip("torch")

from flake8_torchperf.history.profile import ProfileError, StepCounts, merge, parse
from flake8_torchperf.runtime.workload.exchange import Observed, Stepped, SyncRow, load_observed
from flake8_torchperf.runtime.workload.ranks.merge import merge as merged
from flake8_torchperf.runtime.workload.steps.markers import Markers
from flake8_torchperf.runtime.workload.steps.report import as_data
from flake8_torchperf.runtime.workload.steps.step_names import named_function
from flake8_torchperf.runtime.workload.watching.executed_lines import ExecutedLines

# Two optimizers step once each in a step, as those of a GAN do; the model is read before and after.
PROGRAM = """\
import torch


class Trainer:
    def __init__(self):
        self.net = torch.nn.Linear(4, 4)
        self.head = torch.nn.Linear(4, 1)
        self.first = torch.optim.SGD(self.head.parameters(), lr=0.1)
        self.second = torch.optim.Adam(self.net.parameters())

    def train_step(self, x):
        loss = self.head(self.net(x)).sum()
        loss.backward()
        if self.show:
            print(loss.item())
        self.first.step()
        self.second.step()
        return loss


trainer = Trainer()
trainer.show = SHOW
trainer.net.weight.sum().item()
for number in range(6):
    out = trainer.train_step(torch.ones(2, 4))
    if number % 2:
        out.tolist()
for _ in range(7):
    out.item()
"""


def recorded(folder: Path, *arguments: str, show: bool = True) -> str:
    """Return what a run of the program prints of its steps."""
    (folder / "train.py").write_text(PROGRAM.replace("SHOW", str(show)))
    ran = torchperf("run", *arguments, "train.py", cwd=folder)
    assert ran.status == 0, ran.errors
    return ran.errors


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("steps")
    outputs = ("--json", "before.json", "--save-profile", "profile.json", "--output", "before.txt")
    recorded(folder, "--warmup", "2", *outputs)
    recorded(folder, "--step", "train.py::Trainer.train_step", "--json", "after.json", show=False)
    return folder


def steps_of(folder: Path, name: str) -> dict[str, Any]:
    steps: dict[str, Any] = json.loads((folder / name).read_text())["steps"]
    return steps


def test_steps_of_optimizers_are_counted_once_for_all_and_without_the_warm_up(folder: Path) -> None:
    steps = steps_of(folder, "before.json")
    assert steps["marker"] == "optimizer.step"
    assert steps["optimizers"] == ["SGD", "Adam"]
    assert (steps["warmup"], steps["seen"], steps["counted"]) == (2, 6, 4)
    # Each prints a loss; the ends of the second to the sixth enclose two of the three lists. What
    # comes before and after belongs to no step.
    expected = {"waits": 1.5, "host_reads": 1.5, "transfers": 0.5, "graph_breaks": 0}
    assert steps["per_step"] == expected
    assert steps["seconds"] > 0
    assert steps["waited"] is None  # No device measured it.


def test_the_text_says_what_was_counted_and_where(folder: Path) -> None:
    text = (folder / "before.txt").read_text()
    assert (
        "steps: 4 after 2 of warm-up, ended by optimizer.step of 2 optimizers (SGD, Adam), once "
        "for all; in each 1.5 waits, 1.5 host reads, 0.5 transfers, 0 graph breaks\n"
        "train.py:15: 1 wait per step: print(loss.item())\n"
        "train.py:27: 0.5 waits per step: out.tolist()\n"
    ) in text


def test_a_statement_has_its_part_after_the_warm_up(folder: Path) -> None:
    (file,) = json.loads((folder / "before.json").read_text())["files"]
    waits = {one["line"]: (one["waits"], one["counted"]["waits"]) for one in file["statements"]}
    assert waits == {23: (1, 0), 15: (6, 4), 27: (3, 2), 29: (7, 0)}


def test_a_profile_holds_the_steps_and_adds_those_of_others(folder: Path) -> None:
    text = (folder / "profile.json").read_text()
    profile = parse(text, folder / "profile.json")
    counts = {"waits": 6, "host_reads": 6, "transfers": 2, "graph_breaks": 0}
    assert profile.steps == StepCounts(4, counts)
    both = merge([profile, profile, replace(profile, steps=None)]).steps
    assert both is not None
    assert (both.steps, both.each("waits")) == (8, 1.5)
    shown = torchperf("profile", "show", "profile.json", cwd=folder).output
    assert "4 steps after the warm-up; in each 1.5 waits, 1.5 host reads, 0.5 transfers" in shown
    with pytest.raises(ProfileError, match='"steps" holds no counts'):
        parse(text.replace('"steps": 4', '"steps": -4'), folder / "profile.json")


def test_runs_are_compared_per_step(folder: Path) -> None:
    after = steps_of(folder, "after.json")
    assert (after["marker"], after["warmup"], after["counted"]) == ("Trainer.train_step", 1, 5)
    compared = torchperf("compare", "before.json", "after.json", cwd=folder).output
    assert "train.py:15 Trainer.train_step: 1 -> 0: print(loss.item())" in compared
    assert "the warm-up differs: 2 steps before, 1 steps after" in compared
    assert "per step: 1.50 -> 0.40 waits" in compared


def test_a_run_without_a_step_says_so(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\ntorch.ones(1).item()\n")
    arguments = ("--warmup", "3", "--json", "run.json", "train.py")
    text = torchperf("run", *arguments, cwd=tmp_path).errors
    assert (
        "steps: no step was counted: neither an optimizer nor a profiler stepped; name a function "
        "with --step\n"
    ) in text
    steps = steps_of(tmp_path, "run.json")
    assert (steps["counted"], steps["per_step"], steps["seconds"]) == (0, None, None)
    assert torchperf("compare", "run.json", "run.json", cwd=tmp_path).status == 0


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--step", "1x"), "run: --step: '1x' names no function: write train_step, "),
        (("--step", "no.py::step"), "run: --step: there is no file no.py"),
        (("--step", "train.py::step"), "run: --step: train.py defines no function step"),
        (("--warmup", "-1"), "'-1' is no number of steps"),
    ],
)
def test_a_wrong_option_is_one_line(
    tmp_path: Path, arguments: tuple[str, ...], problem: str
) -> None:
    (tmp_path / "train.py").write_text("def steps(): pass\n")
    ran = torchperf("run", *arguments, "train.py", cwd=tmp_path)
    assert ran.status == 2
    assert problem in ran.errors.replace("\n", " ")


def ends(path: Path, code: str, step: str = "", *, owned: bool = True) -> list[str]:
    """Return the markers of the steps that end while code runs."""
    path.write_text(dedent(code))
    found: list[str] = []
    markers = Markers(named_function(step), found.append)
    program = compile(path.read_text(), str(path), "exec")
    before = sys.gettrace()
    lines = ExecutedLines(lambda name: owned and name == str(path), markers=markers)
    lines.start()
    try:
        exec(program, {"__name__": "__main__"})
    finally:
        lines.stop()
        sys.settrace(before)
    return found


OPTIMIZERS = """
    import torch
    def made(of=torch.optim.SGD):
        return of([torch.nn.Parameter(torch.ones(1))], lr=0.1)
    """


@pytest.mark.parametrize(
    ("code", "steps"),
    [
        ("both = [made(), made()]\nfor _ in range(4):\n    for one in both: one.step()", 4),
        # A critic that steps more often than the generator.
        ("a, b = made(), made()\nfor _ in range(2):\n    for _ in range(5): a.step()\n    b.step()", 10),
        # A phase with one optimizer, then one with another: its first step joins the last of those.
        ("a, b = made(), made()\nfor one in (a, b):\n    for _ in range(3): one.step()", 5),
        ("for _ in range(3):\n    made().step()", 3),
        (
            "class Mine(torch.optim.SGD):\n    def step(self):\n        return super().step()\n"
            "one = made(Mine)\nfor _ in range(3): one.step()",
            3,
        ),
        ("made().zero_grad()\nclass Other:\n    def step(self): pass\nOther().step()", 0),
    ],
)  # fmt: skip
def test_several_optimizers_end_a_step_once(tmp_path: Path, code: str, steps: int) -> None:
    text = dedent(OPTIMIZERS) + code
    assert ends(tmp_path / "train.py", text) == ["optimizer.step"] * steps


def test_a_profiler_ends_steps(tmp_path: Path) -> None:
    code = """
        import torch
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
            for _ in range(3):
                torch.ones(1)
                profiler.step()
        """
    assert ends(tmp_path / "infer.py", code) == ["profiler.step"] * 3


FUNCTIONS = """
    class Base:
        def step(self, deep):
            return self.step(deep - 1) if deep else None

    class Derived(Base):
        def step(self, deep):
            return super().step(deep)

    def rows():
        yield 1
        yield 2

    def fails():
        raise ValueError

    for _ in range(2):
        Base().step(0)
    Derived().step(3)
    list(rows())
    try:
        fails()
    except ValueError:
        pass
    """


@pytest.mark.parametrize("owned", [True, False])
@pytest.mark.parametrize(
    ("name", "steps"),
    [("step", 3), ("Base.step", 3), ("Derived.step", 1), ("rows", 1), ("fails", 0), ("x.step", 0)],
)
def test_a_named_function_ends_a_step_where_it_returns(
    tmp_path: Path, name: str, steps: int, owned: bool
) -> None:
    """A call of itself or of the method that it overrides is part of the step."""
    path = tmp_path / "train.py"
    if name in ("step", "Base.step"):
        assert ends(path, FUNCTIONS, name, owned=owned) == [name] * steps
    assert ends(path, FUNCTIONS, name, owned=owned) == [name] * steps
    if steps:
        assert ends(path, FUNCTIONS, f"{path}::{name}", owned=owned) == [name] * steps


def stepped(*, seen: int, waits: int) -> Observed:
    row = SyncRow("train.py", 3, "sync", "item", "item", waits, 1)
    totals = {"waited": 0.5, "host_reads": waits, "transfers": 0, "graph_breaks": 0}
    steps = Stepped("optimizer.step", ("SGD",), 2, seen, 2.0, totals, (), (row,))
    steps = steps if steps.counted else Stepped("optimizer.step", ("SGD",), 2, seen)
    plain = {"device_syncs": 1}
    return Observed(
        "2.13.0", "cuda", "full", 1.0, plain, (), {}, (), "", "returned", steps=steps
    )  # fmt: skip


def test_steps_of_ranks_add_up(tmp_path: Path) -> None:
    one = merged([stepped(seen=6, waits=4), stepped(seen=2, waits=0), stepped(seen=4, waits=8)])
    one.save(tmp_path / "results.json")
    assert load_observed(tmp_path / "results.json") == one
    statement = {"counted": {"waits": 12}}
    steps = as_data(one, [statement])
    assert steps is not None
    assert (steps["counted"], steps["per_step"]["waits"]) == (6, 2)
    assert (steps["seconds"], steps["waited"]) == (4.0, 1.0)  # CUDA reported its waits.


def test_a_warm_up_longer_than_the_run_is_told() -> None:
    steps = as_data(merged([stepped(seen=2, waits=0), stepped(seen=1, waits=0)]), [])
    assert steps is not None
    assert steps["note"] == "no step was counted: 2 ended, and the warm-up is 2"
    assert as_data(replace(stepped(seen=2, waits=0), steps=None), []) is None
