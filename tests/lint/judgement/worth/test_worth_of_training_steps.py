"""The evidence that training steps lead to a finding, or that only other programs do."""

from __future__ import annotations

import textwrap
from pathlib import Path

from linting import table

from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.judgement.worth.features import features
from flake8_torchperf.linter import lint
from flake8_torchperf.options import Options

ALL = Options(scope=Level.COLD, review=True)
HELPER = """\
import torch


def looked_at(x: torch.Tensor):
    return x / x.sum().item()
"""
HEAD = """\
import torch
from helper import looked_at

"""
TAIL = """

if __name__ == "__main__":
    main(torch.load("model").cuda(), torch.load("optimizer"), torch.utils.data.DataLoader([]))
"""
# What runs the helper, with the evidence that it gives of the helper's wait.
PROGRAMS = {
    "a loop that goes backward": """
        def main(model, optimizer, loader):  # steps:train
            for x in loader:
                looked_at(model(x.cuda())).sum().backward()
                optimizer.step()
        """,
    "a function that takes a step": """
        def main(model, optimizer, loader):  # steps:train
            for x in loader:
                step(model, optimizer, x.cuda())


        def step(model, optimizer, x):
            optimizer.zero_grad()
            loss = looked_at(model(x)).sum()
            loss.backward()
            optimizer.step()
        """,
    "beside the steps of an epoch": """
        def main(model, optimizer, loader):  # none
            for epoch in range(9):
                for x in loader:
                    model(x.cuda()).sum().backward()
                    optimizer.step()
                for x in loader:
                    print(looked_at(model(x.cuda())))
        """,
    "in some of the steps": """
        def main(model, optimizer, loader):  # none
            for number, x in enumerate(loader):
                model(x.cuda()).sum().backward()
                optimizer.step()
                if number % 100 == 0:
                    for y in loader:
                        print(looked_at(model(y.cuda())))
        """,
    "a program that trains nothing": """
        def main(model, optimizer, loader):  # steps:evaluate
            for x in loader:
                print(looked_at(model(x.cuda())))
        """,
}


@table(PROGRAMS)
def test_the_steps_that_lead_to_a_wait(code: str, tmp_path: Path) -> None:
    code = textwrap.dedent(code)
    (tmp_path / ".git").mkdir()
    (tmp_path / "train.py").write_text(f"{HEAD}{code}{TAIL}")
    helper = tmp_path / "helper.py"
    helper.write_text(HELPER)
    [read] = lint(HELPER, str(helper), ALL)
    shown = {name for name in features(read.site, read.code) if name.startswith("steps:")}
    assert shown == set(code.partition("# ")[2].split()[:1]) - {"none"}
