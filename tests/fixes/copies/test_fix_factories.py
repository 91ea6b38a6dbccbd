"""Tensors that are made on the host and then moved, made where they are used: TPF501."""

from __future__ import annotations

import pytest
from fixing import UNSAFE, check_fix, rows

from flake8_torchperf.findings.documentation import read_documentation
from flake8_torchperf.linter import lint
from flake8_torchperf.options import Options

MADE = {
    "to a device": ("torch.zeros(n).to(x.device)", "torch.zeros(n, device=x.device)"),
    "by keyword": ("torch.ones(n).to(device=x.device)", "torch.ones(n, device=x.device)"),
    "dtype too": (
        "torch.zeros(n).to(x.device, x.dtype)",
        "torch.zeros(n, device=x.device, dtype=x.dtype)",
    ),
    "like another": (
        "torch.eye(n).to(x)",
        "torch.eye(n, device=x.device, dtype=x.dtype)",
    ),
    "type_as": ("torch.ones(n).type_as(x)", "torch.ones(n, device=x.device, dtype=x.dtype)"),
    "cuda": ("torch.ones(n).cuda()", 'torch.ones(n, device="cuda")'),
    "queued": (
        "torch.zeros(n).to(x.device, non_blocking=True)",
        "torch.zeros(n, device=x.device)",
    ),
    "whole numbers": ("torch.arange(n).to(x.device)", "torch.arange(n, device=x.device)"),
    "from and to": (
        "torch.arange(1, x.shape[0] + 1).to(x.device)",
        "torch.arange(1, x.shape[0] + 1, device=x.device)",
    ),
    "behind an index": (
        "torch.arange(n)[:, None].to(x.device)",
        "torch.arange(n, device=x.device)[:, None]",
    ),
    "behind a view": (
        "torch.zeros(n, 2).view(-1).unsqueeze(0).to(x.device)",
        "torch.zeros(n, 2, device=x.device).view(-1).unsqueeze(0)",
    ),
    "behind a cast": (
        "torch.arange(n).float().to(x.device)",
        "torch.arange(n, device=x.device).float()",
    ),
    "zeros, then cast": (
        "torch.zeros(n).int().to(x.device)",
        "torch.zeros(n, dtype=torch.int32, device=x.device)",
    ),
    "viewed, then cast": (
        "torch.ones(n)[None].to(torch.bool).cuda()",
        'torch.ones(n, dtype=torch.bool, device="cuda")[None]',
    ),
    "moved, then cast": (
        "torch.zeros(n).to(x.device).long()",
        "torch.zeros(n, device=x.device, dtype=torch.int64)",
    ),
    "cast twice": (
        "torch.zeros(n).int().float().to(x.device)",
        "torch.zeros(n, device=x.device).int().float()",
    ),
    "with a dtype": (
        "torch.zeros(n, dtype=torch.half).to(x.device)",
        "torch.zeros(n, dtype=torch.half, device=x.device)",
    ),
    "a full one": ("torch.full((n,), 0.1).to(x.device)", "torch.full((n,), 0.1, device=x.device)"),
    "in brackets": ("(torch.zeros(n).to(x.device))", "(torch.zeros(n, device=x.device))"),
    "rounded where it was moved": (
        "torch.full((n,), 0.1).to(x.device, torch.half)",
        "torch.full((n,), 0.1, device=x.device).to(torch.half)",
    ),
    "two dtypes": (
        "torch.zeros(n, dtype=torch.int).to(x.device, torch.half)",
        "torch.zeros(n, dtype=torch.int, device=x.device).to(torch.half)",
    ),
    "ints in another dtype": (
        "torch.arange(len(x)).to(x)",
        "torch.arange(len(x), device=x.device).to(x.dtype)",
    ),
    "cast behind the move": (
        "torch.ones(n).to(x.device).to(x.dtype)",
        "torch.ones(n, device=x.device, dtype=x.dtype)",
    ),
    "cast behind, by name": (
        "torch.zeros(n)[None].to(x.device).to(torch.float16)",
        "torch.zeros(n, device=x.device, dtype=torch.float16)[None]",
    ),
    "times a number": ("(torch.ones(n) * 2).to(x.device)", "torch.ones(n, device=x.device) * 2"),
    "times a number in a sum": (
        "3 * (torch.ones(n) * -0.0 + 2).to(x.device)",
        "3 * (torch.ones(n, device=x.device) * -0.0 + 2)",
    ),
    "plus a number": (
        "1 + (torch.ones(n) * 2).to(x.device) - (torch.ones(n) + 1).to(x.device)",
        "1 + torch.ones(n, device=x.device) * 2 - (torch.ones(n, device=x.device) + 1)",
    ),
    "ints times an int": (
        "(torch.arange(len(x)) * len(x) + 1).to(x.device)",
        "torch.arange(len(x), device=x.device) * len(x) + 1",
    ),
    "the lower half": (
        "torch.tril(torch.ones(n, n)).to(x.device)",
        "torch.tril(torch.ones(n, n, device=x.device))",
    ),
    "the lower half, as bools": (
        "torch.ones(n, n).tril(-1).bool().to(x.device)",
        "torch.ones(n, n, device=x.device).tril(-1).bool()",
    ),
    "cast and a view": (
        "torch.arange(n).float().unsqueeze(0).to(x.device)",
        "torch.arange(n, device=x.device).float().unsqueeze(0)",
    ),
    "joined": (
        "torch.cat([torch.zeros(1), torch.ones(n)]).to(x.device)",
        "torch.cat([torch.zeros(1, device=x.device), torch.ones(n, device=x.device)])",
    ),
    "rows that arithmetic copies": (
        "(torch.zeros(n).expand(4, -1) + 1).to(x.device)",
        "torch.zeros(n, device=x.device).expand(4, -1) + 1",
    ),
    "a tensor of a batch": (
        "torch.zeros(n).to(x[0].device)",
        "torch.zeros(n, device=x[0].device)",
    ),
}
ROUNDED = {
    "times an annotated number": (
        "(torch.ones(n) * n).to(x.device)",
        "torch.ones(n, device=x.device) * n",
    ),
    "divided": (
        "(torch.arange(n).float() / 3).to(x.device)",
        "torch.arange(n, device=x.device).float() / 3",
    ),
    "a function of each": (
        "torch.sin(torch.arange(n)).to(x.device)",
        "torch.sin(torch.arange(n, device=x.device))",
    ),
    "a power": (
        "1.0 / (10000 ** (torch.arange(0, n, 2).float().to(x.device) / n))",
        "1.0 / (10000 ** (torch.arange(0, n, 2, device=x.device).float() / n))",
    ),
    "floats that ints may not hold": (
        "torch.full((n,), 1e10).int().to(x.device)",
        "torch.full((n,), 1e10, device=x.device).int()",
    ),
    "numbers in another dtype": (
        "torch.arange(n).to(x)",
        "torch.arange(n, device=x.device).to(x.dtype)",
    ),
}
STAY = {
    "rounded by each device": "torch.linspace(0, 1, n).to(x.device)",
    "perhaps fractions": "torch.arange(0.0, n, 0.1).to(x.device)",
    "fractions, then cast": "torch.arange(0.0, n, 0.1).long().to(x.device)",
    "numbers in another dtype": "torch.arange(n).to(x)",
    "times what may be a tensor": "(torch.ones(n) * x.scale).to(x.device)",
    "times what the device has": "(torch.ones(n) * x.cpu()).to(x.device)",
    "a part of a row": "torch.zeros(n)[:3].to(x.device)",
    "beside a tensor from elsewhere": "torch.cat([torch.zeros(1), x.cpu()]).to(x.device)",
    "doubles, which not every device has": "torch.ones(n).double().float().to(x.device)",
    "doubles, moved as floats": "torch.zeros(n, dtype=torch.double).to(x.device, torch.float)",
    "a leaf": "torch.zeros(n, requires_grad=True).to(x.device)",
    "one row many times": "torch.zeros(n).expand(4, -1).to(x.device)",
    "a device that is asked for": "torch.zeros(n).to(pick(x))",
    "another layout": "torch.zeros(n).to(x.device, memory_format=torch.channels_last)",
}
BODY = """
    def step(x: Tensor, n: int):
        for _ in range(3):
            y = {}
            x = x + y.sum()
        return x
"""


@rows(MADE)
def test_a_factory_makes_it_there(row: tuple[str, str]) -> None:
    before, after = row
    check_fix(BODY.format(before), BODY.format(after), code="TPF501")


@rows(ROUNDED)
def test_what_a_device_may_round_in_its_own_way_is_made_there_on_request(
    row: tuple[str, str],
) -> None:
    before, after = row
    check_fix(BODY.format(before), "", code="TPF501")
    check_fix(BODY.format(before), BODY.format(after), UNSAFE, code="TPF501")


@rows(STAY)
def test_what_might_become_another_tensor_stays(row: str) -> None:
    check_fix(BODY.format(row), "", code="TPF501")


COMPUTED = {
    "two factories": (
        "(torch.arange(n)[None] < torch.arange(n)[:, None]).to(x.device)",
        "torch.arange(n, device=x.device)[None] < torch.arange(n, device=x.device)[:, None]",
    ),
    "a size that may be a tensor": (
        "(torch.arange(0, x.n) / x.n).to(x.device)",
        "torch.arange(0, x.n, device=x.device) / x.n",
    ),
}


@rows(COMPUTED)
def test_what_is_computed_on_the_host_and_moved_is_computed_there(row: tuple[str, str]) -> None:
    before, after = row
    check_fix(BODY.format(before), BODY.format(after), UNSAFE, code="TPF501")


FILLED = {
    "slices": (
        "y = torch.zeros(n)\ny[0, 1:] = 1\ny[..., :2] = -0.5\ny = y.to(x.device)\nx = x + y",
        "y = torch.zeros(n, device=x.device)\ny[0, 1:] = 1\ny[..., :2] = -0.5\nx = x + y",
    ),
    "through an unknown index": (
        "y = torch.zeros(n)\ny[x, 1:] = 1\ny = y.to(x.device)\nx = x + y",
        "",
    ),
    "with a tensor": ("y = torch.zeros(n)\ny[1:] = z\ny = y.to(x.device)\nx = x + y", ""),
    "then of another dtype": ("y = torch.zeros(n)\ny[1:] = 1\ny = y.to(x)\nx = x + y", ""),
}
HELD = {
    "moved later": (
        "y = torch.zeros(n)\nx = x + 1\ny = y.to(x.device)\nx = x + y",
        "",
    ),
    "moved under its name": (
        "y = torch.zeros(n)\nz = x + 1\ny = y.to(x.device)\nx = z + y",
        "y = torch.zeros(n, device=x.device)\nz = x + 1\nx = z + y",
    ),
    "moved where it is used": (
        "y = torch.arange(n)\nx = x + y.to(x.device)",
        "y = torch.arange(n, device=x.device)\nx = x + y",
    ),
    "behind views": (
        "y = torch.arange(n)\ny = y[None]\nx = x + y.unsqueeze(0).to(x.device)",
        "y = torch.arange(n, device=x.device)\ny = y[None]\nx = x + y.unsqueeze(0)",
    ),
    "used before": ("y = torch.zeros(n)\nz = y + 1\ny = y.to(x.device)\nx = x + y + z", ""),
    "an element is filled before": (
        "y = torch.zeros(n)\ny[0] = 1\ny = y.to(x.device)\nx = x + y",
        "",
    ),
    "of the type of another": (
        "y = torch.zeros(n).type(x.type()).to(x.device)\nx = x + y",
        "y = torch.zeros(n, dtype=x.dtype, device=x.device)\nx = x + y",
    ),
    "of the dtype of another": (
        "y = torch.ones(n).to(x.dtype).to(x.device)\nx = x + y",
        "y = torch.ones(n, dtype=x.dtype, device=x.device)\nx = x + y",
    ),
    "numbers of the type of another": (
        "y = torch.arange(n).type(x.type()).to(x.device)\nx = x + y",
        "",
    ),
    "used afterwards": ("y = torch.zeros(n)\nx = x + y.to(x.device)\nprint(y)", ""),
    "used by a function": (
        "y = torch.zeros(n)\nf = lambda: y\ny = y.to(x.device)\nx = x + y + f()",
        "",
    ),
    "made in one case": (
        "y = torch.ones(n)\nif n:\n    y = torch.zeros(n)\ny = y.to(x.device)\nx = x + y",
        "",
    ),
    "left in between": (
        "y = torch.ones(n)\nif n:\n    return x\ny = y.to(x.device)\nx = x + y",
        "",
    ),
    "caught": ("try:\n    y = torch.ones(n)\n    y = y.to(x.device)\nfinally:\n    print(y)", ""),
    "with a comment": (
        "y = torch.ones(n)\n# To the device.\ny = y.to(x.device)\nx = x + y",
        "",
    ),
}


@rows(FILLED)
def test_what_is_filled_before_it_is_moved_is_made_there(row: tuple[str, str]) -> None:
    before, after = ("\n            ".join(text.splitlines()) for text in row)
    body = BODY.replace("y = {}\n            x = x + y.sum()", "{}")
    check_fix(body.format(before), body.format(after) if after else "", code="TPF501")


@rows(HELD)
def test_a_name_that_serves_the_move_alone_is_seen_through(row: tuple[str, str]) -> None:
    before, after = ("\n            ".join(text.splitlines()) for text in row)
    body = BODY.replace("y = {}\n            x = x + y.sum()", "{}")
    check_fix(body.format(before), body.format(after) if after else "", code="TPF501")


BROKEN = {
    "brackets for the line breaks alone": (
        "(\n    torch.ones(n, 3)\n    .to(x.device)\n    .to(x.dtype)\n)",
        "torch.ones(n, 3, device=x.device, dtype=x.dtype)",
    ),
    "further line breaks": (
        "(\n    torch.ones(n)\n    .float()\n    .to(x.device)\n)",
        "torch.ones(n, dtype=torch.float32, device=x.device)",
    ),
    "line breaks that remain": (
        "(\n    torch.arange(n)\n    .float()\n    .to(x.device)\n)",
        "(\n    torch.arange(n, device=x.device)\n    .float()\n)",
    ),
    "a comment": (
        "(  # all\n    torch.ones(n)\n    .to(x.device)\n)",
        "(  # all\n    torch.ones(n, device=x.device)\n)",
    ),
}


@rows(BROKEN)
def test_brackets_stay_where_lines_are_broken_in_them(row: tuple[str, str]) -> None:
    before, after = ("\n            ".join(text.splitlines()) for text in row)
    check_fix(BODY.format(before), BODY.format(after), code="TPF501")


LINES = """
    def step(x: Tensor, n: int):
        for _ in range(3):
            y = torch.zeros(
                n,  # rows
                3,  # columns
            ).to(x.device)
            z = torch.ones(
                n,
                3  # columns
            ).to(x.device)
            w = torch.ones(
                n
            ).to(x.device)
            x = x + y.sum() + z.sum() + w.sum()
        return x
"""
LINES_AFTER = """
    def step(x: Tensor, n: int):
        for _ in range(3):
            y = torch.zeros(
                n,  # rows
                3,  # columns
                device=x.device,
            )
            z = torch.ones(
                n,
                3,  # columns
                device=x.device
            )
            w = torch.ones(
                n,
                device=x.device
            )
            x = x + y.sum() + z.sum() + w.sum()
        return x
"""


def test_arguments_go_on_as_they_stand() -> None:
    check_fix(LINES, LINES_AFTER, code="TPF501")


def test_a_comment_that_would_be_lost_keeps_the_text() -> None:
    body = BODY.format("torch.zeros(n).to(  # here\n                x.device)")
    check_fix(body, "", code="TPF501")


def test_torch_may_be_imported_in_the_function() -> None:
    before = BODY.format("torch.zeros(n).to(x.device)").replace(
        "for _", "import torch\n        for _"
    )
    after = BODY.format("torch.zeros(n, device=x.device)").replace(
        "for _", "import torch\n        for _"
    )
    check_fix(before, after, code="TPF501")


def test_a_name_that_is_torch_no_longer_is_left_alone() -> None:
    before = BODY.format("torch.zeros(n).to(x.device)").replace(
        "for _", "torch = pick()\n        for _"
    )
    check_fix(before, "", code="TPF501")


def test_random_numbers_come_from_another_generator() -> None:
    before = BODY.format("torch.rand(n).to(x.device)")
    check_fix(before, "", code="TPF501")
    check_fix(before, BODY.format("torch.rand(n, device=x.device)"), UNSAFE, code="TPF501")


INDEXED = {
    "rows": ("x[torch.arange(n), ids]", "x[torch.arange(n, device=x.device), ids]"),
    "a cast": ("x[torch.arange(n).long()]", "x[torch.arange(n, device=x.device).long()]"),
}


@rows(INDEXED)
def test_an_index_is_made_where_the_tensor_is(row: tuple[str, str]) -> None:
    before, after = row
    body = BODY.replace("n: int", "ids: Tensor, n: int")
    check_fix(body.format(before), body.format(after), code="TPF501")


@pytest.mark.parametrize(
    ("made", "name", "changes"),
    [
        ("torch.arange(10)", "device-argument", ""),
        ("torch.linspace(0, 1, 10)", "rounding-device-argument", "may round the last bit"),
        ("torch.rand(10)", "random-device-argument", "draws other random numbers"),
        ("torch.rand(10).sin()", "random-device-argument", "draws other random numbers"),
        ("(torch.arange(10) / 3)", "rounding-device-argument", "may round the last bit"),
    ],
)
def test_one_fix_is_offered_for_one_change(made: str, name: str, changes: str) -> None:
    source = (
        f"import torch\n\n\ndef forward(x: torch.Tensor):\n    return x + {made}.to(x.device)\n"
    )
    (finding,) = lint(source, "model.py", Options(), UNSAFE.safeties)
    assert [edit.name for edit in finding.edits] == [name]
    (told,) = (one.changes for one in read_documentation(finding.rule).fixes if one.name == name)
    assert (changes in told) if changes else told == ""
