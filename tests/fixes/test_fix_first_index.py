"""The first index of a mask, read as a number, comes from `argmax`."""

from __future__ import annotations

from fixing import UNSAFE, check_fix, rows

STEP = """
    class M(nn.Module):
        def forward(self, x: Tensor, y):
            return {}
"""
CHANGED = {
    "of a comparison": ("(x[0] != 1).nonzero()[0].item()", "(x[0] != 1).int().argmax().item()"),
    "of numbers": ("x[0].nonzero()[0].item()", "(x[0] != 0).int().argmax().item()"),
    "by a function": ("int(torch.nonzero(x > 2)[0])", "(x > 2).int().argmax().item()"),
    "of a method's mask": ("x.isnan().nonzero()[0].item()", "x.isnan().int().argmax().item()"),
}
KEPT = {
    "the last one": "(x > 2).nonzero()[-1].item()",
    "a tensor": "(x > 2).nonzero()[0]",
    "one of a row": "(x > 2).nonzero()[0, 1].item()",
    "as a tuple": "(x > 2).nonzero(as_tuple=True)[0].item()",
}


@rows(CHANGED)
def test_the_first_index_is_that_of_the_largest(row: tuple[str, str]) -> None:
    before, after = row
    check_fix(STEP.format(before), STEP.format(after), UNSAFE, code="TPF401")


@rows(KEPT)
def test_other_indices_stay(row: str) -> None:
    check_fix(STEP.format(row), "", UNSAFE, code="TPF401")
