"""The examples of the torch.compile FAQ, restated: linted elsewhere, compiled and counted here."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_fixtures import expected, load

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("guards_are_not_timed")

FOLDERS = sorted(
    path.parent for path in (Path(__file__).parents[2] / "fixtures").glob("*/*/before.py")
)
STEPS = 4


def frames(run: Callable[[int], Any]) -> tuple[Any, dict[str, int]]:
    """What a run returns, the graphs it compiled and the functions the compiler gave up on."""
    from torch._dynamo.utils import counters

    torch._dynamo.reset()
    counters.clear()
    with contextlib.redirect_stdout(io.StringIO()):
        answer = run(STEPS)
    skipped = counters["frames"]["total"] - counters["frames"]["ok"]
    graphs = counters["stats"]["unique_graphs"]
    return answer, {"compiled_graphs": graphs, "skipped_frames": skipped}


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_after_does_the_same_in_one_graph(folder: Path) -> None:
    """Both give the same numbers; only `before` shows what its comments say."""
    from flake8_torchperf.runtime.counting.graph_breaks import explain

    before, after = load(folder / "before.py"), load(folder / "after.py")
    told, answers, counts = [], [], []
    for module in (before, after):
        answer, counted = frames(module.run)
        answers.append(answer)
        counts.append(counted)
        with contextlib.redirect_stdout(io.StringIO()):
            told.append(explain(module.run, (STEPS,), {}))
    torch.testing.assert_close(*answers)
    assert told[1].breaks == ()
    assert counts[1] == {"compiled_graphs": 1, "skipped_frames": 0}
    path = folder / "before.py"
    what = getattr(before, "COUNTED", "graph_breaks")
    if what != "graph_breaks":
        assert counts[0][what] > counts[1][what]
        return
    named = set().union(*(one.lines_in(str(path)) for one in told[0].breaks))
    assert {line for line, _ in expected(path, {"hot", "all"})} <= named
