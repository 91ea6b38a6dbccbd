"""``torchperf why FILE:LINE``: a place in, an account of it out, as text or JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from flake8_torchperf.cli.parser import add_parser, fail
from flake8_torchperf.cli.settings.command_line import add_settings, settings

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from flake8_torchperf.cli.notebooks.source import Notebook
    from flake8_torchperf.cli.why.account import Account
    from flake8_torchperf.cli.why.decisions import Decision
    from flake8_torchperf.cli.why.weighing import Worth
    from flake8_torchperf.options import Options


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``why``."""
    parser = add_parser(
        commands,
        "why",
        "say why a line is reported, or is not, and what is known of its values",
        "torchperf why src/train.py:41",
    )
    parser.add_argument("place", metavar="FILE:LINE", help="a line, as flake8 or check prints it")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    add_settings(parser, profile=True)
    parser.set_defaults(run=why)


def why(arguments: argparse.Namespace) -> int:
    """Print the account of a line; returns the exit status."""
    from flake8_torchperf.cli.why.cells import CellError, names_notebook, notebook_at
    from flake8_torchperf.runtime.confirm.plan import PlanError

    book = None
    try:
        if names_notebook(arguments.place):
            path, book, line = notebook_at(arguments.place)
            text = "".join(book.lines)
        else:
            path, text, line = _module_at(arguments.place)
        account = _account(text, path, line, settings(arguments, "why", profile=True), book)
    except (PlanError, CellError) as error:
        return fail(f"why: {error}")
    except SyntaxError as error:
        return fail(f"why: {_where(path, error.lineno or 1, book)}: {error.msg}")
    if arguments.format == "json":
        print(json.dumps(asdict(account), indent=2))
    else:
        print("\n".join(_lines(account)))
    return 0


def _module_at(place: str) -> tuple[str, str, int]:
    """Return the path and text of a module and the line that a place names. Raises PlanError."""
    from flake8_torchperf.fixes.engine.source_files import NotWrittenError, read_source
    from flake8_torchperf.project.files import split_lines
    from flake8_torchperf.runtime.confirm.plan import PlanError, parse_request

    request = parse_request(place)
    path = str(request.path)
    if not request.line:
        raise PlanError(f"{path} names no line: write {path}:12")
    try:
        text = read_source(path).text
    except NotWrittenError as error:
        raise PlanError(f"{path} {error}") from error
    count = len(split_lines(text))
    if request.line > count:
        raise PlanError(f"{path} has {count} lines: there is no line {request.line}")
    return path, text, request.line


def _account(text: str, path: str, line: int, options: Options, book: Notebook | None) -> Account:
    """Return the account of a line, in the words of the notebook if it stands in one."""
    from flake8_torchperf.cli.why.account import account_of
    from flake8_torchperf.cli.why.cells import in_cells

    account = account_of(text, path, line, options)
    return account if book is None else in_cells(account, book)


def _where(path: str, line: int, book: Notebook | None) -> str:
    from flake8_torchperf.cli.why.cells import place_in

    return f"{path}:{line}" if book is None else f"{path}:{place_in(book, line)}"


def _lines(account: Account) -> Iterator[str]:
    yield f"{account.path}:{account.line}: {account.source}"
    around = account.function or "the module"
    yield f"in {around}: the line runs {account.frequency}" if account.frequency else f"in {around}"
    if account.silenced:
        yield "the line says noqa: flake8 may silence what is reported here"
    if not account.findings:
        yield ""
        yield "nothing is found here, even with --scope all --confidence assumed:"
        yield from (f"  {one.text}" for one in account.silent)
    for judged in account.findings:
        yield ""
        yield from _of_finding(judged)
    if account.values:
        yield ""
        yield "values"
    for value in account.values:
        yield f"  {value.expression}: {value.kind}"
        if value.reason:
            yield f"    since {value.reason}"
            yield f"    it lies: {value.residence}"


def _of_finding(judged: Decision) -> Iterator[str]:
    yield f"{'reported' if judged.reported else 'not reported'}: {judged.code} {judged.message}"
    if judged.sure:
        yield f"  a tensor: {judged.tensor} ({judged.sure})"
        yield f"  it lies: {judged.residence}"
    else:
        yield f"  a tensor: {judged.tensor}"
    yield f"  it runs: {judged.frequency}"
    for call in judged.calls:
        yield f"    called by {call}"
    if judged.wanted:
        yield "  the wait: wanted, or none"
    yield f"  {judged.decided} [{judged.row}]"
    if judged.rule:
        yield f"    {judged.rule}"
    yield "  what would change it:"
    yield from (f"    {one}" for one in judged.changes)
    yield from _of_worth(judged.worth)


def _of_worth(told: Worth) -> Iterator[str]:
    yield f"  its worth: {told.worth:.2f}, the share of such findings that are worth telling"
    yield f"    {told.start:+.2f} any finding"
    yield from (f"    {one.weight:+.2f} {one.sentence} [{one.feature}]" for one in told.pieces)
    if told.follows:
        yield f"  the wait in line {told.follows} leads it, with hardly any work between the two"
    if told.changes:
        yield "  what would raise it:"
    sizes = {one.feature: one.weight for one in told.pieces}
    for one in told.changes:
        yield f"    {one.advice} (without {sizes[one.feature]:+.2f} [{one.feature}])"
