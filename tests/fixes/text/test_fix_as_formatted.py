"""After a fix, a formatter with the project's settings finds nothing more to change."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from fixing import UNSAFE
from linting import ALL

from flake8_torchperf.findings.finding import Finding
from flake8_torchperf.fixes.engine.lines.line_length import line_length
from flake8_torchperf.fixes.engine.rounds import fixed
from flake8_torchperf.linter import lint

HEAD = "import math\n\nimport torch\nfrom torch import Tensor\n\n\n"
# The kinds of fixes that are made most often in applications, each with its code.
KINDS = {
    "fill-on-device": """
        def step(a_tensor: Tensor, criterion, another_tensor: Tensor):
            for number in range(3):
                target = torch.tensor([0.5, 0.5], dtype=another_tensor.dtype, device=a_tensor.device)
                loss = criterion(torch.tensor(0.0, device=a_tensor.device).expand_as(a_tensor), another_tensor)
                real = criterion(a_tensor, torch.tensor([a_tensor.shape[-1]], device=a_tensor.device), "mean")
                a_tensor = a_tensor + loss + target.sum() + real
            return a_tensor
    """,
    "device-argument": """
        def step(a_tensor: Tensor, rows: int, columns: int, another_tensor: Tensor):
            for number in range(3):
                mask = torch.tril(torch.ones(rows, columns, dtype=another_tensor.dtype), diagonal=0).to(a_tensor.device)
                flat = torch.zeros(rows, columns).int().to(a_tensor.device).expand(3, 3).unsqueeze(0).unsqueeze(0)
                state = torch.zeros((rows, columns)).type_as(another_tensor)
                device = torch.ones(1, 1, number).to("cuda")
                a_tensor = a_tensor * mask * flat * state * device
            return a_tensor
    """,
    "shared-positions": """
        def step(pred_boxes: Tensor, pred_labels: Tensor, valid_pair_mask: Tensor, criterion):
            is_landscape = pred_boxes[:, 0] > 0
            for number in range(3):
                loss = criterion(pred_boxes[is_landscape], pred_labels[is_landscape], reduction="none", delta=number)
                pred_boxes = pred_boxes + loss
            return pred_boxes
    """,
    "read-together": """
        def training_step(self, sft_loss: Tensor, losses: Tensor, metrics: dict):
            metrics["sft_loss"] = sft_loss.mean().item()
            metrics["odds_ratio_loss"] = ((losses - sft_loss) / self.beta).mean().item()
            return losses.mean()
    """,
    "total-on-device": """
        def train(model, batches: list[Tensor], optimizer):
            running_loss_of_model = 0.0
            for batch in batches:
                loss_of_model = model(batch).sum()
                loss_of_model.backward()
                optimizer.step()
                running_loss_of_model += loss_of_model.abs().sum().square().item() / len(batches)
            return running_loss_of_model / len(batches)
    """,
    "assert-async": """
        def step(self, predictions: Tensor, loss: Tensor):
            if not loss.isfinite().all():
                raise RuntimeError("The model probably diverged.")
            assert not torch.isnan(predictions).any(), "the predictions of the model hold NaN value(s)"
            return predictions
    """,
    "list-and-cat": """
        def step(a_tensor: Tensor, several_conditions: list[Tensor], get_conditions):
            collected_output_of_all = None
            for condition in several_conditions:
                piece_of_output = get_conditions(condition)
                if collected_output_of_all is not None:
                    collected_output_of_all = torch.cat([collected_output_of_all, piece_of_output], dim=1)
                else:
                    collected_output_of_all = piece_of_output
            return a_tensor, collected_output_of_all
    """,
    "numbers-at-once": """
        def step(choice_probabilities: Tensor, mapping_of_categories: dict):
            return [mapping_of_categories[int(category.item())] for category in choice_probabilities.flatten()]
    """,
    "number-on-device": """
        def step(impulse_response: Tensor, ids: Tensor, place: int):
            for number in range(3):
                impulse_response[ids.long()] = 1
                impulse_response[0] = 1.0
            return impulse_response
    """,
    "queued-if-cuda": """
        def step(a_tensor: Tensor, rows_of_ids: list):
            length_of_rows = a_tensor.size(0)
            return a_tensor * torch.tensor(rows_of_ids, dtype=torch.float).to(a_tensor.device).unsqueeze(0).sum(0)
    """,
}  # fmt: skip
SETTINGS = {
    "79": "line-length = 79\n",
    "88": "line-length = 88\n",
    "100, single quotes": 'line-length = 100\n[format]\nquote-style = "single"\n',
    "119": "line-length = 119\n",
}


def formatted(folder: Path, text: str) -> str:
    """Return a text as ruff formats it with the settings of a folder."""
    ruff = [sys.executable, "-m", "ruff", "format", "--stdin-filename", "model.py", "-"]
    done = subprocess.run(ruff, input=text, capture_output=True, text=True, cwd=folder, check=True)
    return done.stdout


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("name", KINDS)
def test_a_formatter_changes_nothing_in_what_was_fixed(
    name: str, settings: str, tmp_path: Path
) -> None:
    pytest.importorskip("ruff")
    (tmp_path / "ruff.toml").write_text(settings)
    path = str(tmp_path / "model.py")
    before = formatted(tmp_path, HEAD + textwrap.dedent(KINDS[name]).lstrip("\n"))

    def find(text: str) -> list[Finding]:
        return lint(text, path, ALL, UNSAFE.safeties)

    done = fixed(before, find, UNSAFE, width=line_length(path))
    assert name in {change.edit.name for change in done.changes}
    assert formatted(tmp_path, done.text) == done.text
