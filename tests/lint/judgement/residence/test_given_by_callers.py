"""The call that a finding names, by what each of the calls gives."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from linting import HOT

from flake8_torchperf.linter import lint

HELPER = """
    import torch

    def mask(length, most=None):
        if most is None:
            most = length.max()
        return torch.arange(most, device=length.device) < length.unsqueeze(1)

    def decayed(x, rate):
        rate = rate if isinstance(rate, torch.Tensor) else torch.tensor(rate).to(x.device)
        return x * rate
    """
TRAIN = """
    import torch
    from helper import decayed, mask

    def train(model: torch.nn.Module, loader, opt):
        for batch in loader:
            x = model(batch.cuda())
            lengths = x.argmax(1)
            {first}
            {second}
            x.sum().backward()
            opt.step()

    if __name__ == "__main__":
        train(*made())
    """


@pytest.mark.parametrize(
    ("first", "second", "line"),
    [
        ("mask(lengths, x.size(1))", "mask(lengths)", 10),
        ("mask(lengths)", "mask(lengths, 9)", 9),
        ("mask(lengths, x.size(1))", "mask(lengths, 9)", 0),
        ("mask(lengths, x.size(1))", "mask(lengths, other())", 10),
        ("decayed(x, x.mean())", "decayed(x, 0.5)", 10),
        ("decayed(x, 0.5)", "decayed(x, x.mean())", 9),
        ("decayed(x, x.mean())", "decayed(x, x.std())", 0),
    ],
)
def test_a_finding_names_a_call_for_which_it_is_one(
    first: str, second: str, line: int, tmp_path: Path
) -> None:
    (tmp_path / ".git").mkdir()
    train = textwrap.dedent(TRAIN.format(first=first, second=second))
    (tmp_path / "train.py").write_text(train, encoding="utf-8")
    file = tmp_path / "helper.py"
    text = textwrap.dedent(HELPER)
    file.write_text(text, encoding="utf-8")
    found = [one.message for one in lint(text, str(file), HOT)]
    told = [one for one in found if f"`train` at line {line}" in one]
    assert len(told) == bool(line), found


LIBRARY = """
    import torch

    def decayed(x, rate):
        rate = rate if isinstance(rate, torch.Tensor) else torch.tensor(rate).to(x.device)
        return x * rate

    class Sampler:
        def sample(self, model: torch.nn.Module, x: torch.Tensor):
            for step in range(50):
                x = decayed(model(x), {inside})
            return x

        def begin(self, x: torch.Tensor):
            return decayed(x, 0.5)
    """


@pytest.mark.parametrize(("inside", "told"), [("x.mean()", False), ("0.5", True)])
def test_a_call_shows_how_often_a_place_runs_only_if_it_is_one_for_it(
    inside: str, told: bool, tmp_path: Path
) -> None:
    """A library's function may be given anything, but a loop that gives tensors copies none."""
    (tmp_path / ".git").mkdir()
    file = tmp_path / "library.py"
    text = textwrap.dedent(LIBRARY.format(inside=inside))
    file.write_text(text, encoding="utf-8")
    found = [one.message for one in lint(text, str(file), HOT)]
    assert ["called by `sample`" in one for one in found] == [True] * told
