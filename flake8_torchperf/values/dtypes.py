"""The class of dtypes of a tensor where two paths meet."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flake8_torchperf.values.values import Tensor


def joined_dtype(a: Tensor, b: Tensor) -> str:
    """Return the dtype of two joined tensors: "bool" if one is a mask and the other may be one.

    A tensor that is only declared may be a mask. One of floats counts as a mask too: the dtype
    matters for indices, and floats cannot be an index. If a test showed the dtype, the tensor is a
    mask on that path alone.
    """
    asked = "asked" in (a.role, b.role)
    mask = "bool" in (a.dtype, b.dtype) and any(
        t.dtype == "float" or (t.dtype == "unknown" and not t.chain and not asked) for t in (a, b)
    )
    return a.dtype if a.dtype == b.dtype else "bool" if mask else "unknown"
