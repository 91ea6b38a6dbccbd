"""Reads a file to be changed, and writes it completely or not at all.

Encoding, byte-order mark, line ends and mode do not change.
"""

from __future__ import annotations

import codecs
import io
import os
import stat
import tempfile
import tokenize
from dataclasses import dataclass

from flake8_torchperf.special_files import refuse_special


class NotWrittenError(Exception):
    """The file was not written; ``str`` says why, in a few words."""


@dataclass(frozen=True, slots=True)
class FileText:
    """The content of a file: its bytes, and the text in them.

    ``encoding`` is Python's name for the encoding, ``mark`` the byte-order mark at the start.
    """

    path: str
    data: bytes
    text: str
    encoding: str
    mark: bytes = b""

    def encoded(self, text: str) -> bytes:
        """Return the bytes for a changed text. Raises NotWrittenError if it cannot be encoded."""
        try:
            return self.mark + text.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise NotWrittenError(f"the fixed text is no {self.encoding}") from error


def read_source(path: str) -> FileText:
    """Read a file as Python would. Raises NotWrittenError, with the reason, where it can't."""
    return decoded(path, read_bytes(path))


def read_bytes(path: str) -> bytes:
    """Return the bytes of a file. Raises NotWrittenError, with the reason, where it can't."""
    try:
        refuse_special(path)
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise NotWrittenError(f"cannot be read: {error.strerror}") from error


def decoded(path: str, data: bytes) -> FileText:
    """Return the text in a file's bytes. Raises NotWrittenError if they are not text."""
    try:
        encoding = tokenize.detect_encoding(io.BytesIO(data).readline)[0]
        mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
        encoding = "utf-8" if encoding == "utf-8-sig" else encoding
        text = data[len(mark) :].decode(encoding)
    except (SyntaxError, UnicodeError, LookupError) as error:
        raise NotWrittenError(f"Python can't read it: {error}") from error
    return FileText(path, data, text, encoding, mark)


def check_writable(path: str) -> None:
    """Raise NotWrittenError where a file is a symbolic link or is read-only."""
    if os.path.islink(path):
        raise NotWrittenError("is a symbolic link; name the file that it leads to")
    # Root may write any file; one that its owner may not write was locked on purpose.
    try:
        locked = not os.stat(path).st_mode & stat.S_IWUSR
    except OSError as error:
        raise NotWrittenError(f"cannot be written: {error.strerror}") from error
    if locked or not os.access(path, os.W_OK):
        raise NotWrittenError("is read-only")


def write(source: FileText, text: str) -> None:
    """Replace the content of a file with ``text`` in one step, keeping its mode.

    Raises NotWrittenError, and leaves the file alone, where it is a symbolic link, is read-only, or
    has changed since it was read.
    """
    path, data = source.path, source.encoded(text)
    check_writable(path)
    temporary = ""
    try:
        status = os.stat(path)
        handle, temporary = tempfile.mkstemp(
            prefix=f".{os.path.basename(path)}.", dir=os.path.dirname(path) or "."
        )
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, status.st_mode & 0o7777)
        with open(path, "rb") as file:
            if file.read() != source.data:
                raise NotWrittenError("was changed meanwhile")
        os.replace(temporary, path)
        temporary = ""
    except OSError as error:
        raise NotWrittenError(f"cannot be written: {error.strerror}") from error
    finally:
        if temporary:
            os.unlink(temporary)
