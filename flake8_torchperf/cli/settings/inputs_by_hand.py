"""The options ``--inputs`` and ``--harness``: what a person says that functions are called with."""

from __future__ import annotations

import ast
from pathlib import Path

from flake8_torchperf.options import OptionError
from flake8_torchperf.special_files import refuse_special


def parse_inputs(text: str) -> dict[str, str]:
    """Return ``a=[torch.randn(n)], b=2`` as source by name. Raises OptionError."""
    if not text.strip():
        return {}
    try:
        call = ast.parse(f"f({text}\n)", mode="eval").body
        if isinstance(call, ast.Call) and not call.args and all(k.arg for k in call.keywords):
            return {str(one.arg): ast.unparse(one.value) for one in call.keywords}
    except (SyntaxError, ValueError):
        pass  # the code below reports it
    except (RecursionError, MemoryError) as error:
        raise OptionError("--inputs: the text is nested too deeply for Python's parser") from error
    raise OptionError(f'--inputs: {text!r} is not of the form "name=expression, ..."')


def check_harness(path: Path) -> None:
    """Raise OptionError, with one line, where a file defines no ``inputs(n)``."""
    from flake8_torchperf.runtime.confirm.plan import UNPARSABLE, unparsable

    try:
        refuse_special(path)
        tree = ast.parse(path.read_bytes())
    except OSError as error:
        raise OptionError(f"--harness: {path} cannot be read: {error.strerror}") from error
    except UNPARSABLE as error:
        raise OptionError(f"--harness: {unparsable(path, error)}") from error
    if not any(isinstance(one, ast.FunctionDef) and one.name == "inputs" for one in tree.body):
        raise OptionError(f"--harness: {path} defines no function inputs(n)")
