"""Helpers of programs that train: reported by default only if a step may lead to them."""

from __future__ import annotations

from pathlib import Path

import pytest
from linting import HOT

from flake8_torchperf.linter import lint
from flake8_torchperf.project.texts import text_search

HELPER = """\
import torch
from torch import Tensor


def spread(x: Tensor):
    return x.std().item()
"""
TRAIN = """\
import torch
from helper import spread


def train(model, optimizer, loader):
    for x in loader:
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        {step}
    {after}
"""
VALIDATE = """\
import torch
from helper import spread


@torch.no_grad()
def validate(model, loader):
    model.eval()
    for x in loader:
        print(spread(model(x)))
"""
SHOW = "from helper import spread\n\n\ndef show(x):\n    print(spread(x))\n"


def told(folder: Path, files: dict[str, str], marker: str = "requirements.txt") -> bool:
    """True if the read in the helper is reported by default."""
    (folder / marker).write_text("[project]\n" if marker == "pyproject.toml" else "")
    (folder / "helper.py").write_text(HELPER)
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    text_search.forget()
    return bool(lint(files.get("helper.py", HELPER), str(folder / "helper.py"), HOT))


def train(step: str = "pass", after: str = "pass") -> dict[str, str]:
    return {"train.py": TRAIN.format(step=step, after=after)}


REACHED: dict[str, dict[str, str]] = {
    "no program that trains": {"show.py": SHOW},
    "a step": train(step="spread(x)"),
    "a function that a step calls": {
        **train(step="show(x)"),
        "show.py": SHOW,
    },
    "a function handed over": train(after="model.register(spread)"),
    "a function that is registered": {
        **train(),
        "helper.py": HELPER.replace("def spread", "@METRICS.register('spread')\ndef spread"),
    },
    "a sampler": {
        **train(),
        "sample.py": (
            "import torch\nfrom helper import spread\n\n\n@torch.no_grad()\n"
            "def sample(model, x):\n    for _ in range(9):\n        x = model(x)\n"
            "        print(spread(x))\n"
        ),
    },
    "no caller": train(),
    "a function that shows something": {**train(), "show.py": SHOW},
    "a loop over requests": {
        **train(),
        "serve.py": "from helper import spread\n\n\ndef serve(queue):\n"
        "    for request in queue:\n        print(spread(request.x))\n",
    },
    "a test": {
        **train(),
        "test_helper.py": "import pytest\nfrom helper import spread\n\n\ndef test_it(model):\n"
        "    for x in range(9):\n        model(x).backward()\n        spread(x)\n",
    },
}
UNREACHED: dict[str, dict[str, str]] = {
    "code after the steps": train(after="spread(x)"),
    "a step, once in several": train(step="if epoch % 10 == 0: spread(x)"),
    "a viewer that a program starts": {
        **train(),
        "show.py": SHOW + "\n\nif __name__ == '__main__':\n    show(torch.ones(3))\n",
    },
    "an evaluation": {**train(), "validate.py": VALIDATE},
    "an evaluation after the steps": {
        "train.py": TRAIN.format(step="pass", after="validate(model, loader)"),
        "validate.py": VALIDATE,
    },
}


@pytest.mark.parametrize("name", REACHED)
def test_a_helper_that_a_step_may_reach_is_told(name: str, tmp_path: Path) -> None:
    assert told(tmp_path, REACHED[name])


@pytest.mark.parametrize("name", UNREACHED)
def test_a_helper_that_no_step_reaches_is_left_out(name: str, tmp_path: Path) -> None:
    assert not told(tmp_path, UNREACHED[name])


def test_a_distribution_has_callers_elsewhere(tmp_path: Path) -> None:
    """Only its own package may be the program that trains."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "__init__.py").touch()
    helper = tmp_path / "lib" / "helper.py"
    helper.write_text(HELPER)
    for name, text in UNREACHED["an evaluation after the steps"].items():
        (tmp_path / name).write_text(text.replace("from helper", "from lib.helper"))
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]\n")
    assert not lint(HELPER, str(helper), HOT)
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'lib'\n")
    text_search.forget()
    assert lint(HELPER, str(helper), HOT)


def test_an_evaluation_is_told_only_per_element(tmp_path: Path) -> None:
    text = """\
import torch


def train(model, optimizer, loader):
    for x in loader:
        model(x).sum().backward()
        optimizer.step()


def validate(model, loader):
    with torch.no_grad():
        for x in loader:
            y = torch.relu(model(x))
            print(y.sum().item())
            for row in y:
                print(row.sum().item())
"""
    file = tmp_path / "train.py"
    file.write_text(text)
    assert {one.line for one in lint(text, str(file), HOT)} == {15, 16}
