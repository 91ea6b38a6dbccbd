"""Files linted one by one, in shards or together have the same findings.

pre-commit, Bazel and Pants hand a linter the files that have changed, or a part of all files.
"""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
from check_run import check
from flake8_run import flake8

# What a file shows depends on the others: on the types that they return, on their classes, and on
# loops elsewhere that call it.
PACKAGE = {
    "__init__": "",
    "model": """\
        import torch


        class Net(torch.nn.Module):
            scale: torch.Tensor

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return x * self.scale


        def make_scores(batch) -> torch.Tensor:
            return torch.ones(len(batch)).cuda()
        """,
    "report": """\
        from .model import make_scores


        def write_down(batch):
            return make_scores(batch).sum().item()
        """,
    "train": """\
        from .model import Net
        from .report import write_down


        def train(model: Net, loader, optimizer):
            for batch in loader:
                loss = model(batch).sum()
                loss.backward()
                optimizer.step()
                write_down(batch)
                if model.scale > 3:
                    break
        """,
    "deep/__init__": "from ..report import write_down\n",
    "deep/evaluate": """\
        from . import write_down
        from ..model import Net


        def evaluate(net: Net, batches):
            for batch in batches:
                if net(batch).sum() > 0:
                    write_down(batch)
        """,
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    for name, text in PACKAGE.items():
        path = folder / "pkg" / f"{name}.py"
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(dedent(text))
    return folder


def names(project: Path) -> list[str]:
    return sorted(str(one.relative_to(project)) for one in project.rglob("*.py"))


def shards(project: Path) -> dict[str, list[list[str]]]:
    every = names(project)
    return {
        "one by one": [[one] for one in every],
        "one by one, last first": [[one] for one in reversed(every)],
        "two shards": [every[::2], every[1::2]],
    }


def test_the_example_needs_its_other_files(project: Path, tmp_path: Path) -> None:
    """Or else it would not show anything: alone, without the package around it, this is quiet."""
    together = check("pkg", cwd=project).output
    for name in ("pkg/report.py", "pkg/train.py", "pkg/deep/evaluate.py"):
        assert name in together
    (tmp_path / "report.py").write_bytes((project / "pkg" / "report.py").read_bytes())
    assert check("report.py", cwd=tmp_path).output == ""


@pytest.mark.parametrize("way", ["one by one", "one by one, last first", "two shards"])
def test_check(project: Path, way: str) -> None:
    together = check("--torchperf-explain", "pkg", cwd=project).output
    parts = [check("--torchperf-explain", *few, cwd=project).output for few in shards(project)[way]]
    assert sorted("".join(parts).splitlines()) == sorted(together.splitlines())


@pytest.mark.parametrize("way", ["one by one", "two shards"])
def test_a_cache_that_the_shards_share(project: Path, tmp_path: Path, way: str) -> None:
    together = check("pkg", cwd=project).output
    for _ in ("nothing remembered", "all remembered"):
        parts = [check(*few, cwd=project, cache=tmp_path).output for few in shards(project)[way]]
        assert sorted("".join(parts).splitlines()) == sorted(together.splitlines())


def test_flake8(project: Path) -> None:
    options = ("--isolated", "--select=TPF", "--torchperf-explain")
    together = flake8(*options, "pkg", cwd=project).output
    parts = [flake8(*options, one, cwd=project).output for one in names(project)]
    assert sorted("".join(parts).splitlines()) == sorted(together.splitlines())
    assert together
