"""What a program does decides what is reported; no name of a function, class or file hides it.

Each program runs often by what it does: a training step in its loop, a loop over the elements
of tensors, or a call from a loop in `forward`. It is linted under every name of `must_report/`, names
that conventions of published code give to what runs seldom, on the host or for a text. The commented
lines must be reported under all of them; the programs may have further findings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from linting import expected, in_package
from weighing import as_published
from worth_table.demanded_programs import IMPORTS, METHOD, SCALING, TRAINING

from flake8_torchperf.linter import lint
from flake8_torchperf.options import Options

LISTS = Path(__file__).parents[1] / "must_report"

CLASS = """

class {name}(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if x.abs().max().item() > 10:  # TPF101
            x = x / 2
        return self.attend(x)

    def attend(self, x: Tensor) -> Tensor:
        for row in x:  # TPF201
            if row.sum().item() > 0:  # TPF101
                x = x * 2
        return x[x > 0]  # TPF402

    def update(self, batches: list[Tensor], optimizer: torch.optim.Optimizer) -> float:
        total = 0.0
        for batch in batches:
            loss = self.attend(batch).mean()
            loss.backward()
            optimizer.step()
            total += loss.item()  # TPF206
        return total
"""
MODULE = TRAINING.format(name="update_model") + SCALING.format(name="scale_all")


@pytest.fixture(autouse=True)
def threshold() -> Iterator[None]:
    """The default scope as users have it."""
    with as_published():
        yield


def entries(list_name: str) -> list[str]:
    """The names of a list in `must_report/`."""
    return (LISTS / f"{list_name}.txt").read_text(encoding="utf-8").split()


def silent(source: str, filename: str) -> list[int]:
    """The lines that must carry a finding and carry none."""
    found = {one.line for one in lint(source, filename, Options())}
    return sorted({line for line, _ in expected(source)} - found)


def fail_where_silent(gone: Iterator[tuple[str, list[int]]], source: str) -> None:
    """One failure that names every spelling under which a line went silent."""
    rows = [(name, lines) for name, lines in gone if lines]
    if rows:
        told = "\n".join(f"  {name}: lines {', '.join(map(str, lines))}" for name, lines in rows)
        numbered = "\n".join(f"{i:3} {row}" for i, row in enumerate(source.splitlines(), 1))
        pytest.fail(f"silent under {len(rows)} names:\n{told}\nin\n{numbered}", pytrace=False)


def under_names(template: str, names: Sequence[str]) -> None:
    """Lint a program under each name and fail where any hides a commented line."""
    template = IMPORTS + template
    gone = ((name, silent(template.format(name=name), "model.py")) for name in names)
    fail_where_silent(gone, template)


PROGRAMS = {"training loop": TRAINING, "loop over gradients": SCALING, "method": METHOD}


@pytest.mark.slow
@pytest.mark.parametrize("template", PROGRAMS.values(), ids=list(PROGRAMS))
def test_no_function_name_hides_what_runs_often(template: str) -> None:
    under_names(template, entries("names"))


def test_no_class_name_hides_what_its_methods_do() -> None:
    under_names(CLASS, entries("classes"))


def test_no_file_name_hides_what_the_file_does(tmp_path: Path) -> None:
    """Each file lies in a package of its own, since folders of a package count as names too."""
    source = IMPORTS + MODULE
    gone = (
        (path, silent(source, in_package(tmp_path / str(number), f"pkg/{path}", source)))
        for number, path in enumerate(entries("paths"))
    )
    fail_where_silent(gone, source)


@pytest.mark.parametrize("list_name", ["names", "classes", "paths"])
def test_lists_are_sorted_and_name_each_once(list_name: str) -> None:
    names = entries(list_name)
    assert names == sorted(set(names))
    assert all("\\" not in name and (list_name == "paths" or name.isidentifier()) for name in names)


PLAIN = {**PROGRAMS, "class": CLASS, "module": MODULE}


@pytest.mark.parametrize("template", PLAIN.values(), ids=list(PLAIN))
@pytest.mark.parametrize("name", ["handle", "Handle"])
def test_a_name_that_tells_nothing_hides_nothing(name: str, template: str) -> None:
    """Here the codes must be those of the comments too."""
    source = (IMPORTS + template).format(name=name)
    found = {(one.line, one.code) for one in lint(source, "model.py", Options())}
    assert set(expected(source)) <= found
