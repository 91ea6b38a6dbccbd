"""No fix makes a finding: one that leaves as much to report as before is not made."""

from __future__ import annotations

from fixing import UNSAFE, outcome
from linting import HOT, PRELUDE, program

# The tensor that is written may be anything, so only the read of `y` is reported, and the positions
# would be reported in its stead.
MOVED = """
    def step(x, y: Tensor, ids: Tensor, net):
        mask = ids[:, 0] > 0
        x[mask] = net(y[mask])
        return x, y
    """
GAINED = """
    def step(x: Tensor, y: Tensor, ids: Tensor):
        mask = ids[:, 0] > 0
        return x[mask], y[mask]
    """


def test_a_fix_that_only_moves_a_finding_is_not_made() -> None:
    done = outcome(program(MOVED), UNSAFE, HOT)
    assert [f.code for f in done.first] == ["TPF402"]
    assert done.text == program(MOVED)
    assert not done.changes
    assert not done.open


def test_a_fix_that_leaves_fewer_is_made() -> None:
    done = outcome(program(GAINED), UNSAFE, HOT)
    assert [f.code for f in done.first] == ["TPF402", "TPF402"]
    assert [f.code for f in done.left] == ["TPF401"]


def test_another_fix_in_the_file_is_made_all_the_same() -> None:
    source = program(MOVED) + program(
        """
        def train_step(x: Tensor):
            return x * torch.zeros(4).to(x.device)
        """,
        "",
    )
    done = outcome(source, UNSAFE, HOT)
    assert "torch.zeros(4, device=x.device)" in done.text
    assert "x[mask] = net(y[mask])" in done.text
    assert PRELUDE in done.text
