"""Code that no setting or step runs, and waits that are none, are left out by default."""

from __future__ import annotations

from pathlib import Path

import pytest
from linting import HOT

from flake8_torchperf.linter import lint
from flake8_torchperf.project.option_values import Given, values_given
from flake8_torchperf.project.texts import text_search


def told(folder: Path, text: str, others: dict[str, str] | None = None) -> list[int]:
    """Return the lines of a module, in a project with other files, that are reported by default."""
    (folder / "requirements.txt").touch()
    for name, other in (others or {}).items():
        (folder / name).write_text(other)
    file = folder / "net.py"
    file.write_text(text)
    text_search.forget()
    return [one.line for one in lint(text, str(file), HOT)]


LOOP = """\
import torch
from torch import Tensor


def shift(x: Tensor, pulse={default}):
    if pulse:
        for row in x:
            print(row.sum().item())
    return x
"""


@pytest.mark.parametrize(("default", "lines"), [("False", []), ("True", [7, 8])])
def test_a_loop_in_a_branch_that_is_off(default: str, lines: list[int], tmp_path: Path) -> None:
    assert told(tmp_path, LOOP.format(default=default)) == lines


CHAIN = """\
import torch
from torch import Tensor


class Net(torch.nn.Module):
    def forward(self, x: Tensor, strategy: str = "peak"):
        if strategy == "peak":
            x = x / x.abs().max()
        elif strategy in ("clip", "clamp"):
            x = x.clamp(-1, 1)
        else:
            assert x.abs().max() < 1
        return x
"""


@pytest.mark.parametrize(
    ("call", "lines"),
    [
        ("net(x, strategy='clip')", []),
        ("net(x, strategy='loud')", [12]),
        ("net(x, strategy=sys.argv[1])", [12]),
    ],
)
def test_the_last_else_of_a_chain(call: str, lines: list[int], tmp_path: Path) -> None:
    assert told(tmp_path, CHAIN, {"run.py": f"{call}\n"}) == lines


def test_calls_in_the_last_else_of_a_chain(tmp_path: Path) -> None:
    text = CHAIN.replace("assert x.abs().max() < 1", "check(len(x))")
    text += "\n\ndef check(n):\n    return torch.ones(n, device='cuda').std().item()\n"
    assert told(tmp_path, text, {"run.py": "net(x, strategy='clip')\n"}) == []
    assert told(tmp_path, text, {"run.py": "net(x, strategy='loud')\n"}) == [17]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('"""Use size=3, size=f(x)."""\nf(size=4)\n', {4}),
        ('def f():\n    """Text.\n\n    size=3, and "more".\n    """\n    g(size=4)\n', {4}),
        ("def f():\n    r'''size=3,'''\n    g(size=4)\n", {4}),
        ('a = """\nsize=3\n"""\nsize=4\n', {3, 4}),
        ("f(size=4)  # size=3, and don't say more\nf(size=5)\n", {4, 5}),
        ("f('# no comment', size=4)\n", {4}),
        ('f("it\'s", size=4)\n"""size=3\n"""\n', {4}),
    ],
)
def test_documentation_gives_an_option_no_value(text: str, values: set[int]) -> None:
    assert values_given("size", [text]) == Given(frozenset(values), True)


DEMO = """\
import torch
from torch import nn


def train(model: nn.Module, optimizer, loader):
    for x in loader:
        model(x).sum().backward()
        optimizer.step()


def slices(parts):
    model = nn.Linear(3, 3)
    for part in parts:
        y = torch.relu(model(part))
        print(y.sum().item())
        for row in y:
            print(row.sum().item())
"""


def test_a_loop_over_a_model_that_no_step_reaches(tmp_path: Path) -> None:
    """Only its loop over elements is told; without a caller, so is the rest: it may be new."""
    assert told(tmp_path, DEMO) == [15, 16, 17]
    show = "from net import slices\n\nif __name__ == '__main__':\n    slices(load())\n"
    assert told(tmp_path, DEMO, {"show.py": show}) == [16, 17]


WAIT = """\
import time
from timeit import default_timer

import torch
import torch.distributed as dist
from torch import Tensor, nn
{more}

class Net(nn.Module):
    def forward(self, x: Tensor):
        {body}
        return x


def train(net: nn.Module, optimizer, loader):
    begin = time.time()
    for x in loader:
        net(x).sum().backward()
        optimizer.step()
        {step}
    print(time.time() - begin)
"""
SYNCHRONIZE = "torch.cuda.synchronize()"
MEANT = {
    "before a clock": ("pass", f"{SYNCHRONIZE}; took = time.time()"),
    "after a clock": ("pass", f"start = default_timer(); {SYNCHRONIZE}"),
    "in a branch beside a clock": (f"if x.is_cuda:\n            {SYNCHRONIZE}\n        "
                                   "self.took = time.time()", "pass"),
    "a barrier that no step calls": ("pass", "pass\n    for n in range(3):\n        dist.barrier()"),
}  # fmt: skip
NOT_MEANT = {
    "a clock around the loop": ("pass", SYNCHRONIZE),
    "a clock in another loop": (
        "pass",
        f"{SYNCHRONIZE}\n        for y in x:\n            t = time.time()",
    ),
    "a barrier in each step": ("pass", "dist.barrier()"),
    "a barrier in forward": ("dist.barrier()", "pass"),
}


def waits(folder: Path, body: str, step: str, more: str = "") -> list[str]:
    """Return the messages about explicit waits that are reported by default."""
    (folder / "requirements.txt").touch()
    text = WAIT.format(body=body, step=step, more=more)
    found = lint(text, str(folder / "net.py"), HOT)
    return [one.message for one in found if one.code == "TPF106"]


@pytest.mark.parametrize("name", MEANT)
def test_waits_that_are_the_aim(name: str, tmp_path: Path) -> None:
    assert waits(tmp_path, *MEANT[name]) == []


@pytest.mark.parametrize("name", NOT_MEANT)
def test_waits_that_are_not_the_aim(name: str, tmp_path: Path) -> None:
    assert len(waits(tmp_path, *NOT_MEANT[name])) == 1


@pytest.mark.parametrize(
    ("more", "advice"),
    [("", "remove it: reads wait anyway"), ("S = torch.cuda.Stream()\n", "use stream.")],
)
def test_streams_are_advised_where_there_are_some(more: str, advice: str, tmp_path: Path) -> None:
    (message,) = waits(tmp_path, "pass", SYNCHRONIZE, more)
    assert advice in message


SEARCH = """\
import torch
from torch import Tensor, nn


def grow(model: nn.Module, beams: list[Tensor]):
    grown = []
    model.cuda()
    for beam in beams:
        grown.append(model(beam))
    return grown


def search(model, beams, seed, rounds):
    best = torch.ones(3, device="cuda")
    for _ in range(rounds):
        {made} = grow(model, {given})
        if torch.relu(best).sum() > 3:
            break
    return beams
"""


@pytest.mark.parametrize(
    ("made", "given", "lines"), [("beams", "beams", [17]), ("grown", "seed", [])]
)
def test_a_search_is_no_epoch(made: str, given: str, lines: list[int], tmp_path: Path) -> None:
    assert told(tmp_path, SEARCH.format(made=made, given=given)) == lines


FACTORY = """\
import torch
from torch import Tensor


def choose(head, whole):
    def with_all(x: Tensor):
        if x.any():
            return head(x)
        return x

    def without(x: Tensor):
        if x.all():
            return head(x)
        return x

    return {result}
"""
USER = """\
from net import choose
from torch import Tensor, nn


class Net(nn.Module):
    def __init__(self, head):
        super().__init__()
        self.head = choose(head, True)

    def forward(self, x: Tensor):
        return self.head(x)
"""


@pytest.mark.parametrize(
    ("result", "lines"),
    [("with_all", [7]), ("with_all if whole else without", [7, 12]), ("head", [])],
)
def test_a_function_that_set_up_code_gets_from_a_factory(
    result: str, lines: list[int], tmp_path: Path
) -> None:
    assert told(tmp_path, FACTORY.format(result=result), {"model.py": USER}) == lines


RECORD = """\
from typing import Dict, NamedTuple, Tuple

import torch
from torch import Tensor, nn


class Sizes(NamedTuple):
    scale: Tensor
    natoms: Tuple[int, int] = (0, 0)
    total: {declared} = 0


class Net(nn.Module):
    def forward(self, data: Dict[str, Tensor]):
        n, m = data["n"][0], data["n"][1]
        sizes = Sizes(data["scale"], (n, m), {given})
        x = data["x"]
        x = x[: sizes.natoms[0]]
        return x[: sizes.total]
"""


@pytest.mark.parametrize(
    ("declared", "given", "lines"),
    [("int", "n", []), ("Tensor", "n", [19]), ("int", "n.sum()", [19])],
)
def test_a_declared_number_in_a_record(
    declared: str, given: str, lines: list[int], tmp_path: Path
) -> None:
    """A field says more of itself than the annotation of a dict says of one of its entries."""
    assert told(tmp_path, RECORD.format(declared=declared, given=given)) == lines


INDEX = """\
import torch
from torch import Tensor, nn


class Net(nn.Module):
    def __init__(self, edges):
        super().__init__()
        self.register_buffer("at", torch.tensor({data}))

    def forward(self, points: list[Tensor]):
        return points[self.at]
"""


@pytest.mark.parametrize(("data", "lines"), [("[i for i in edges]", []), ("3", [11])])
def test_an_index_of_one_dimension_is_no_number(
    data: str, lines: list[int], tmp_path: Path
) -> None:
    assert told(tmp_path, INDEX.format(data=data)) == lines


COPY = """\
import torch
from torch import Tensor, nn


class Net(nn.Module):
    def predict_step(self, x: Tensor, pool):
        boxes = pool.boxes{copy}
        {further}
        if torch.any(boxes > 3):
            x = x + 1
        return x
"""


@pytest.mark.parametrize(
    ("copy", "further", "lines"),
    [(".cpu()", "pass", []), ("", "pass", [9]), (".cpu()", "boxes = boxes.cuda()", [8, 9])],
)
def test_a_copy_of_something_unknown_lies_on_the_host(
    copy: str, further: str, lines: list[int], tmp_path: Path
) -> None:
    assert told(tmp_path, COPY.format(copy=copy, further=further)) == lines
