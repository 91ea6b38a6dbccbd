"""Two published programs are fixed without a person, and then do the same with fewer waits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fixing import UNSAFE, outcome

from flake8_torchperf.options import Options

FIXTURES = Path(__file__).parents[2] / "fixtures"
# How many findings are left, of rules that have fixes. A norm that was a number stays one, which is
# read once for all gradients, and decides.
FIXED = {"issue82206_sharded_grad_scaler": 0, "clip_grad_norm": 2}


def run(text: str, name: str) -> Any:
    """What a fixture's program returns for n = 8, and the waits that it took."""
    from flake8_torchperf.runtime import DispatchCounter

    names: dict[str, Any] = {"__name__": name}
    exec(compile(text, name, "exec"), names)
    with DispatchCounter() as counter:
        result = names["run"](8)
    return result, counter.evidence.totals.host_reads


@pytest.mark.parametrize(("folder", "still"), FIXED.items())
def test_what_a_fixture_becomes_does_the_same_with_fewer_waits(folder: str, still: int) -> None:
    torch = pytest.importorskip("torch")
    before = (FIXTURES / folder / "before.py").read_text(encoding="utf-8")
    done = outcome(before, UNSAFE, Options())
    assert len([f.message for f in done.left if f.rule.fixes]) == still
    result, reads = run(before, "before")
    after, left = run(done.text, "after")
    torch.testing.assert_close(after, result)
    assert left < reads
    assert done.left or not left
    assert not outcome(done.text, UNSAFE, Options()).changes
