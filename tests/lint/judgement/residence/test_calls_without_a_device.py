"""Functions that are called only where tensors lie on the host."""

from __future__ import annotations

from pathlib import Path

import pytest
from linting import HOT

from flake8_torchperf.linter import lint

# IDEA-Research/GroundingDINO, ms_deform_attn.py: a fallback for tensors on the host
ATTENTION = """\
import torch
from torch import Tensor, nn

from kernels import Kernel


def fallback(value: Tensor, shapes: Tensor):
    for height, width in shapes:
        value = value[: int(height * width)]
    return value


class Attention(nn.Module):
    def forward(self, value: Tensor, shapes: Tensor):
        if {test}:
            value = Kernel.apply(value, shapes)
        else:
            value = fallback(value, shapes)
        return value
"""
PROGRAM = """\
import torch

from attention import Attention


def main():
    model = Attention().cuda()
    for x, shapes in torch.utils.data.DataLoader([]):
        model(x.cuda(), shapes.cuda()).sum().backward()


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("test", "told"),
    [
        ("torch.cuda.is_available() and value.is_cuda", False),
        ("value.is_cuda", False),
        ("not value.is_cpu", False),
        ("value.device.type == 'cuda'", False),
        ("value.is_cpu", True),
        ("not value.is_cuda", True),
        ("value.is_cuda and value.ndim == 4", True),
        ("torch.is_grad_enabled()", True),
    ],
)
def test_a_function_for_tensors_on_the_host(test: str, told: bool, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "main.py").write_text(PROGRAM)
    (tmp_path / "kernels.py").write_text("import torch\n\n\nclass Kernel:\n    apply = None\n")
    file = tmp_path / "attention.py"
    text = ATTENTION.format(test=test)
    file.write_text(text)
    assert any(one.line in (8, 9) for one in lint(text, str(file), HOT)) is told
