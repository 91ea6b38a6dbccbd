"""A call behind a flag that conventions call off runs its function seldom."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from linting import HOT

from flake8_torchperf.linter import lint

# Detic, modeling/debug.py, `debug_second_stage`, and roi_heads/res5_roi_heads.py
DRAW = """
    import cv2
    import torch


    def draw_stage(instances):
        for i in range(len(instances)):
            boxes = instances[i].tensor.cpu().numpy()
            cv2.imwrite("a.png", boxes)
    """
HEADS = """
    import torch
    from draw import draw_stage
    from torch import nn


    class Heads(nn.Module):
        def __init__(self, cfg):
            super().__init__()
            self.save_debug = cfg.SAVE_DEBUG
            self.drawn = cfg.DRAWN
            self.fc = nn.Linear(3, 3)

        def forward(self, x):
            y = self.fc(x)
            if TEST:
                draw_stage(y)
            return y


    def main(cfg, loader):
        net = Heads(cfg).cuda()
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        for x in loader:
            net(x.cuda()).sum().backward()
            optimizer.step()


    if __name__ == "__main__":
        main(read(), load())
    """


@pytest.mark.parametrize(
    ("test", "told"),
    [
        ("self.drawn", True),
        ("self.save_debug", False),
        ("self.training and self.save_debug", False),
        ("not self.save_debug", True),
        ("self.drawn or self.save_debug", True),
    ],
)
def test_calls_behind_a_flag_are_seldom(test: str, told: bool, tmp_path: Path) -> None:
    path = tmp_path / "draw.py"
    path.write_text(textwrap.dedent(DRAW), encoding="utf-8")
    heads = textwrap.dedent(HEADS.replace("TEST", test))
    (tmp_path / "heads.py").write_text(heads, encoding="utf-8")
    found = lint(path.read_text(encoding="utf-8"), str(path), HOT)
    assert bool(found) == told
