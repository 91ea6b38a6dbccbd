"""Copies of host data to a device: queued where the device is known to be CUDA."""

from __future__ import annotations

from fixing import SHOWN, UNSAFE, check_fix, rows

STEP = """
    def step(x: Tensor, rows: list, device: torch.device, where: str = "cpu"):
        rows_of_x = x.size(0)
        place = x.device
        return x * {}
"""
SAFE_CASES = {
    "where a tensor is": (
        "torch.tensor([0.2, 0.3]).to(x.device)",
        "torch.tensor([0.2, 0.3]).to(x.device, non_blocking=x.is_cuda)",
    ),
    "by a name": (
        "torch.tensor([0.2, 0.3]).to(place)",
        "torch.tensor([0.2, 0.3]).to(place, non_blocking=x.is_cuda)",
    ),
    "on CUDA": (
        'torch.tensor([0.2, 0.3]).to("cuda:0")',
        'torch.tensor([0.2, 0.3]).to("cuda:0", non_blocking=True)',
    ),
    "like another": (
        "torch.tensor([0.2, 0.3])[:, None].to(x)",
        "torch.tensor([0.2, 0.3])[:, None].to(x, non_blocking=x.is_cuda)",
    ),
    "device and dtype": (
        "torch.tensor(rows).view(-1).to(x.device, x.dtype)",
        "torch.tensor(rows).view(-1).to(x.device, x.dtype, non_blocking=x.is_cuda)",
    ),
}
UNKNOWN = {
    "a parameter, which may be text": "torch.tensor([0.2, 0.3]).to(device)",
    "text": "torch.tensor([0.2, 0.3]).to(where)",
}
STAYS = {
    "a leaf": "torch.tensor([0.2, 0.3], device=x.device, requires_grad=True)",
    # Made on the host and moved, it would be longer and no faster.
    "what is made there": "torch.tensor([0.2, 0.3], device=x.device)",
    "a device that is computed": "torch.tensor([0.2, 0.3], device=pick())",
    "what may share memory": "torch.as_tensor(rows, device=x.device)",
}


@rows(SAFE_CASES)
def test_a_copy_is_queued_where_that_is_safe(row: tuple[str, str]) -> None:
    check_fix(STEP.format(row[0]), STEP.format(row[1]), code="TPF502")


DECLARED = {
    "the device of what may be an array": "torch.tensor([0.2, 0.3]).to(z.device)",
    "the device by a name": "torch.tensor([0.2, 0.3]).to(at)",
    "what an array can do as well": "z.sum() * torch.tensor([0.2, 0.3]).to(z.device)",
}


@rows(DECLARED)
def test_an_annotation_makes_nothing_safe(row: str) -> None:
    """numpy's arrays have a device, too, which is a text."""
    head = "def step(x: Tensor, z: Tensor, rows: list):\n    at = z.device\n    return x * "
    check_fix(head + row, "", UNSAFE, code="TPF502")


@rows(UNKNOWN)
def test_a_copy_to_another_device_stays(row: str) -> None:
    check_fix(STEP.format(row), "", UNSAFE, code="TPF502")


@rows(STAYS)
def test_other_data_stays(row: str) -> None:
    check_fix(STEP.format(row), "", UNSAFE, code="TPF502")


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
