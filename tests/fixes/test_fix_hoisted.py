"""Data that is the same in every round of a loop is made before it."""

from __future__ import annotations

import textwrap

from fixing import SAFE, UNSAFE, check_fix, outcome, rows

from flake8_torchperf.findings.rule import SAFE as SAFELY

MADE = "torch.tensor([0.2, 0.3, 0.4], device=x.device)"
LOOP = """
    def run(x: Tensor, xs: list, low, high, device: torch.device):
        x = torch.abs(x)
        y = torch.zeros_like(x)
        {before}for z in xs:
            {}
        return y
"""


def in_loop(text: str, before: str = "") -> str:
    body = textwrap.indent(textwrap.dedent(text), " " * 12).strip()
    above = textwrap.indent(textwrap.dedent(before), " " * 8).lstrip()
    return LOOP.format(body, before=f"{above}\n        " if above else "")


def named(use: str) -> str:
    return in_loop(f"std = {MADE}\n{use}")


def hoisted(use: str) -> str:
    return in_loop(use, f"std = {MADE}")


READS = {
    "arithmetic": "y = y + x / std",
    "a comparison": "y = y + (x > std)",
    "a function": "y = torch.where(x > 0, x, std)",
    "a method of a tensor": "y = y + x.mul(std)",
    "an operation in place on another": "y.add_(std)",
    "added to another": "y += std",
    "an element set": "y[0] = std",
    "views": "y = y + x * std[:, None].view(1, 3)",
    "a list that is joined": "y = torch.cat([y, std])",
    "its shape": "y = y + x.sum() * std.shape[0]",
    "in a comprehension": "y = sum([x * std for _ in range(2)])",
    "a loss": "y = F.mse_loss(x, std)",
    "an argument by name": "y = torch.clamp(x, max=std)",
    "an inner block": "if low:\n    y = y + x / std",
}
CHANGES = {
    "a method in place": "std.mul_(2)\ny = y + std",
    "augmented": "std += 1\ny = y + std",
    "an element": "std[0] = 1\ny = y + std",
    "a view in place": "std[:2].zero_()\ny = y + std",
    "out": "torch.mul(x, 2, out=std)\ny = y + std",
    "data": "std.data.zero_()\ny = y + std",
    "bound again": "y = y + std\nstd = x",
    "a leaf": "std.requires_grad_()\ny = y + std",
}
KEEPS = {
    "appended": "xs.append(std)",
    "in a dict": "d = {}\nd['std'] = std\ny = y + d['std']",
    "in a list": "both = [x, std]",
    "a parameter that may be a list": "low[0] = std",
    "in a set": "low.add(std)",
    "under another name": "t = std\nt += 1",
    "a view under another name": "t = std.view(3)\nt += 1",
    "what may be the same tensor": "t = std.float()\nt += 1",
    "an attribute": "low.std = std",
    "a call": "y = low(std)",
    "a list that is added to": "low += std",
    "yielded": "yield std",
    "returned": "if low:\n    return std",
    "returned behind arithmetic that gives it back": "if low:\n    return +std",
    "a closure": "xs.append(lambda: std * 2)",
    "compared by identity": "y = y + (std is low)",
    "by keyword to what may keep it": "y = low(std=std)",
}
PLACES = {
    "an except": f"try:\n    std = {MADE}\n    y = y + std\nexcept ValueError:\n    pass",
    "another context": f"with low:\n    std = {MADE}\n    y = y + std",
    "before it is bound": f"if low:\n    y = y + std\nstd = {MADE}\ny = y + std",
    "bound in a branch": f"if low:\n    std = {MADE}\ny = y + std",
    "a function": f"def inner():\n    return x * {MADE}\ny = y + inner()",
    "a lambda": f"xs.append(lambda: x * {MADE})",
}
VALUES = {
    "an element of the loop": "y = y + torch.tensor([z, 1.0], device=x.device)",
    "a number that changes": "low = low + 1\ny = y + torch.tensor([low, 1.0], device=x.device)",
    "a list that may change": "xs.append(1)\ny = y + torch.tensor(xs, device=x.device)",
    "a list that is handed on": "high(low)\ny = y + torch.tensor(low, device=x.device)",
    "a call": "y = y + torch.tensor([high(), 1.0], device=x.device)",
    "a device of the loop": "y = y + torch.tensor([0.2, 0.3], device=z.device)",
    "a device that is set": "x = x * 2\ny = y + torch.tensor([0.2, 0.3], device=x.device)",
    "an attribute that is set": "low.device = 'cuda'\n"
    "y = y + torch.tensor([0.2, 0.3], device=low.device)",
    "a leaf": "y = y + torch.tensor([0.2, 0.3], device=x.device, requires_grad=True)",
    "a device that may be None": "y = y + (0 if low is None else "
    "torch.tensor([0.2, 0.3], device=low.device))",
    "a device that is asked for": "if low is not None:\n"
    "    y = y + torch.tensor([0.2, 0.3], device=low.device)",
}


def stays_in_loop(before: str) -> None:
    """Assert that no fix takes anything out of a loop."""
    text = "import torch\nimport torch.nn.functional as F\nfrom torch import Tensor\n\n"
    done = outcome(text + textwrap.dedent(before), UNSAFE, code="TPF502")
    assert done.first, "nothing is reported"
    assert not [change.edit.name for change in done.changes if "hoisted" in change.edit.name]


@rows(READS)
def test_what_is_only_read_is_made_before_the_loop(row: str) -> None:
    check_fix(named(row), hoisted(row), code="TPF502")


@rows(CHANGES | KEEPS)
def test_what_is_changed_or_kept_stays(row: str) -> None:
    stays_in_loop(named(row))


@rows(PLACES | VALUES)
def test_what_the_loop_may_change_stays(row: str) -> None:
    stays_in_loop(in_loop(row))


AFTER = {
    "read behind the loop": "return y + std",
    "returned": "return y, std",
    "a closure": "return lambda: y + std",
}


@rows(AFTER)
def test_a_name_that_is_read_behind_the_loop_stays(row: str) -> None:
    """Had the loop run no round, there would be no such name."""
    stays_in_loop(named("y = y + std").replace("return y", row))


def test_a_name_of_the_module_stays() -> None:
    loop = f"for z in xs:\n    std = {MADE}\n    y = y + std\n"
    stays_in_loop(
        f"def run(x: Tensor, xs: list, y):\n    global std\n{textwrap.indent(loop, '    ')}"
    )


NAMES = {
    "a product": (f"y = y + x * {MADE}", "factor", "y = y + x * factor"),
    "a quotient": (f"y = y + x / {MADE}", "divisor", "y = y + x / divisor"),
    "a keyword": (
        f"y = F.cross_entropy(x, y, weight={MADE})",
        "weight",
        "y = F.cross_entropy(x, y, weight=weight)",
    ),
    "a builtin function": (
        f"y = torch.clamp(x, max={MADE})",
        "constant",
        "y = torch.clamp(x, max=constant)",
    ),
    "an index": (
        "y = y + x[torch.tensor([0, 2, 1], device=x.device)]",
        "positions",
        "y = y + x[positions]",
    ),
}


@rows(NAMES)
def test_what_stands_in_an_expression_gets_a_name(row: tuple[str, str, str]) -> None:
    before, name, after = row
    made = before[before.index("torch.tensor") : before.index("device)") + len("device)")]
    check_fix(in_loop(before), in_loop(after, f"{name} = {made}"), code="TPF502")


def test_it_goes_before_the_outermost_loop_that_leaves_it_alone() -> None:
    text = """
        def run(xs: list, count: int):
            y = 0
            for x in xs:
                w = torch.abs(x)
                {}for _ in range(count):
                    while y < 3:
                        {}y = y + (w * std).sum()
            return y
    """
    made = f"std = {MADE.replace('x.', 'w.')}\n"
    check_fix(text.format("", made + " " * 24), text.format(made + " " * 16, ""), code="TPF502")


def test_comments_stay_with_their_statement() -> None:
    before = """
        def run(x: Tensor, xs: list):
            y = torch.zeros_like(x)

            # all of them
            for z in xs:  # each
                # of the images
                std = torch.tensor([0.2, 0.3], device=x.device)  # RGB

                # scaled
                y = y + x / std
            return y
    """
    after = """
        def run(x: Tensor, xs: list):
            y = torch.zeros_like(x)

            # of the images
            std = torch.tensor([0.2, 0.3], device=x.device)  # RGB
            # all of them
            for z in xs:  # each
                # scaled
                y = y + x / std
            return y
    """
    check_fix(before, after, code="TPF502")


UNPROVED = {
    "a number that a name holds": "torch.tensor([low, high], device=x.device)",
    "a device that a caller passes": "torch.tensor([0.2, 0.3], device=device)",
    "cuda": 'torch.tensor([0.2, 0.3], device="cuda")',
    "moved": "torch.tensor([0.2, 0.3]).to(device, torch.half)",
    "the dtype of a tensor": "torch.tensor([0.2, 300], dtype=x.dtype, device=x.device)",
    "ragged lists": "torch.tensor([[0.2, 0.3], [0.4]], device=x.device)",
    "a number that is too large": "torch.tensor([1, 300], dtype=torch.uint8, device=x.device)",
}


@rows(UNPROVED)
def test_what_may_fail_without_a_round_is_unsafe(row: str) -> None:
    before, after = in_loop(f"y = y + x * {row}"), in_loop("y = y + x * factor", f"factor = {row}")
    check_fix(before, "", SAFE, code="TPF502")
    # Outside the loop, another fix may queue the copy.
    after = after.replace("torch.half)", "torch.half, non_blocking=True)")
    check_fix(before, after, UNSAFE, code="TPF502")


def test_an_annotation_makes_nothing_safe() -> None:
    """An array has a device, too, which is a text that torch may not know."""
    text = "def run(x: Tensor, xs: list):\n    y = 0\n    {}for z in xs:\n        y = y + x * {}\n"
    text += "    return y\n"
    check_fix(text.format("", MADE), "", SAFE, code="TPF502")
    made = f"factor = {MADE}\n    "
    check_fix(text.format("", MADE), text.format(made, "factor"), UNSAFE, code="TPF502")


def test_what_a_call_may_do_to_the_default_dtype_is_unsafe() -> None:
    calls = f"low()\ny = y + x * {MADE}"
    check_fix(in_loop(calls), "", SAFE, code="TPF502")
    typed = MADE.replace("device", "dtype=torch.float32, device", 1)
    after = in_loop("low()\ny = y + x * factor", f"factor = {typed}")
    check_fix(in_loop(calls.replace(MADE, typed)), after, SAFE, code="TPF502")


def test_a_name_that_may_not_be_bound_yet_stays() -> None:
    stays_in_loop("""
        def run(c, xs: list):
            if c:
                x = torch.ones(3, device="cuda")
            y = 0
            for z in xs:
                if c:
                    y = y + x * torch.tensor([0.2, 0.3, 0.4], device=x.device)
            return y
    """)


def test_a_number_is_filled_in_where_it_stands() -> None:
    filled = "y = y + x * torch.full((), 0.5, device=x.device)"
    before = in_loop("y = y + x * torch.tensor(0.5, device=x.device)")
    check_fix(before, in_loop(filled), UNSAFE, code="TPF502")


def test_copies_are_queued_where_they_cannot_leave_the_loop() -> None:
    before = in_loop("std = torch.tensor([0.2, 0.3]).to(x.device)\nxs.append(std)")
    after = before.replace("x.device", "x.device, non_blocking=x.is_cuda")
    check_fix(before, after, SAFE, code="TPF502")


def test_hoisting_comes_before_queueing() -> None:
    made = "torch.tensor([0.2, 0.3, 0.4]).to(x.device)"
    done = outcome(
        f"import torch\n{textwrap.dedent(in_loop(f'y = y + x * {made}'))}".replace(
            "Tensor", "torch.Tensor"
        )
    )
    assert done.changes[0].edit.name == "hoisted-constant"
    assert done.changes[0].edit.safety == SAFELY
