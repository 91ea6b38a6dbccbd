"""Asks again what calls give, after the functions that they are followed into have changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.linter import compiled_in, opened, prepared

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
    with opened(tree, lines, filename, reads) as module:
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
