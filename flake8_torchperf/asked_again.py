"""Asks again what calls give, after the functions that they are followed into have changed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from flake8_torchperf.linter import compiled_in, prepared
from flake8_torchperf.project.answers import noting, record
from flake8_torchperf.project.files import as_counted
from flake8_torchperf.project.module_index import read_module
from flake8_torchperf.project.stores.collection import collection_paused

if TYPE_CHECKING:
    import ast
    from collections.abc import Sequence

    from flake8_torchperf.options import Options


def ask_again(
    tree: ast.Module,
    lines: Sequence[str],
    filename: str,
    options: Options,
    asked: Sequence[tuple[str, str]],
    standing: Sequence[tuple[str, str]],
) -> dict[str, str] | None:
    """Return what was read of other files to answer the questions as before; None for a change.

    The module is the one that asked, in ``asked`` with the answers that it got. The answers in
    ``standing`` are taken as they are.
    """
    from flake8_torchperf.interpreter.driver.answered_again import are_same
    from flake8_torchperf.interpreter.engine.followed import stand
    from flake8_torchperf.judgement.worth.tails import LEFT, Tails, as_outcome

    reads: dict[str, str] = {}
    path = Path(filename)
    with collection_paused(), noting(reads):
        module = read_module(tree, as_counted(lines), path if os.path.isfile(path) else None)
        record(module.checked)
        try:
            compiled = compiled_in(module, options, reads)
            _, analysis, _, heats = prepared(module, compiled, options, reads)
            stand(standing, analysis)
            tails = Tails(analysis, heats)
            others = {LEFT: lambda info, depth: as_outcome(tails.left_by(info, depth))}
            try:
                return reads if are_same(asked, analysis, others) else None
            finally:
                analysis.forget()
                heats.forget()
        finally:
            module.forget()
