"""One mask as the index of several tensors, and tensors in the text of errors."""

from __future__ import annotations

import pytest
from fixing import UNSAFE, check_fix, rows

STEP = """
    def step(x: Tensor, y: Tensor, ids: Tensor, net):
        mask = ids > 0
        n = len(ids)
{}
        return x, y
"""
SHARED = {
    "one after the other": (
        "x = x[mask]\ny = y[mask]",
        "positions = torch.where(mask)\nx = x[positions]\ny = y[positions]",
    ),
    "in one statement": (
        "x, y = x[~mask], y[~mask]",
        "other_positions = torch.where(~mask)\nx, y = x[other_positions], y[other_positions]",
    ),
    "beside another tensor": (
        "x[mask] = net * y[mask].cumsum(0)",
        "positions = torch.where(mask)\nx[positions] = net * y[positions].cumsum(0)",
    ),
    "changed in place": (
        "x[mask] += net(y[mask])",
        "positions = torch.where(mask)\nx[positions] += net(y[positions])",
    ),
    "with a comment": (
        "# Without padding.\nx = x[mask]  # n\ny = y[mask]",
        "# Without padding.\npositions = torch.where(mask)\nx = x[positions]  # n\ny = y[positions]",
    ),
    "with a slice of all behind it": (
        "x = x[mask, :]\ny = y[mask]",
        "positions = torch.where(mask)\nx = x[positions]\ny = y[positions]",
    ),
    "among other indices": (
        "rows = x.view(-1, 3)[:, 0] > 0\ny[:, rows] -= x[rows, :3].sum()\nx = x[rows]",
        "rows = x.view(-1, 3)[:, 0] > 0\nrows_indices = torch.where(rows)[0]\n"
        "y[:, rows_indices] -= x[rows_indices, :3].sum()\nx = x[rows_indices]",
    ),
    "by masked_select": (
        "x = torch.masked_select(x, mask)\ny = y.masked_select(mask)",
        "positions = torch.where(mask)\nx = x.expand_as(mask)[positions]\ny = y.expand_as(mask)[positions]",
    ),
    "by masked_select, of the mask's shape": (
        "x = torch.masked_select(ids, mask)\ny = y[mask]",
        "positions = torch.where(mask)\nx = ids[positions]\ny = y[positions]",
    ),
    "of what is computed": (
        "y[..., 0][mask] = -torch.masked_select(x * 2, mask)",
        "positions = torch.where(mask)\ny[..., 0][positions] = -(x * 2).expand_as(mask)[positions]",
    ),
    "two by turns": (
        "a = x[mask]\nb = x[~mask]\nx = net(a, y[mask])\ny = net(b, y[~mask])",
        "positions = torch.where(mask)\na = x[positions]\nother_positions = torch.where(~mask)\nb = x[other_positions]\n"
        "x = net(a, y[positions])\ny = net(b, y[other_positions])",
    ),
    "two by turns, one of them among other indices": (
        "a = x[mask]\nm = x.view(-1)\nm = m > 0\nb = x[m, 0]\nx = net(a, y[mask])\ny = net(b, y[m])",
        "positions = torch.where(mask)\na = x[positions]\nm = x.view(-1)\nm = m > 0\n"
        "m_indices = torch.where(m)[0]\nb = x[m_indices, 0]\nx = net(a, y[positions])\ny = net(b, y[m_indices])",
    ),
    "around another statement": (
        "x = x[mask]\nfor _ in range(3):\n    x = x + 1\ny = y[mask]",
        "positions = torch.where(mask)\nx = x[positions]\nfor _ in range(3):\n    x = x + 1\ny = y[positions]",
    ),
}
APART = {
    "used once": "x = x[mask]",
    "another mask between": "x = x[mask]\nmask = y > 0\ny = y[mask]",
    "an attribute that a call may change": "x = net(x[net.mask])\ny = y[net.mask]",
    "filled in": "x = x[mask]\ny[mask] = 0",
    "not in any case": "x = x[mask]\ny = y[mask] if net else y",
    "changed in place between": "x = net(x[mask])\nmask[0] = True\ny = net(y[mask])",
    "among other indices, of unknown rank": "x = x[mask, 0]\ny = y[mask]",
    "no function of torch": "x = x[mask]\ny = net.masked_select(y, mask)",
    "changed by a loop between": (
        "x = net(x[mask])\nfor i in range(3):\n    mask[i] = True\ny = net(y[mask])"
    ),
    "what is called each time": "x = x[net(ids).bool()]\ny = y[net(ids).bool()]",
}


def body(text: str) -> str:
    return STEP.format("\n".join(f"        {line}" for line in text.splitlines()))


@rows(SHARED)
def test_positions_are_found_once(row: tuple[str, str]) -> None:
    check_fix(body(row[0]), body(row[1]), UNSAFE)


@rows(APART)
def test_a_mask_that_serves_once_stays(row: str) -> None:
    check_fix(body(row), "", UNSAFE)


@pytest.mark.parametrize("shape", [(), (1,), (4,), (3, 1), (3, 4)])
def test_positions_give_what_masked_select_gives(shape: tuple[int, ...]) -> None:
    torch = pytest.importorskip("torch")
    mask = torch.randn(3, 4) > 0
    x = torch.randn(shape, requires_grad=True)
    told = torch.masked_select(x, mask), x.expand_as(mask)[torch.where(mask)]
    assert torch.equal(*told)
    one, other = (torch.autograd.grad(each.square().sum(), x)[0] for each in told)
    assert torch.allclose(one, other)


def test_positions_in_one_dimension_stand_among_other_indices() -> None:
    torch = pytest.importorskip("torch")
    x, mask = torch.randn(4, 4, 4), torch.tensor([True, False, True, True])
    kept, rows = torch.where(mask)[0], torch.tensor([0, 2, 1])
    for before, after in (
        ((mask, 0), (kept, 0)),
        ((mask, slice(3)), (kept, slice(3))),
        ((slice(None), mask), (slice(None), kept)),
        ((..., 1, mask), (..., 1, kept)),
        ((rows, mask), (rows, kept)),
        ((mask, slice(None), mask), (kept, slice(None), kept)),
    ):
        assert torch.equal(x[before], x[after])


def test_positions_give_what_the_mask_gives() -> None:
    torch = pytest.importorskip("torch")
    for shape in ((0,), (1,), (5,), (3, 4)):
        x = torch.randn(shape, requires_grad=True)
        mask = torch.randn(shape) > 0
        kept = torch.where(mask)
        assert torch.equal(x[mask], x[kept])
        one, other = (torch.autograd.grad(x[at].square().sum(), x)[0] for at in (mask, kept))
        assert torch.equal(one, other)


NAMES = {
    "is_landscape": "landscape_positions",
    "valid_pair_mask": "valid_pair_positions",
    "mask1": "positions1",
    "msk_i": "positions_i",
    "self.padding": "padding_positions",
    "~is_done": "not_done_positions",
    "(ids > 0)": "selected",
}


@pytest.mark.parametrize(("mask", "name"), NAMES.items(), ids=NAMES)
def test_the_name_of_positions_is_made_of_that_of_the_mask(mask: str, name: str) -> None:
    bound = "" if mask.startswith(("(", "~", "self")) else f"{mask} = ids > 0\n    "
    before = f"""
def step(self, x: Tensor, y: Tensor, n: int, kept_rows, is_done):
    ids = torch.randn(n, 4, device=x.device)
    {bound}is_done, self.padding = ids > 1, ids > 2
    y = y * kept_rows
    {{}}x = x[{{at}}]
    y = y[{{at}}]
    return x, y
"""
    after = before.format(f"{name} = torch.where({mask.strip('()')})\n    ", at=name)
    check_fix(before.format("", at=mask.strip("()")), after, UNSAFE, code="TPF402")
