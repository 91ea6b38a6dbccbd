"""Files that we write and read back: JSON of a known version, read whole or not at all.

They are data: bounded, checked, never executed. They are written in one step.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from flake8_torchperf.special_files import refuse_special

if TYPE_CHECKING:
    from pathlib import Path


class DataFileError(ValueError):
    """A file that can't be used. The text is one line: what, where, what to do."""


@dataclass(frozen=True)
class FileKind:
    """One kind of file.

    ``name`` is its name in messages, ``mark`` the key that holds its version, ``made_by`` the
    command that writes one. A file of more than ``max_bytes`` was not written by us.
    """

    name: str
    mark: str
    version: int
    max_bytes: int
    made_by: str
    error: type[DataFileError]

    @property
    def advice(self) -> str:
        """The advice for a file that is damaged."""
        return f"restore it, or remove it and write it with {self.made_by}"

    def wrong(self, path: Path, problem: str) -> DataFileError:
        """Return the error for a file that is not of this kind."""
        return self.error(f"{path} is no {self.name}: {problem}; {self.advice}")


def read_text(path: Path, kind: FileKind) -> str:
    """Return the text of a file. Raises the kind's error."""
    try:
        refuse_special(path)
        if path.stat().st_size > kind.max_bytes:
            raise kind.error(f"{path} is too large to be a {kind.name}; name another file")
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise kind.error(f"there is no file {path}; write it with {kind.made_by}") from None
    except OSError as error:
        raise kind.error(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise kind.wrong(path, "it is no UTF-8 text") from None


def parse_document(text: str, path: Path, kind: FileKind) -> dict[str, Any]:
    """Return the JSON object in a text, of a version that is known. Raises the kind's error."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise kind.wrong(path, f"line {error.lineno}: {error.msg}") from None
    except (RecursionError, ValueError):
        raise kind.wrong(path, "it cannot be parsed") from None
    version = data.get(kind.mark) if isinstance(data, dict) else None
    if type(version) is not int or version < 1:
        raise kind.wrong(path, f'it has no "{kind.mark}" version')
    if version > kind.version:
        known = f"and this flake8-torchperf reads {kind.version}; upgrade it"
        raise kind.error(f"{path} has version {version}, {known}")
    assert isinstance(data, dict)
    return data


def write_whole(path: Path, text: str) -> None:
    """Write in one step: a run that ends half-way leaves the old file. Raises OSError."""
    half = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
    try:
        with open(half, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(half, path)
    except OSError:
        half.unlink(missing_ok=True)
        raise


def relative(filename: str, folder: str) -> str:
    """Return a path relative to a folder, with slashes; the full path if that is impossible."""
    above, name = os.path.split(os.path.abspath(filename))
    path = os.path.join(os.path.realpath(above), name)
    try:
        return os.path.relpath(path, folder).replace(os.sep, "/")
    except ValueError:  # another drive
        return path.replace(os.sep, "/")
