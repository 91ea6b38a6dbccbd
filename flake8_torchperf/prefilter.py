"""Decide by the words of a file and of the files around it if it needs any analysis.

This must stay cheap to import and to call: it runs for every file, and for most files nothing else
runs. Nothing is parsed.
"""

from __future__ import annotations

import os
import re
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from flake8_torchperf.project.file_index import INIT, MAX_PACKAGE_DEPTH, FileIndex
from flake8_torchperf.project.import_roots import (
    STARTS,
    TORCH_WORDS,
    is_elsewhere,
    is_package,
    project_folder,
    start_of,
)
from flake8_torchperf.syntax.contract_comments import SAYS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flake8_torchperf.project.texts.text_search import TextSearch

_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<dots>\.*)(?P<source>[\w.]*)[ \t]+import[ \t]*"
    r"(?P<names>\((?:[^)#]|#[^\n]*)*|[^\n#(]+)|import[ \t]+(?P<modules>[^\n#]+))",
    re.MULTILINE,
)
_NAME = re.compile(r"\w+")
# The first word of each of several: `import a.b as c, d`.
_MODULE = re.compile(r"(?:^|,)\s*([\w.]+)")
# Libraries whose tensors have the same methods: a file that imports one and never says torch uses
# those tensors.
_ELSEWHERE = re.compile(
    r"^[ \t]*(?:import|from)[ \t]+(?:paddle|tensorflow|mindspore|jittor|mxnet|oneflow|jax)\b",
    re.MULTILINE,
)


# Calls that wait if their operand is a tensor, in a file that need not import torch for them.
_READS = re.compile(r"\b(?:float|int|bool)\(|\.(?:item|tolist|numpy|cpu)\(")
# Functions and classes, which other modules import from a file.
_DEFINES = re.compile(r"^(?:class|def|async def)[ \t]+(\w+)", re.MULTILINE)


def concerns(lines: Iterable[str], filename: str) -> bool:
    """True if a file with these lines needs analysis.

    Analysis is needed if the file, or a file of its package that it imports from, contains one of
    `TORCH_WORDS`, or if it reads values and a module of its project that contains one names what it
    defines: a meter or a callback seldom imports torch. A file that imports another tensor library
    must contain "torch".
    """
    text = "".join(lines)
    if "torch" not in text and _ELSEWHERE.search(text):
        return False
    if says(text):
        return True
    path = _path_of(filename)
    return path != "" and (_imports_it(text, path) or _may_be_given_tensors(text, path))


def read_in_vain(lines: Iterable[str], filename: str) -> dict[str, str]:
    """Return what `concerns` has read of other files where it is False, as a cache records it.

    Of a module that the file imports, that is all of it; of its project, if the modules that say
    torch name what it defines.
    """
    text = "".join(lines)
    path = _path_of(filename)
    if not path or ("torch" not in text and _ELSEWHERE.search(text)):
        return {}
    reads: dict[str, str] = {}
    _note_imported(text, path, reads)
    texts = _texts_beside(text, path)
    if texts is not None:
        from flake8_torchperf.project.answers import BESIDE_TORCH, PART

        reads[texts.folder] = texts.content
        for name in dict.fromkeys(_DEFINES.findall(text)):
            question = f"{BESIDE_TORCH}{name}"
            reads[f"{texts.folder}{PART}{question}"] = texts.answer(question)
    return reads


def _path_of(filename: str) -> str:
    """Return the whole path of a file; "" if there is none."""
    return os.path.abspath(filename) if os.path.isfile(filename) else ""


def _note_imported(text: str, path: str, reads: dict[str, str]) -> None:
    """Record the files that a text imports, those that are missing included."""
    from flake8_torchperf.project.files import read_file

    for target in _targets(text, os.path.dirname(path), reads):
        for candidate in _files_of(target):
            if candidate in reads or (_is_init(path) and _is_init(candidate)):
                continue
            data, reads[candidate] = read_file(candidate)
            if data is not None and _is_init(candidate):
                _note_imported(data.decode("utf-8", "replace"), candidate, reads)


def states_contracts(lines: Iterable[str]) -> bool:
    """True if a file with these lines mentions contracts, whatever else it says."""
    return SAYS in "".join(lines)


def says(text: str) -> bool:
    """True if the text contains one of `TORCH_WORDS`."""
    return any(word in text for word in TORCH_WORDS)


def _imports_it(text: str, path: str) -> bool:
    return any(_says(other, *stamp) for other, stamp in _imported(text, path))


def _may_be_given_tensors(text: str, path: str) -> bool:
    """True if a file reads values, and a module of its project that says torch names what it has.

    The modules of the project are read once, for all files that are linted.
    """
    texts = _texts_beside(text, path)
    if texts is None or not texts.that_say_torch:
        return False
    return any(map(texts.is_beside_torch, dict.fromkeys(_DEFINES.findall(text))))


def _texts_beside(text: str, path: str) -> TextSearch | None:
    """Return the texts of the project of a file that reads values; None for other files."""
    if not _READS.search(text):
        return None
    project = _Starts(os.path.dirname(path)).project
    if not project:
        return None
    from flake8_torchperf.project.texts.text_search import TextSearch, is_too_large, read_texts

    folder = os.path.join(project, "")
    return TextSearch([], folder) if is_too_large(folder) else read_texts(folder)


def _imported(text: str, path: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield each file of the same package or folder that a text imports from, with its stamp."""
    folder = os.path.dirname(path)
    for target in _targets(text, folder):
        for candidate in _files_of(target):
            stamp = _stamp(candidate)
            if stamp is not None:
                yield candidate, stamp


def _files_of(target: str) -> tuple[str, str]:
    """Return the files in which a module at a path may be."""
    return f"{target}.py", os.path.join(target, INIT)


def _is_init(path: str) -> bool:
    return os.path.basename(path) == INIT


def _targets(text: str, folder: str, checked: dict[str, str] | None = None) -> Iterator[str]:
    """Yield the paths, without suffix, of the modules that a text imports.

    An imported name counts as a module, since only the file system shows if it is one. ``checked``
    receives the queries for where the imports start.
    """
    starts = _Starts(folder, checked)
    for found in _IMPORT.finditer(text):
        dots = found["dots"] or ""
        base = folder
        for _ in dots[1:]:
            base = os.path.dirname(base)
        for dotted in _MODULE.findall(found["modules"] or found["source"] or "") or [""]:
            root = base if dots else starts.of(dotted.partition(".")[0])
            if not root:
                continue
            target = os.path.join(root, *filter(None, dotted.split(".")))
            yield target
            for name in _NAME.findall(found["names"] or ""):
                yield os.path.join(target, name)


class _Starts:
    """The folders in which the absolute imports of a module in one folder start."""

    def __init__(self, folder: str, checked: dict[str, str] | None = None) -> None:
        self._checked = {} if checked is None else checked
        self._folder, self._top = folder, ""
        for _ in range(MAX_PACKAGE_DEPTH):
            if not is_package(self._folder):
                break
            self._folder, self._top = os.path.split(self._folder)
        self._index = FileIndex()

    @cached_property
    def project(self) -> str:
        """The folder of the project around that in which the imports start; "" if it is shared."""
        return project_folder(self._folder)

    def of(self, head: str) -> str:
        """Return the folder where ``import head`` starts if the project has ``head``; else ""."""
        if head == self._top:
            return self._folder
        if not self.project or is_elsewhere(head):
            return "" if self._top else self._folder
        found = start_of(head, self._folder, self.project, self._index)
        self._checked[f"{self._folder}{STARTS}{head}"] = found
        return found


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


@lru_cache(maxsize=4096)
def _says(path: str, modified: int, size: int) -> bool:
    """True if the file contains one of `TORCH_WORDS`; for a package, also if its imports do."""
    from flake8_torchperf.project.files import read_file

    data, _ = read_file(path)
    text = "" if data is None else data.decode("utf-8", "replace")
    if says(text) or not _is_init(path):
        return says(text)
    return any(
        not _is_init(other) and _says(other, *stamp) for other, stamp in _imported(text, path)
    )
