"""A method that overrides another runs as often as the base class in another module calls it."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from flake8_torchperf.linter import lint
from flake8_torchperf.options import Options

CALLED = """
    from .kinds import Metric

    class Base(Metric):
        def update(self, output):
            self._add(output)

        def compute(self):
            return self._total()

        def _add(self, output):
            raise NotImplementedError

        def _total(self):
            raise NotImplementedError
    """
# Others that have methods of the same names.
KINDS = """
    class Metric:
        def update(self, output):
            pass

    class Other:
        def _add(self, output):
            pass

        def _total(self):
            pass
    """
ERROR = """
    import torch
    from .base import Base

    class Error(Base):
        def {name}(self, output=None):
            self.seen += torch.abs(self.kept).sum().item()
    """


def linted(folder: Path, name: str, base: str = CALLED) -> list[str]:
    """The codes that are reported by default for a method of this name."""
    (folder / "__init__.py").touch()
    (folder / "base.py").write_text(textwrap.dedent(base), encoding="utf-8")
    (folder / "kinds.py").write_text(textwrap.dedent(KINDS), encoding="utf-8")
    file = folder / "error.py"
    file.write_text(textwrap.dedent(ERROR.format(name=name)), encoding="utf-8")
    return [found.message for found in lint(file.read_text(), str(file), Options())]


def test_called_in_each_step(tmp_path: Path) -> None:
    (message,) = linted(tmp_path, "_add")
    assert "per step (called by `update`" in message


@pytest.mark.parametrize("name", ["_total", "_other"])
def test_called_once_or_not_at_all(tmp_path: Path, name: str) -> None:
    assert not linted(tmp_path, name)


def test_a_base_that_calls_another_method(tmp_path: Path) -> None:
    base = CALLED.replace("self._add(output)", "self._more(output)")
    assert not linted(tmp_path, "_add", base)
