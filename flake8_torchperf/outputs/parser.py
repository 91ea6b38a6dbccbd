"""The parser of ``torchperf``'s command lines: arguments in, a namespace or one line of error out.

argparse answers a mistake with the whole usage and a list of everything it knows. This one says
in a single line what is unknown and what comes nearest. Must not know any command.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

# What a shell reports for a command line that cannot be used; argparse exits with it too.
USAGE_ERROR = 2


class Parser(argparse.ArgumentParser):
    """An `argparse.ArgumentParser` that names the nearest word it knows."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse, and object here to what is left over: only this parser knows its own options.

        argparse would carry it up to the main parser, which knows none of them.
        """
        parsed, extra = super().parse_known_args(args, namespace)
        if extra:
            self._reject(extra[0])
        return parsed, extra

    def error(self, message: str) -> NoReturn:
        """Say in one line what cannot be used, and leave with status 2."""
        complain(self, message)

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
            self.error(f"one argument too many: {word}")
        self.error(f"there is no option {name}{near(name, self._options())}")

    def _options(self) -> list[str]:
        return [option for action in self._actions for option in action.option_strings]


def complain(parser: argparse.ArgumentParser, message: str) -> NoReturn:
    """Say in one line what a parser cannot use, and leave with status 2."""
    if "did you mean" not in message:
        message = f"{message}; {parser.prog} --help tells what can be used"
    parser.exit(USAGE_ERROR, f"{parser.prog}: {' '.join(message.split())}\n")


def near(word: str, known: Iterable[str]) -> str:
    """``"; did you mean 'x'?"`` where some known word is near, else nothing."""
    from flake8_torchperf.findings.page import nearest  # only where there is a mistake

    hint = nearest(word, known)
    return hint if "did you mean" in hint else ""
