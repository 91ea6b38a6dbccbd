"""``torchperf why FILE:LINE``: a place in, an account of it out, as text or JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from flake8_torchperf.cli.parser import add_parser, fail
from flake8_torchperf.cli.settings.options import add_settings, settings

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from flake8_torchperf.cli.why.account import Account
    from flake8_torchperf.cli.why.decisions import Judged


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``why``."""
    parser = add_parser(
        commands,
        "why",
        "say why a line is reported, or is not, and what is known of its values",
        "torchperf why src/train.py:41",
    )
    parser.add_argument("place", metavar="FILE:LINE", help="a line, as flake8 prints it")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    add_settings(parser)
    parser.set_defaults(run=why)


def why(arguments: argparse.Namespace) -> int:
    """Print the account of a line; returns the exit status."""
    from flake8_torchperf.cli.why.account import account_of
    from flake8_torchperf.fixes.engine.files import NotWrittenError, read_source
    from flake8_torchperf.project.resolver import split_lines
    from flake8_torchperf.runtime.confirm.plan import PlanError, parse_request

    try:
        request = parse_request(arguments.place)
    except PlanError as error:
        return fail(f"why: {error}")
    path = str(request.path)
    if not request.line:
        return fail(f"why: {path} names no line: write {path}:12")
    try:
        text = read_source(path).text
        count = len(split_lines(text))
        if request.line > count:
            return fail(f"why: {path} has {count} lines: there is no line {request.line}")
        account = account_of(text, path, request.line, settings(arguments, "why"))
    except NotWrittenError as error:
        return fail(f"why: {path} {error}")
    except SyntaxError as error:
        return fail(f"why: {path}:{error.lineno or 1}: {error.msg}")
    if arguments.format == "json":
        print(json.dumps(asdict(account), indent=2))
    else:
        print("\n".join(_lines(account)))
    return 0


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


def _of_finding(judged: Judged) -> Iterator[str]:
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
