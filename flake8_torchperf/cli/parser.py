"""The parser of ``torchperf``'s command lines: arguments in, a namespace or one line of error out.

argparse answers an error with the whole usage and a list of all choices. This parser prints a
single line with the unknown word and the nearest known one.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from flake8_torchperf.options import near

# The exit status of shells, and of argparse, for an unusable command line.
USAGE_ERROR = 2
# The exit status of shells for a program that Ctrl-C ended.
INTERRUPTED = 130
# argparse's distinction between an option and a value: -5 is a number, "-x y" a text.
_LIKE_AN_OPTION = re.compile(r"-[^\s\d][^\s]*$")
_ALL_THAT_FOLLOWS = (argparse.PARSER, argparse.REMAINDER)


class _Unusable(Exception):
    """A complaint of argparse, on its way to where the whole command line is known."""


class Parser(argparse.ArgumentParser):
    """An `argparse.ArgumentParser` that names the nearest word it knows."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse, and reject words that are left over: only this parser knows its own options.

        argparse would pass them up to the main parser, which knows none of them.
        """
        words = sys.argv[1:] if args is None else list(args)
        try:
            parsed, extra = super().parse_known_args(words, namespace)
        except _Unusable as problem:
            # argparse first reports missing arguments, which a misspelt option may have caused.
            for word in self._unknown_options(words):
                self._reject(word)
            complain(self, str(problem))
        if extra:
            self._reject(extra[0])
        return parsed, extra

    def error(self, message: str) -> NoReturn:
        """Stop parsing; `parse_known_args` says why in one line, and leaves with status 2."""
        raise _Unusable(message)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        from flake8_torchperf.findings.page import nearest  # only where there is a mistake

        hint = nearest(str(value), map(str, action.choices))
        if isinstance(action, argparse._SubParsersAction):
            self.error(f"there is no command {value}{hint}")
        self.error(f"{'/'.join(action.option_strings)}: {value!r} is not offered{hint}")

    def _reject(self, word: str) -> NoReturn:
        name = word.partition("=")[0]
        if not name.startswith("-"):
            complain(self, f"one argument too many: {word}")
        complain(self, f"there is no option {name}{near(name, self._options())}")

    def _unknown_options(self, words: Sequence[str]) -> Iterator[str]:
        """Yield the words that look like options but begin none of ours, without a script's own."""
        options = self._options()
        last = any(action.nargs in _ALL_THAT_FOLLOWS for action in self._actions)
        for word in words:
            name = word.partition("=")[0]
            if word == "--" or (last and not word.startswith("-")):
                return
            if _LIKE_AN_OPTION.match(name) and not any(one.startswith(name) for one in options):
                yield word

    def _options(self) -> list[str]:
        return [option for action in self._actions for option in action.option_strings]


def add_parser(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    summary: str,
    example: str,
) -> argparse.ArgumentParser:
    """Return a command's parser, with its example at the end of its help."""
    return commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def complain(parser: argparse.ArgumentParser, message: str) -> NoReturn:
    """Print in one line what a parser cannot use, and exit with status 2."""
    if "did you mean" not in message:
        message = f"{message}; {parser.prog} --help tells what can be used"
    parser.exit(USAGE_ERROR, f"{parser.prog}: {' '.join(message.split())}\n")


def fail(problem: str) -> int:
    """Print a problem in one line; returns the exit status for it."""
    print(f"torchperf: {' '.join(problem.split())}", file=sys.stderr)
    return USAGE_ERROR
