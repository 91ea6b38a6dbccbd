"""Text that is not written while torch compiles."""

from __future__ import annotations

import pytest
from fixing import UNSAFE, check_fix

CHANGED = [
    pytest.param(
        """
        @torch.compile
        def f(x: Tensor):
            # the shape
            print(
                "shape",  # of x
                x.shape,
            )  # here
            y = x + 1
            print("done"); y = y + 1
            return print(y)
        """,
        """
        @torch.compile
        def f(x: Tensor):
            # the shape
            if not torch.compiler.is_compiling():
                print(
                    "shape",  # of x
                    x.shape,
                )  # here
            y = x + 1
            print("done"); y = y + 1
            return print(y)
        """,
        id="a statement, and no other",
    ),
    pytest.param(
        """
        import warnings
        from torch.compiler import is_compiling

        @torch.compile
        def f(x: Tensor):
            warnings.warn("slow")
            return x + 1
        """,
        """
        import warnings
        from torch.compiler import is_compiling

        @torch.compile
        def f(x: Tensor):
            if not is_compiling():
                warnings.warn("slow")
            return x + 1
        """,
        id="the file's own name",
    ),
]


@pytest.mark.parametrize(("before", "after"), CHANGED)
def test_text_is_written_outside(before: str, after: str) -> None:
    check_fix(before, after, UNSAFE, code="TPF601")
