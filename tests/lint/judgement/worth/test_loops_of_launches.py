"""Loops over elements: what they launch is weighed, and a loop around a wait is told with it."""

from __future__ import annotations

from linting import program
from weighing import weighed

from flake8_torchperf.linter import lint
from flake8_torchperf.options import Options

# A loop that launches, a loop with a wait in each round, and one by position with a wait.
LOOPS = """
    class Net(nn.Module):
        def forward(self, x: Tensor, y: Tensor):
            total = 0
            for row in x:
                total = total + row.sin() * row.cos()
            for row in y:
                if row.isinf().any().item():
                    raise ValueError
            for i in range(y.shape[0]):
                if y[i].isnan().any().item():
                    raise ValueError
            return total
    """


def _told(worthless: dict[str, float]) -> list[tuple[str, int]]:
    text = program(LOOPS)
    first = text.splitlines().index("        total = 0") + 1
    with weighed(worthless, threshold=0.4):
        return [(one.code, one.line - first) for one in lint(text, "model.py", Options())]


def test_a_loop_that_waits_is_told_with_its_wait() -> None:
    loops = [("TPF201", 1), ("TPF201", 3), ("TPF203", 4), ("TPF202", 6), ("TPF203", 7)]
    assert _told({}) == loops
    assert _told({"rule:TPF201": -4.0, "rule:TPF202": -4.0}) == loops[1:]


def test_the_wait_of_an_element_is_told_whatever_it_weighs() -> None:
    told = _told({"rule:TPF203": -9.0, "rule:TPF201": -9.0, "rule:TPF202": -9.0})
    assert [code for code, _ in told] == ["TPF201", "TPF203", "TPF202", "TPF203"]
