"""The class of dtypes of a tensor where two paths meet."""

from __future__ import annotations


def joined_dtype(a: tuple[str, bool], b: tuple[str, bool], *, asked: bool) -> str:
    """Return the dtype of two joined tensors: "bool" if one is a mask and the other may be one.

    Of each tensor its dtype is given, and whether operations have made it. One that is only
    declared may be a mask. One of floats counts as a mask too: the dtype matters for indices, and
    floats cannot be an index. If a test showed a dtype (``asked``), it holds on that path alone.
    """
    dtypes = (a[0], b[0])
    mask = "bool" in dtypes and any(
        dtype == "float" or (dtype == "unknown" and not made and not asked)
        for dtype, made in (a, b)
    )
    return a[0] if a[0] == b[0] else "bool" if mask else "unknown"
