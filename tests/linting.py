"""Lint a program written in a test and hold the findings against its trailing comments."""

from __future__ import annotations

import io
import re
import textwrap
import tokenize
from collections.abc import Mapping
from pathlib import Path

import pytest

from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.linter import lint
from flake8_torchperf.options import Options

# What the programs of most tables start with; a table about imports passes "" instead.
PRELUDE = """\
import math
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
"""
# A training loop whose `print` waits, for tests of what is done with findings.
TRAINING_STEP = """\
import torch


def train(model: torch.nn.Module, loader, opt):
    for x in loader:
        loss = model(x.cuda()).sum()
        loss.backward()
        opt.step()
        print(loss)
"""

HOT = Options(scope=Level.HOT, min_worth=0.0)
LOOP = Options(scope=Level.LOOP, min_worth=0.0)
ALL = Options(scope=Level.COLD, min_worth=0.0)

_CODES = re.compile(r"#\s*(TPF\d{3}(?:,\s*TPF\d{3})*)\s*")


def program(code: str, prelude: str = PRELUDE) -> str:
    """The source text of an indented program, behind its prelude."""
    return prelude + textwrap.dedent(code)


def expected(source: str) -> list[tuple[int, str]]:
    """Line and code of every ``# TPF101`` or ``# TPF101, TPF301`` comment."""
    found: list[tuple[int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and "TPF" in token.string:
            match = _CODES.fullmatch(token.string)
            assert match, f"line {token.start[0]}: {token.string} names no codes"
            found += [(token.start[0], code.strip()) for code in match[1].split(",")]
    return sorted(found)


def findings(source: str, options: Options = HOT, filename: str = "model.py") -> list[str]:
    """Every finding as ``line: code message``."""
    return [f"{f.line}: {f.code} {f.message}" for f in lint(source, filename, options)]


def in_package(folder: Path, name: str, source: str) -> str:
    """The path of a file like ``gui/window.py`` with this source, in packages all the way."""
    file = folder / name
    file.parent.mkdir(parents=True)
    for part in Path(name).parents:
        (folder / part / "__init__.py").touch()
    file.write_text(source, encoding="utf-8")
    return str(file)


def check(
    code: str,
    options: Options = HOT,
    *,
    prelude: str = PRELUDE,
    only: frozenset[str] | None = None,
) -> None:
    """Assert that a program has the findings its comments name, each once, and no others.

    ``only`` limits the comparison to some codes, for a table about a few rules.
    """
    source = program(code, prelude)
    compile(source, "case", "exec", dont_inherit=True)
    found = lint(source, "model.py", options)
    wanted = [row for row in expected(source) if only is None or row[1] in only]
    told = [(f.line, f.code) for f in found]
    if sorted(row for row in told if only is None or row[1] in only) != wanted:
        rows = "\n".join(f"  {f.line}: {f.code} {f.message}" for f in found) or "  nothing"
        numbered = "\n".join(f"{i:3} {line}" for i, line in enumerate(source.splitlines(), 1))
        pytest.fail(f"wanted {wanted}, found\n{rows}\nin\n{numbered}", pytrace=False)


def places(source: str, options: Options) -> set[tuple[int, str]]:
    """Lines and codes of the findings."""
    return {(f.line, f.code) for f in lint(source, "model.py", options)}


def check_pair(code: str, options: Options = HOT) -> None:
    """Assert that exactly the commented lines are reported, and that more is found in all."""
    check(code, options)
    source = program(code)
    assert places(source, options) < places(source, ALL)


def table(cases: Mapping[str, str]) -> pytest.MarkDecorator:
    """Parametrise a test over a table of programs, named by what each shows."""
    return pytest.mark.parametrize("code", list(cases.values()), ids=list(cases))


# What the tests of compiled code begin with, and the rules they are about.
COMPILING = """\
import copy
import functools
import logging
import math
import random
import time
import warnings
import numpy as np
import torch
from torch import Tensor, nn
from torch.func import grad, vmap

logger = logging.getLogger(__name__)
"""
COMPILED = frozenset(f"TPF60{i}" for i in range(1, 9))
