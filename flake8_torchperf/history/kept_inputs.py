"""The folder in which `torchperf run --keep-inputs` keeps inputs of the functions that it ran.

Each process writes an index of its own, a line of JSON for each call, and a file for each call that
could be kept. The files are pickles: only the children of `torchperf fix --verify` load them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path

INDEX = ".index.jsonl"
# The suffix of the other files in a folder of kept inputs: one for each call.
CALL = ".pt"
MADE_BY = "torchperf run --save-profile FILE --keep-inputs"


class KeptInputsError(ValueError):
    """A folder of kept inputs that can't be used. The text is one line."""


@dataclass(frozen=True)
class KeptCall:
    """One call. ``path`` is relative to the folder of the run, with slashes.

    ``file`` is the name of the file that holds its arguments, "" where ``problem`` says why they
    were not kept. ``modules`` are the files of the modules that its objects are pickled by, by the
    names that these had in the run. ``autograd`` says whether gradients were recorded.
    """

    path: str
    function: str
    file: str
    modules: Mapping[str, str] = field(default_factory=dict)
    autograd: bool = True
    problem: str = ""

    def as_line(self) -> str:
        """Return the line of an index."""
        return json.dumps(asdict(self)) + "\n"


def folder_beside(profile: Path) -> Path:
    """Return the folder for the inputs of the run that a profile was recorded from."""
    return profile.with_suffix(".inputs")


def unsuitable(folder: Path) -> str:
    """Return why no inputs can be kept there, or "": a folder with other files is left alone."""
    if not folder.exists():
        return ""
    if not folder.is_dir():
        return f"{folder} is no folder, and is left as it is"
    others = [one.name for one in folder.iterdir() if not one.name.endswith((INDEX, CALL))]
    return f"{folder} holds {others[0]}, and is left as it is" if others else ""


def cleared(folder: Path) -> None:
    """Make the folder, without the inputs of an earlier run. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    for one in folder.iterdir():
        if one.name.endswith((INDEX, CALL)):
            one.unlink()


def calls_of(folder: Path, path: str, function: str) -> tuple[KeptCall, ...]:
    """Return the calls of one function. Raises KeptInputsError."""
    return _by_function(folder).get((path, function), ())


@lru_cache(maxsize=8)
def _by_function(folder: Path) -> dict[tuple[str, str], tuple[KeptCall, ...]]:
    found: dict[tuple[str, str], tuple[KeptCall, ...]] = {}
    for one in kept_calls(folder):
        found[one.path, one.function] = (*found.get((one.path, one.function), ()), one)
    return found


@lru_cache(maxsize=8)
def kept_calls(folder: Path) -> tuple[KeptCall, ...]:
    """Return the calls in a folder, in the order of the processes. Raises KeptInputsError."""
    indices = sorted(folder.glob(f"*{INDEX}"))
    if not indices:
        raise KeptInputsError(f"there are no inputs in {folder}; keep them with {MADE_BY}")
    found: list[KeptCall] = []
    for index in indices:
        try:
            lines = index.read_text(encoding="utf-8").splitlines()
            found += [KeptCall(**json.loads(line)) for line in lines]
        except (OSError, ValueError, TypeError) as error:
            told = f"{index} cannot be read: {error}; write it anew with {MADE_BY}"
            raise KeptInputsError(told) from error
    inside = [one for one in found if Path(one.file).name == one.file]
    if len(inside) < len(found):
        raise KeptInputsError(f"{folder} names files elsewhere; write it anew with {MADE_BY}")
    return tuple(found)
