"""Copies of host data to a device: queued where the device is known to be CUDA."""

from __future__ import annotations

import pytest
from fixing import SHOWN, UNSAFE, check_fix

STEP = """
    def step(x: Tensor, rows: list, device: torch.device, where: str = "cpu"):
        place = x.device
        return x * {}
"""
MADE = 'torch.tensor([0.2, 0.3], device="cpu")'
SAFE_CASES = {
    "where a tensor is": (
        "torch.tensor([0.2, 0.3], device=x.device)",
        f"{MADE}.to(x.device, non_blocking=x.is_cuda)",
    ),
    "by a name": (
        "torch.tensor([0.2, 0.3], device=place)",
        f'{MADE}.to(place, non_blocking=place.type == "cuda")',
    ),
    "on CUDA": (
        'torch.tensor([0.2, 0.3], device="cuda:0")',
        f'{MADE}.to("cuda:0", non_blocking=True)',
    ),
    "like another": (
        "torch.tensor([0.2, 0.3])[:, None].to(x)",
        "torch.tensor([0.2, 0.3])[:, None].to(x, non_blocking=x.is_cuda)",
    ),
    "device and dtype": (
        "torch.tensor(rows).view(-1).to(x.device, x.dtype)",
        "torch.tensor(rows).view(-1).to(x.device, x.dtype, non_blocking=x.is_cuda)",
    ),
    "called twice": (
        "torch.tensor([pick(), pick()], device=x.device)",
        'torch.tensor([pick(), pick()], device="cpu").to(x.device, non_blocking=x.is_cuda)',
    ),
}
UNKNOWN = {
    "a parameter, which may be text": "torch.tensor([0.2, 0.3], device=device)",
    "text": "torch.tensor([0.2, 0.3], device=where)",
}
STAYS = {
    "a leaf": "torch.tensor([0.2, 0.3], device=x.device, requires_grad=True)",
    "a device that is computed": "torch.tensor([0.2, 0.3], device=pick())",
    "what may share memory": "torch.as_tensor(rows, device=x.device)",
}


def rows(cases: dict) -> pytest.MarkDecorator:  # type: ignore[type-arg]
    return pytest.mark.parametrize("row", cases.values(), ids=list(cases))


@rows(SAFE_CASES)
def test_a_copy_is_queued_where_that_is_safe(row: tuple[str, str]) -> None:
    check_fix(STEP.format(row[0]), STEP.format(row[1]), code="TPF502")


@rows(UNKNOWN)
def test_other_devices_are_unsafe(row: str) -> None:
    check_fix(STEP.format(row), "", code="TPF502")
    name = "device" if "=device" in row else "where"
    after = STEP.format(f"{MADE}.to({name}, non_blocking=True)")
    check_fix(STEP.format(row), after, UNSAFE, code="TPF502")


def test_what_may_be_a_tensor_is_not_brought_to_the_host() -> None:
    before, after = "torch.tensor(rows[0], device=x.device)", "torch.tensor(rows[0])"
    check_fix(STEP.format(before), "", code="TPF502")
    queued = f"{after}.to(x.device, non_blocking=True)"
    check_fix(STEP.format(before), STEP.format(queued), UNSAFE, code="TPF502")


@rows(STAYS)
def test_other_data_stays(row: str) -> None:
    check_fix(STEP.format(row), "", UNSAFE, code="TPF502")


def test_what_is_queued_is_the_same_tensor() -> None:
    torch = pytest.importorskip("torch")
    for data in ([0.1, 2], [[1], [2]], [True], [], 2**40, [float("nan")]):
        for dtype in (None, torch.half, torch.int32):
            try:
                before = torch.tensor(data, dtype=dtype, device=torch.device("cpu"))
            except (RuntimeError, ValueError):
                continue
            made = torch.tensor(data, dtype=dtype, device="cpu")
            after = made.to(before.device, non_blocking=before.is_cuda)
            torch.testing.assert_close(before, after, rtol=0, atol=0, equal_nan=True)
            assert before.dtype == after.dtype


MOVES = {
    "to a device": ("y.to(x.device)", "y.to(x.device, non_blocking=True)"),
    "with a dtype": (
        "y.to(x.device, torch.half)",
        "y.to(x.device, torch.half, non_blocking=True)",
    ),
    "cuda": ("y.cuda()", "y.cuda(non_blocking=True)"),
}


@rows(MOVES)
def test_the_flag_is_suggested_for_other_copies(row: tuple[str, str]) -> None:
    text = """
        def step(x: Tensor, z: Tensor):
            y = z.cpu()
            return {} * x
    """
    check_fix(text.format(row[0]), text.format(row[1]), SHOWN, code="TPF503")
    check_fix(text.format(row[0]), "", UNSAFE, code="TPF503")


def test_a_second_argument_may_be_the_flag() -> None:
    text = """
        def step(x: Tensor, z: Tensor, flag):
            y = z.cpu()
            return y.to(x.device, flag) * x
    """
    check_fix(text, "", SHOWN, code="TPF503")
