"""A wait straight behind one that stays is not told by default."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from weighing import weighed

from flake8_torchperf.linter import lint
from flake8_torchperf.options import Options

HEAD = """\
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn


class Matcher(nn.Module):
    def forward(self, scores: Tensor):
        return linear_sum_assignment(scores.cpu())


class Criterion(nn.Module):
    def __init__(self):
        super().__init__()
        self.matcher = Matcher()
        self.model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3))

    def forward(self, scores: Tensor, count: Tensor, flag: bool):
"""
# The body of a step, and the lines that are told, counted from its first line.
CASES = {
    "alone": ("return scores / count.item()", [1]),
    # Deformable DETR, models/deformable_detr.py, `SetCriterion.forward`
    "behind the matcher": ("found = self.matcher(scores)\nreturn found, count.item()", []),
    "behind one that is behind": (
        "found = self.matcher(scores)\na = count.item()\nb = count + 1\nif b > 3:\n    a += 1\n"
        "return found, a",
        [],
    ),
    "a model lies between": (
        "found = self.matcher(scores)\nreturn found, self.model(scores).sum().item()",
        [2],
    ),
    "one that is told stands between": (
        "found = self.matcher(scores)\na = self.model(scores).sum().item()\nif count > 3:\n"
        "    a += 1\nreturn found, a",
        [2, 3],
    ),
    "behind another on a path that returns": (
        "if flag:\n    found = self.matcher(scores)\n    return found, count.item()\n"
        "return count.item()",
        [4],
    ),
    "behind another on one path": (
        "found = self.matcher(scores) if flag else self.model(scores)\nreturn found, count.item()",
        [2],
    ),
    "repeated in the step": (
        "found = self.matcher(scores)\nfor one in range(9):\n    scores[one] += count[one].item()\n"
        "return found, scores",
        [3],
    ),
}


def _told(text: str, **settings: object) -> list[int]:
    with weighed({}, threshold=0.4):
        found = lint(text, "criterion.py", Options(**settings))  # type: ignore[arg-type]
    first = HEAD.count("\n")
    return sorted({one.line - first for one in found if one.line > first})


@pytest.mark.parametrize("name", CASES)
def test_a_wait_behind_one_that_stays_is_not_told(name: str) -> None:
    body, expected = CASES[name]
    text = HEAD + textwrap.indent(body, " " * 8) + "\n"
    assert _told(text) == expected


def test_any_worth_tells_it() -> None:
    body, _ = CASES["behind the matcher"]
    text = HEAD + textwrap.indent(body, " " * 8) + "\n"
    assert _told(text, min_worth=0.0) == [2]
    assert _told(text, min_worth=0.01) == []


def test_what_the_user_names_is_told() -> None:
    body, _ = CASES["behind the matcher"]
    text = HEAD + textwrap.indent(body, " " * 8) + "\n"
    assert _told(text, hot=("Criterion.forward",)) == [2]


def test_a_wait_of_the_only_caller(tmp_path: Path) -> None:
    # YOLOv9, utils/loss_tal.py: the loss of the boxes is called where `fg_mask.sum()` was tested
    files = {
        "loss.py": """
            import torch
            from torch import Tensor, nn


            class BoxLoss(nn.Module):
                def forward(self, boxes: Tensor, mask: Tensor):
                    return boxes[mask].mean()


            class Loss(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.box_loss = BoxLoss()

                def forward(self, boxes: Tensor, mask: Tensor):
                    loss = boxes.sum()
                    if mask.sum():
                        loss += self.box_loss(boxes, mask)
                    return loss
            """,
        "train.py": """
            import torch
            from loss import Loss


            def main(model, loader, optimizer):
                criterion = Loss().cuda()
                for boxes, mask in loader:
                    boxes, mask = boxes.cuda(), mask.cuda()
                    loss = criterion(model(boxes), mask)
                    loss.backward()
                    optimizer.step()


            if __name__ == "__main__":
                main(torch.nn.Linear(3, 3).cuda(), [], None)
            """,
    }
    for name, code in files.items():
        (tmp_path / name).write_text(textwrap.dedent(code), encoding="utf-8")
    text = (tmp_path / "loss.py").read_text(encoding="utf-8")
    with weighed({}, threshold=0.4):
        found = lint(text, str(tmp_path / "loss.py"), Options())
    assert [text.splitlines()[one.line - 1].strip() for one in found] == ["if mask.sum():"]
