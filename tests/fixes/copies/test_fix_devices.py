"""Numbers that become tensors where they are used: TPF502 and TPF407."""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Callable
from typing import Any

import pytest
from fixing import UNSAFE, check_fix, outcome, rows

BODY = """
    def step(x: Tensor, n: int):
        for _ in range(3):
            y = {}
            x = x + y.sum()
        return x
"""


FILLED = {
    "a float": ("torch.tensor(0.5, device=x.device)", "torch.full((), 0.5, device=x.device)"),
    "moved": ("torch.tensor(0.5).to(x.device)", "torch.full((), 0.5, device=x.device)"),
    "zero": ("torch.tensor(0.0, device=x.device)", "torch.zeros((), device=x.device)"),
    "one": ("torch.tensor(1.).to(x.device)", "torch.ones((), device=x.device)"),
    "zero with a sign": (
        "torch.tensor(-0.0, device=x.device)",
        "torch.full((), -0.0, device=x.device)",
    ),
    "a list of one": (
        "torch.tensor([0], device=x.device)",
        "torch.zeros(1, device=x.device, dtype=torch.int64)",
    ),
    "a list of the same": (
        "torch.tensor([[1.0, 1.0]], device=x.device)",
        "torch.ones((1, 2), device=x.device)",
    ),
    "with a dtype": (
        "torch.tensor(1e-10, dtype=x.dtype, device=x.device)",
        "torch.full((), 1e-10, dtype=x.dtype, device=x.device)",
    ),
    "negative": ("torch.tensor(-1, device=x.device)", "torch.full((), -1, device=x.device)"),
    "infinite": (
        'torch.tensor(-float("inf"), device=x.device)',
        'torch.full((), -float("inf"), device=x.device)',
    ),
    "a constant": (
        "torch.tensor(math.pi, device=x.device)",
        "torch.full((), math.pi, device=x.device)",
    ),
    "like another": ("x.cuda().new_tensor(0.0)", "x.cuda().new_zeros(())"),
    "a length": (
        "torch.tensor(len(x), device=x.device)",
        "torch.full((), len(x), device=x.device, dtype=torch.int64)",
    ),
    "computed of lengths": (
        "torch.tensor(len(x) * 2, device=x.device)",
        "torch.full((), len(x) * 2, device=x.device, dtype=torch.int64)",
    ),
    "made whole": (
        "torch.tensor(int(m), device=x.device)",
        "torch.full((), int(m), device=x.device, dtype=torch.int64)",
    ),
    "a float in a dtype that holds all": (
        "torch.tensor(float(m), dtype=torch.double, device=x.device)",
        "torch.full((), float(m), dtype=torch.double, device=x.device)",
    ),
    "zero in another dtype": (
        "torch.tensor(0).to(x)",
        "torch.zeros((), device=x.device, dtype=x.dtype)",
    ),
    "of a class": (
        "torch.LongTensor([0]).to(x.device)",
        "torch.zeros(1, dtype=torch.int64, device=x.device)",
    ),
    "a float of a class": (
        "torch.FloatTensor([[1.5]]).to(x.device)",
        "torch.full((1, 1), 1.5, dtype=torch.float32, device=x.device)",
    ),
    "repeated in a class": (
        "torch.LongTensor([0] * len(x)).to(x.device)",
        "torch.zeros(len(x), dtype=torch.int64, device=x.device)",
    ),
    "repeated in a dtype": (
        "torch.tensor([-1] * x.shape[0], dtype=torch.int32, device=x.device)",
        "torch.full((x.shape[0],), -1, dtype=torch.int32, device=x.device)",
    ),
}
FILLED_IF_ASKED = {
    "repeated, where an empty list holds floats": (
        "torch.tensor([0] * len(x), device=x.device)",
        "torch.zeros(len(x), device=x.device, dtype=torch.int64)",
    ),
    "computed of a number": (
        "torch.tensor(math.log(10000) / (m - 1), device=x.device)",
        "torch.full((), math.log(10000) / (m - 1), device=x.device)",
    ),
    "a list of a number that may be numpy's": (
        "torch.as_tensor([m], dtype=torch.float, device=x.device)",
        "torch.full((1,), m, dtype=torch.float, device=x.device)",
    ),
}
NOT_FILLED = {
    **{key: before for key, (before, _) in FILLED_IF_ASKED.items()},
    "a size": "torch.LongTensor(5).to(x.device)",
    "a float that a class of ints cuts off": "torch.LongTensor([1.5]).to(x.device)",
    "two numbers, repeated": "torch.tensor([0, 0] * len(x), dtype=torch.long, device=x.device)",
    "repeated by what may be negative": "torch.LongTensor([0] * n).to(x.device)",
    "a bool, which a tracer cannot fill in": "torch.tensor(True, device=x.device)",
    "perhaps numpy's": "torch.tensor(m, device=x.device)",
    "an int by its annotation": "torch.tensor(n, device=x.device)",
    "perhaps an array": "torch.tensor(m, dtype=torch.long, device=x.device)",
    "a float that may be too large": "torch.tensor(float(m), device=x.device)",
    "larger than float32": "torch.tensor(1e39, device=x.device)",
    "rounded twice": "torch.tensor(0.1).to(x.device, torch.half)",
    "made on the host": "x[:, torch.tensor([0])]",
    "a leaf, then moved": "torch.tensor(0.5, requires_grad=True).to(x.device)",
}
STEP = BODY.replace("n: int", "n: int, m: float")


@rows(FILLED)
def test_one_number_is_filled_in(row: tuple[str, str]) -> None:
    before, after = row
    check_fix(STEP.format(before), STEP.format(after), code="TPF502")


@rows(FILLED_IF_ASKED)
def test_one_number_is_filled_in_where_somebody_asks_for_it(row: tuple[str, str]) -> None:
    before, after = row
    check_fix(STEP.format(before), STEP.format(after), UNSAFE, code="TPF502")


@rows(NOT_FILLED)
def test_what_filling_might_change_stays(row: str) -> None:
    check_fix(STEP.format(row), "", code="TPF502")


def test_torch_is_imported_where_only_a_function_of_it_is() -> None:
    before = "from torch import Tensor, tensor\n" + unmarked_step("tensor(0.5, device=x.device)")
    after = "from torch import Tensor, tensor\nimport torch\n" + unmarked_step(
        "torch.full((), 0.5, device=x.device)"
    )
    assert outcome(before, code="TPF502").text == after


def test_the_name_of_torch_is_the_files_own() -> None:
    head = "import torch as th\nfrom torch import Tensor, tensor\n"
    before = head + unmarked_step("tensor(0.5, device=x.device)")
    after = head + unmarked_step("th.full((), 0.5, device=x.device)")
    assert outcome(before, code="TPF502").text == after


def test_what_handles_fake_tensors_keeps_numbers_that_can_be_read() -> None:
    head = "import torch\nfrom torch._subclasses import FakeTensor\nfrom torch import Tensor\n"
    before = head + unmarked_step("torch.tensor(0.5, device=x.device)")
    assert outcome(before, code="TPF502").text == before


def unmarked_step(value: str) -> str:
    return textwrap.dedent(STEP.format(value))


@pytest.mark.parametrize("bound", ["_ = ", ""])
def test_a_device_that_is_only_tried_out_is_left_alone(bound: str) -> None:
    before = textwrap.dedent(f"""
        import torch

        def usable(ids: list[int]):
            for i in ids:
                try:
                    {bound}torch.tensor([0], device=i)
                except RuntimeError:
                    continue
    """)
    assert outcome(before, code="TPF502").text == before
    kept = before.replace(f"{bound}torch.tensor", "kept = torch.tensor")
    assert outcome(kept, code="TPF502").text == kept.replace(
        "tensor([0], device=i", "zeros(1, device=i, dtype=torch.int64"
    )


def test_a_dtype_is_spelt_as_in_its_file() -> None:
    before = "import torch\nfrom torch import Tensor\nKIND = torch.long\n"
    step = unmarked_step("torch.tensor([0], device=x.device)")
    after = step.replace(
        "tensor([0], device=x.device", "zeros(1, device=x.device, dtype=torch.long"
    )
    assert outcome(before + step, code="TPF502").text == before + after


def test_filling_gives_the_same_bits() -> None:
    torch = pytest.importorskip("torch")
    numbers = [0, 1, -1, 127, 300, 2**40, 0.5, 1e-10, 65520.0, 3e38, math.inf, math.nan, True]
    for dtype in (None, torch.half, torch.bfloat16, torch.float, torch.double, torch.uint8,
                  torch.int, torch.long, torch.bool, torch.complex64):  # fmt: skip
        for number in numbers:
            told = [made(lambda: torch.tensor(number, dtype=dtype)),  # noqa: B023
                    made(lambda: torch.full((), number, dtype=dtype))]  # fmt: skip # noqa: B023
            assert told[0] == told[1], (number, dtype)
    for dtype in (torch.half, torch.float, torch.int, torch.long, torch.complex64):
        for number, make in ((0, torch.zeros), (1, torch.ones)):
            alike = torch.tensor([number], dtype=dtype), make(1, dtype=dtype)
            assert torch.equal(*alike)
            assert alike[0].dtype == alike[1].dtype


def made(make: Callable[[], Any]) -> str:
    """A tensor's dtype and value, or the error that making it raises."""
    try:
        return repr((made := make()).dtype) + repr(made.item())
    except RuntimeError as error:
        return type(error).__name__


ELEMENTS = {
    "an element": ("v[0] = 1.0", "v[0].fill_(1.0)"),
    "by a name": ("k = 0.5\n            v[0] = k", "k = 0.5\n            v[0].fill_(k)"),
    "counted": (
        "for i in range(n):\n                v[i] = 1.0",
        "for i in range(n):\n                v[i].fill_(1.0)",
    ),
    "an index of any kind": ("v[n] = 1.0", "v[n] = v.new_ones(())"),
    "negative": ("v[-1] = -1", "v[-1].fill_(-1)"),
    "infinite": ('v[0] = float("-inf")', 'v[0].fill_(float("-inf"))'),
    "with a comment": ("v[0] = 1.0  # first", "v[0].fill_(1.0)  # first"),
}
NO_ELEMENTS = {
    "a part": "v[:3] = 1.0",
    "what is called": "v[0] = pick(v)",
    "a parameter, which may be one of numpy's": "v[n] = m",
    "too large for int64": f"v[0] = {2**64}",
    "several targets": "v[0] = v[1] = 1.0",
    "beside another statement": "v[0] = 1.0; print(n)",
}
ASSIGNED = """
    def step(x: Tensor, ids: Tensor, n: int, m: float):
        for _ in range(3):
            v = x.reshape(-1).clone()
            {}
        return v
"""


@rows(ELEMENTS)
def test_an_element_is_filled(row: tuple[str, str]) -> None:
    before, after = row
    check_fix(ASSIGNED.format(before), ASSIGNED.format(after), code="TPF407")


@rows(NO_ELEMENTS)
def test_other_assignments_stay(row: str) -> None:
    check_fix(ASSIGNED.format(row), "", code="TPF407")


POSITIONS = {
    "a vector": ("x[ids.long()] = 0", "x[ids.long()] = x.new_zeros(())"),
    "of one dimension": ("x[:, ids.long()] = 2", "x[:, ids.long()] = x.new_full((), 2)"),
    "of two": (
        "x[ids.long(), ids.long()] = -1.0",
        "x[ids.long(), ids.long()] = x.new_full((), -1.0)",
    ),
}


@rows(POSITIONS)
def test_a_number_for_positions_is_made_on_the_device(row: tuple[str, str]) -> None:
    before, after = row
    check_fix(ASSIGNED.format(before), ASSIGNED.format(after), code="TPF407")


def test_positions_get_the_same_bits() -> None:
    torch = pytest.importorskip("torch")
    numbers = [0, 1, -1, 300, 2**40, 0.5, 1e-10, 65520.0, 1e39, math.inf, math.nan, True]
    places = [torch.tensor([0, 2]), torch.tensor([[1]], dtype=torch.int), torch.tensor([7])]
    for dtype in (torch.half, torch.float, torch.double, torch.uint8, torch.long, torch.bool):
        for index in ("i", "(slice(None), i)", "(i, i)"):
            for number, i in itertools.product(numbers, places):
                told = []
                for code in (f"v[{index}] = number", f"v[{index}] = v.new_full((), number)"):
                    v = torch.ones(3, 3, 3, dtype=dtype)
                    try:
                        exec(code, {"v": v, "number": number, "i": i})
                        told.append(repr(v))
                    except (RuntimeError, IndexError) as error:
                        told.append(type(error).__name__)
                assert told[0] == told[1], (dtype, number, index)


def test_an_element_gets_the_same_bits() -> None:
    torch = pytest.importorskip("torch")
    numbers = [0, 1, -1, 300, 2**40, 0.5, 1e-10, 65520.0, 1e39, math.inf, math.nan, True]
    for dtype in (torch.half, torch.bfloat16, torch.float, torch.double, torch.uint8, torch.int,
                  torch.long, torch.bool, torch.complex64):  # fmt: skip
        for number in numbers:
            told = []
            for code in ("v[1] = number", "v[1].fill_(number)"):
                v = torch.ones(3, dtype=dtype)
                try:
                    exec(code, {"v": v, "number": number})
                    told.append(repr(v))
                except RuntimeError as error:
                    told.append(type(error).__name__)
            assert told[0] == told[1], (dtype, number)
