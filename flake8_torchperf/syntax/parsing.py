"""Whether a text is Python, for files of which nothing else is asked."""

from __future__ import annotations

import ast
import symtable
import warnings


def require_python(text: str) -> None:
    """Raise SyntaxError where a text does not parse.

    Python's symbol table takes 60 % of the time of an ast, and parses on the way. It objects to
    more than the parser, so that what it refuses is parsed again.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            symtable.symtable(text, "<unknown>", "exec")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            _parse(text)


def _parse(text: str) -> None:
    try:
        ast.parse(text)
    except (ValueError, RecursionError, MemoryError) as error:
        raise syntax_error(error) from error


def syntax_error(error: ValueError | RecursionError | MemoryError) -> SyntaxError:
    """The SyntaxError for what Python's parser raises beside it.

    Before 3.11.4 a null byte is a ValueError. Ten thousand attributes in a row are more than the
    parser can hold; uncaught, either would end the whole run.
    """
    if isinstance(error, ValueError):
        return SyntaxError(str(error))
    reason = str(error) or type(error).__name__
    return SyntaxError(f"more than Python's parser can hold: {reason}")
