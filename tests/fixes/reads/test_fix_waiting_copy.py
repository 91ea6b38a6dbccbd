"""A copy to the host that is read before it has arrived waits."""

from __future__ import annotations

from fixing import check_fix, rows

CHANGED = {
    "of a name": (
        """
        def step(x: Tensor, y: Tensor):
            a = x.to("cpu", non_blocking=True)  # TPF504
            if a.max() > 2:
                y = y + 1
            return y
        """,
        """
        def step(x: Tensor, y: Tensor):
            a = x.to("cpu")
            if a.max() > 2:
                y = y + 1
            return y
        """,
    ),
    "read where it is made": (
        """
        def step(x: Tensor):
            return x.to("cpu", non_blocking=True, copy=True).numpy()
        """,
        """
        def step(x: Tensor):
            return x.to("cpu", copy=True).numpy()
        """,
    ),
}
KEPT = {
    "a name of two copies": """
        def step(x: Tensor, y: Tensor):
            a = x.to("cpu", non_blocking=True)
            if y.dim():
                a = y.to("cpu", non_blocking=True)
            return a.numpy()
        """,
    "waited for": """
        def step(x: Tensor):
            a = x.to("cpu", non_blocking=True)
            torch.cuda.synchronize()
            return a.numpy()
        """,
}


@rows(CHANGED)
def test_a_copy_loses_its_flag(row: tuple[str, str]) -> None:
    before, after = row
    check_fix(before, after)


@rows(KEPT)
def test_other_copies_stay(row: str) -> None:
    check_fix(row, "")
