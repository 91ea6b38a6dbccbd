"""The values of ``check --format``: a name in, a formatter or one line of objection out."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from flake8.formatting.default import COLORS_OFF

from flake8_torchperf.options import near

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from flake8_torchperf.cli.report.reported import Gathered

TEXT = "text"
# Name -> the module here that holds a `Report`.
_MODULES = {
    "grouped": "grouped",
    "functions": "functions",
    "json": "json_report",
    "sarif": "sarif",
    "github": "github",
    "gitlab": "gitlab",
    "junit": "junit",
}
FORMAT_NAMES = (TEXT, *_MODULES)
# flake8's options that print text between or after the lines of a report.
_MIXED = ("count", "statistics", "benchmark", "show_source")
FOR_PEOPLE = ("grouped", "functions", "github")


def settle_format(options: argparse.Namespace, installed: Iterable[str]) -> None:
    """Raise ValueError, with one line, for a format that there is not; ``text`` is flake8's own.

    flake8 itself takes an unknown name for a template and prints it for each finding.
    """
    name = str(options.format)
    if name == TEXT:
        options.format = "default"
    elif name in _MODULES:
        mixed = [one for one in _MIXED if getattr(options, one)]
        if mixed and name not in FOR_PEOPLE:
            option = mixed[0].replace("_", "-")
            raise ValueError(f"--{option} cannot be mixed with --format={name}; leave one out")
    elif name not in installed and "%(" not in name:
        theirs = sorted(one for one in installed if not one.startswith("quiet-"))
        known = [*FORMAT_NAMES, *(one for one in theirs if one not in FORMAT_NAMES)]
        raise ValueError(
            f"--format: {name!r} is not one of {', '.join(known)}, nor a template with %(code)s"
            f"{near(name, known)}"
        )
    elif name not in installed:
        _check_template(name)


def _check_template(template: str) -> None:
    """Raise ValueError, with one line, for a template that flake8 can't fill in."""
    known = {"code": "", "text": "", "path": "", "row": 0, "col": 0}
    try:
        template % {**known, **COLORS_OFF}
    except KeyError as error:
        names = ", ".join(f"%({name})s" for name in known)
        advice = f"use {names}{near(str(error.args[0]), known)}"
        raise ValueError(f"--format: there is no %({error.args[0]})s; {advice}") from None
    except (TypeError, ValueError) as error:
        raise ValueError(f"--format: {template!r} is no template: {error}") from None


def report_for(options: argparse.Namespace) -> Gathered | None:
    """Return the formatter of one of our formats; None if flake8 makes one."""
    module = _MODULES.get(options.format)
    if module is None or options.quiet:
        return None
    made: Gathered = import_module(f"{__package__}.{module}").Report(options)
    return made
