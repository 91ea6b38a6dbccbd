"""Forms of assignments, indices, copies and new tensors, each measured as it is written.

For these, waiting is not a property of an operation: `v[0] = 1.0` waits and `x[0] = 1.0` does not.
Provides the texts, and a function that makes one callable on a device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

FORMS = (
    # A number assigned through integers, slices, positions and masks.
    "v[0] = 1.0", "v[0] = 1", "v[-1] = 0", "v[n] = 1.0", "b[0] = True", "li[0] = 2",
    "v[1:3] = 1.0", "v[:] = 0", "v[...] = 0", "b[1:] = False",
    "x[0] = 0.0", "x[:, 0] = 0", "x[0, 0] = 1.0", "x[n, n] = 1.0", "x[:, :3] = 0",
    "x[..., 0] = 0", "x[None] = 0", "x[0, 1:] = 0",
    "v[ids] = 1.0", "x[ids] = 0", "x[:, ids] = 0", "x[ids, i2] = 0", "x[ids, 0] = 0",
    "b[ids] = True", "v[m] = 0.0", "x[m] = 0", "x[:, m] = 0", "x[m, 0] = 0", "x[mm] = 0",
    "v[[0, 1]] = 1", "v[s > 0] = 0",
    # A tensor or a list assigned.
    "v[0] = h0", "v[0] = s", "v[ids] = s", "v[m] = s", "v[m] = h0", "v[1:6] = hv", "v[:5] = hv",
    "x[0, 1:3] = torch.tensor([1.0, 2.0])", "x[0] = v", "x[ids] = v",
    "v[hids] = 1.0", "v[hids] = s",
    # The same without an index to assign through.
    "v[0].fill_(1.0)", "x[:, 0].fill_(0)", "v[1:3].fill_(1)",
    "v.index_fill_(0, ids, 1.0)", "v.index_fill_(0, ids, s)", "x.index_fill_(1, ids, 0)",
    "x.index_put_((ids, i2), x.new_zeros(()))", "x.index_put_((ids, i2), h0)",
    "v.masked_fill_(m, 0.0)", "v.masked_fill_(m, s)", "v.masked_fill(m, h0)",
    "torch.where(m, v, s)", "torch.where(m, v, 0.0)", "torch.where(m, v, h0)",
    # Numbers and tensors together.
    "v + 1.0", "v * h0", "v * s", "torch.maximum(v, h0)", "v.clamp(min=s)", "v.clamp(min=h0)",
    "torch.add(v, v, alpha=2)", "v.sum() == 0", "v ** h0",
    # Tensors made on the device.
    "torch.tensor(0.0, device=d)", "torch.tensor([0.0], device=d)", "torch.tensor([], device=d)",
    "torch.tensor(s, device=d)", "v.new_tensor(1.0)", "v.new_tensor([1.0])", "v.new_tensor([])",
    "v.new_full((), 1.0)", "torch.full((), 1.0, device=d)", "torch.scalar_tensor(1.0, device=d)",
    "torch.as_tensor(1.0, device=d)", "torch.as_tensor(hv, device=d)",
    "torch.as_tensor(v, device=d)", "torch.arange(n, device=d)", "torch.ones_like(hv, device=d)",
    "torch.linspace(0, 1, 5, device=d)",
    "torch.stack([s, s])", "torch.tensor([s, s])", "torch.tensor([s, s], device=d)",
    "torch.cat([v, v])",
    # Copies.
    "torch.tensor(1.0).to(d)", "torch.tensor(1.0).to(d, non_blocking=True)", "torch.zeros(5).to(d)",
    "hv.to(v)", "hv.cuda()", "hv.pin_memory().to(d)", "hv.pin_memory().to(d, non_blocking=True)",
    "v[:5].copy_(hv)", "v[:5].copy_(hv, non_blocking=True)", "hv.copy_(v[:5])", "v.to(d)",
    "v.to(torch.float16)", "v.cpu()", "v.to('cpu')", "v.to('cpu', non_blocking=True)",
    # Indexing.
    "x[[0, 2]]", "x[:, [0, 2]]", "x[torch.tensor([0, 2])]", "x[hids]", "x[0]", "x[0, 0]", "x[ids]",
    "x[ids, i2]", "x[m]", "x[:, m]", "x[s.long() * 0]", "x[(s * 0).long():]", "x[h0.long()]",
    "x.index_select(0, ids)", "x.index_select(0, ids[0])", "x.gather(1, i2[:, None])",
    "x.split([3, 61])", "x.repeat_interleave(2, 0)", "torch.nn.functional.pad(x, (1, 1))",
    # Reads.
    "v.tolist()", "v[0].item()", "str(v)", "v.data_ptr()", "float(s)", "bool(s)", "len(v)",
)  # fmt: skip
PREFIX = "form: "
HELD = (
    "v: 64 floats, x: 64x64, b: 64 truth values, li: 64 integers, m and mm: masks of v and x, "
    "ids, i2: positions, s: 0-d, all on the device d; h0: 0-d, hv: 5 floats, hids: positions, all "
    "on the host; n: 5"
)


def holders(device: str) -> dict[str, Any]:
    """Return new values for the names that forms use."""
    x = torch.rand(64, 64, device=device)
    return {
        "torch": torch,
        "d": torch.device(device),
        "n": 5,
        "v": torch.rand(64, device=device),
        "x": x,
        "b": torch.zeros(64, dtype=torch.bool, device=device),
        "li": torch.arange(64, device=device),
        "m": torch.arange(64, device=device) % 2 == 0,
        "mm": x > 0.5,
        "ids": torch.arange(3, device=device),
        "i2": torch.arange(3, device=device) + 1,
        "s": torch.rand((), device=device),
        "h0": torch.ones(()),
        "hv": torch.ones(5),
        "hids": torch.arange(3),
    }


def prepared(text: str, device: str) -> Callable[[], object]:
    """Return a call that runs the form once, as a whole statement."""
    code = compile(text, f"<{text}>", "exec")
    names = holders(device)
    return lambda: exec(code, names)
