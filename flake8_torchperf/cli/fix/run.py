"""The files of one run: fixed, then written or shown, and counted."""

from __future__ import annotations

import difflib
import os
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from flake8_torchperf.cli.check_files import STDIN, for_each
from flake8_torchperf.cli.check_options import CHECK, SELECT_OURS, Face, look_for_notebooks
from flake8_torchperf.cli.check_results import Files
from flake8_torchperf.cli.check_run import check_places, read_options
from flake8_torchperf.cli.fix import verification
from flake8_torchperf.cli.fix.work import FixWork, as_read, concerned, fix_file
from flake8_torchperf.cli.notebooks.notebook_names import is_notebook
from flake8_torchperf.cli.parser import USAGE_ERROR
from flake8_torchperf.fixes.engine.rounds import Choice
from flake8_torchperf.fixes.engine.source_files import NotWrittenError, check_writable, write
from flake8_torchperf.plugin import TorchPerfPlugin
from flake8_torchperf.project.texts import text_search

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Collection, Sequence

    from flake8_torchperf.cli.fix.work import Fixed
    from flake8_torchperf.options import Options

DESCRIPTION = """\
Rewrite what fixes can rewrite, in place, with flake8's options and configuration: what is not
selected, is ignored for a file or has a `# noqa` is left alone. Safe fixes are made by default;
`torchperf explain CODE` shows those of a rule, and says of the others what they change."""
EXAMPLES = """\
example:
  torchperf fix --diff src
  torchperf fix src tests
  torchperf fix --unsafe --select TPF301 src/model.py
  torchperf fix --verify src

exit status: 0 where no findings are left, 1 where some are, 2 for a wrong command line or a
file that cannot be read or parsed."""
# A fix in one file can change the findings in other files of its package. Each pass carries such a
# change one call or value further; no package has needed more than two passes.
MAX_PASSES = 10


def run(arguments: Sequence[str], *, first: bool) -> int:
    """Fix the files that the arguments name; returns the exit status.

    ``first`` says that the arguments are those of ``check --fix``, which checks afterwards.
    """
    face = CHECK if first else FIX
    command = "check" if first else "fix"
    _, options = read_options([SELECT_OURS, *arguments], command, _check, face)
    suggested = None if options.suggested else _named_in_full(arguments)
    choice = Choice(options.unsafe, suggested)
    files = Files(options)
    for note in files.notes if not first else ():
        _say(note)
    with tempfile.TemporaryDirectory(prefix="torchperf-") as folder:
        limits = verification.limits(options, folder)
        work = FixWork(options, _ours(), choice=choice, limits=limits)
        try:
            done = _fixed(files, work)
        finally:
            verification.close(limits)
    for one in done:
        if one.problem and not (first and one.unparsed):
            place = f"{one.filename}:{one.line}" if one.line else one.filename
            _say(f"{place}: {one.problem}")
    status = _conclude(done, options)
    return status if files.linted else USAGE_ERROR


def _fixed(files: Files, work: FixWork) -> list[Fixed]:
    """Fix all files; write them, or show the changes."""
    jobs = files.jobs
    done = for_each(fix_file, files.names, work, jobs)
    done.sort(key=lambda one: one.filename)
    for note in sorted({note for one in done for note in one.notes}):
        _say(note)
    if not work.options.diff:
        done = _passes(done, work, jobs, _write)
        for one in done:
            for verdict in one.verified:
                if not verdict.made:
                    print(verification.line_of_text(one.filename, verdict))
        return done
    done = _passes(done, work, jobs, partial(_keep, work.pending))
    for one in done:
        _show(one)
        for verdict in one.verified:
            _say(verification.line_of_text(one.filename, verdict, "would be fixed"))
    return done


def _add_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("fix")
    group.add_argument("--diff", action="store_true", help="show what would change, write nothing")
    group.add_argument(
        "--unsafe", action="store_true", help="make fixes too that change what their page names"
    )
    group.add_argument(
        "--suggested",
        action="store_true",
        help="make fixes too of which only you can tell whether they are right",
    )
    verification.add_options(parser)


def _settle(options: argparse.Namespace, formats: Collection[str]) -> None:
    if not options.verify:
        look_for_notebooks(options)


FIX = Face("torchperf fix", DESCRIPTION, EXAMPLES, _add_options, _settle, codes=True)


def _check(options: argparse.Namespace) -> None:
    check_places(options)
    verification.check(options)
    if STDIN in options.filenames:
        raise ValueError("- cannot be fixed; name a file")
    for name in filter(is_notebook, options.filenames if options.verify else ()):
        raise ValueError(f"{name}: fixes in notebooks cannot be verified; leave out --verify")


def _named_in_full(arguments: Sequence[str]) -> frozenset[str]:
    """Return the codes that ``--select`` on the command line names in full."""
    named: list[str] = []
    for index, word in enumerate(arguments):
        option, equals, value = word.partition("=")
        if option in ("--select", "--extend-select"):
            named += (value if equals else "".join(arguments[index + 1 : index + 2])).split(",")
    return frozenset(code.strip() for code in named if len(code.strip()) == len("TPF101"))


def _ours() -> Options:
    ours = replace(TorchPerfPlugin.options().of_any_worth(), cache=False, baseline=None)
    TorchPerfPlugin.use(ours)
    return ours


def _passes(
    done: list[Fixed],
    work: FixWork,
    jobs: int,
    keep: Callable[[Fixed, dict[str, Fixed]], bool],
) -> list[Fixed]:
    """Keep the changed files, then fix again those that the changes in other files may affect.

    ``keep`` takes the result of one file and all results, and returns whether there is a change.
    """
    results = {one.filename: one for one in done}
    for _ in range(MAX_PASSES):
        kept = frozenset(as_read(one.filename) for one in done if keep(one, results))
        text_search.forget()
        found = list(results.values())
        again = concerned(list(results), found, kept, work.pending) if kept else []
        if not again:
            break
        done = for_each(fix_file, again, work, min(jobs, len(again)))
        for one in done:
            before = results[one.filename]
            results[one.filename] = replace(
                one,
                source=before.source,
                # After a suggested fix, no change is shown as surely right.
                sure=one.sure if before.sure == before.text else before.sure,
                made=before.made + one.made,
                before=before.before,
                verified=(*(v for v in before.verified if v.made), *one.verified),
            )
    return [results[name] for name in sorted(results)]


def _keep(pending: dict[str, bytes], one: Fixed, results: dict[str, Fixed]) -> bool:
    """Note the bytes that a changed file will hold; True if it can be written."""
    if one.changed:
        assert one.source is not None
        try:
            check_writable(one.filename)
            changed = one.source.encoded(one.text)
        except NotWrittenError as error:
            results[one.filename] = _unwritten(one, error)
            return False
        pending[as_read(one.filename)] = changed
    return one.changed


def _unwritten(one: Fixed, error: NotWrittenError) -> Fixed:
    """Return the result of a file that cannot be written."""
    assert one.source is not None
    left = sum(one.before.found.values())
    problem = f"not fixed: it {error}"
    return replace(
        one, text=one.source.text, sure=one.source.text, made=(), left=left, problem=problem,
        verified=(),
    )  # fmt: skip


def _write(one: Fixed, results: dict[str, Fixed]) -> bool:
    """Write one file; True if it was written. Otherwise its result says why, without changes."""
    if not one.changed:
        return False
    assert one.source is not None
    try:
        write(one.source, one.text)
    except NotWrittenError as error:
        results[one.filename] = _unwritten(one, error)
        return False
    for verdict in one.verified:
        if verdict.made:
            print(verification.line_of_text(one.filename, verdict))
    for made in one.made if not one.verified else ():
        place = f"{one.filename}:{made.line}:{made.column + 1}"
        print(f"{place}: {made.code} fixed ({made.name}, {made.safety})")
    return True


def _show(one: Fixed) -> None:
    """Print a unified diff of the changes in a file, with suggested fixes in a second diff."""
    if not one.changed:
        return
    assert one.source is not None
    _show_change(one.filename, one.source.text, one.sure)
    if one.text != one.sure:
        print(f"suggested: {one.filename}")
        _show_change(one.filename, one.sure, one.text)


def _show_change(filename: str, old: str, new: str) -> None:
    name = filename.replace(os.sep, "/")
    before, after = (text.splitlines(keepends=True) for text in (old, new))
    for line in difflib.unified_diff(before, after, name, name):
        text = line.rstrip("\r\n")
        print(text)
        if not line.endswith(("\n", "\r")):
            print("\\ No newline at end of file")


def _conclude(done: list[Fixed], options: argparse.Namespace) -> int:
    """Print in one line what was fixed and what is left; returns the exit status."""
    diff = bool(options.diff)
    made = sum(one.fixed for one in done)
    suggested = sum(len(one.made) for one in done) - made
    files = sum(1 for one in done if one.fixed)
    left = sum(one.left for one in done)
    verb = "would be fixed" if diff else "fixed"
    words = f"{_number(made, 'finding')} {verb} in {_number(files, 'file')}, {left} left"
    if suggested:
        words += f"; {suggested} by suggested fixes"
    if options.verify:
        verdicts = [verdict for one in done for verdict in one.verified]
        words += f"; {verification.summary(verdicts)}"
    print(f"torchperf: fix: {words}", file=sys.stderr)
    if diff:
        left = sum(sum(one.before.found.values()) for one in done)
    if any(one.unread for one in done):
        return USAGE_ERROR
    return 1 if left else 0


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _say(words: str) -> None:
    print(f"torchperf: fix: {words}", file=sys.stderr)


def table(done: Sequence[Fixed]) -> dict[str, tuple[int, int, int]]:
    """Return by code: the findings before, those with a safe fix, and those with any fix."""
    found: Counter[str] = Counter()
    safe: Counter[str] = Counter()
    fixable: Counter[str] = Counter()
    for one in done:
        found += one.before.found
        safe += one.before.safe
        fixable += one.before.fixable
    return {code: (found[code], safe[code], fixable[code]) for code in sorted(found)}
