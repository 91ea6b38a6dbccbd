"""Parse a text, or only check that it is Python, for files that need no further analysis."""

from __future__ import annotations

import ast
import symtable
import warnings


def require_python(text: str) -> None:
    """Raise SyntaxError if a text does not parse.

    Building Python's symbol table parses the text and takes 60 % of the time of building an ast. It
    rejects more texts than the parser does, so a rejected text is parsed again.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            symtable.symtable(text, "<unknown>", "exec")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            parsed(text)


def parsed(text: str) -> ast.Module:
    """Return the ast of a text. Raises SyntaxError, whatever Python's parser raises."""
    try:
        return ast.parse(text)
    except (ValueError, RecursionError, MemoryError) as error:
        raise _syntax_error(error) from error


def quietly_parsed(text: str) -> ast.Module:
    """Return the ast of a text without warnings, which Python gives when the file is linted.

    Raises what Python's parser raises.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def _syntax_error(error: ValueError | RecursionError | MemoryError) -> SyntaxError:
    """Return a SyntaxError for another exception that Python's parser raises.

    Before 3.11.4 a null byte is a ValueError. Ten thousand attributes in a row exceed the parser's
    limits. Uncaught, either would end the whole run.
    """
    if isinstance(error, ValueError):
        return SyntaxError(str(error))
    reason = str(error) or type(error).__name__
    return SyntaxError(f"more than Python's parser can hold: {reason}")
