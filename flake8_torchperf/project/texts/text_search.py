"""A text search over all modules of a package, because a caller names the function it calls."""

from __future__ import annotations

import os
import re
import time
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple

from flake8_torchperf.digest import digest, digest_of_files
from flake8_torchperf.project import option_values as options
from flake8_torchperf.project.answers import (
    BESIDE_TORCH,
    CLASS_FOUND,
    IS_PROGRAM,
    LOOKED_UP,
    ON_PATH,
    OPTION,
    PART,
    SHOWN,
    THAT_SAY,
    TRAINS,
    answer_of_search,
    answer_of_values,
)
from flake8_torchperf.project.file_index import INIT, MAX_NAMED, is_test_path, modules_below
from flake8_torchperf.project.files import TRUSTED, read_bytes, stamp
from flake8_torchperf.project.import_roots import TORCH_WORDS, up_to
from flake8_torchperf.project.option_values import (
    NOT_GIVEN,
    Given,
    given_as_data,
    given_from_data,
    values_given,
)
from flake8_torchperf.project.stores.shelf import shelved, version
from flake8_torchperf.project.texts.asked_texts import PATTERNS, pattern_of
from flake8_torchperf.project.texts.looked_up import LookedUp
from flake8_torchperf.project.texts.search_path import folders_on_path
from flake8_torchperf.project.texts.section_options import values_in_section
from flake8_torchperf.project.texts.settings_files import (
    read_documents,
    read_notebooks,
    read_settings,
)
from flake8_torchperf.syntax.contract_comments import promises

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# A word in more modules than this is too common, because each of them would have to be parsed.
MOST_MODULES = 24
# After this many searches, the words of all modules are gathered, which takes as long as about
# twenty searches.
SEARCHES = 16
# The calls of a training step, and the definition of a method that takes one for a framework.
_BACKWARD = re.compile(rb"\.(?:backward|manual_backward)\(")
_STEP = re.compile(rb"\.step\(")
_TRAINING_STEP = re.compile(rb"^\s+def training_step\(", re.MULTILINE)
# Signs of a module that is run as a program; one may read its command line without asking.
_STARTS = re.compile(rb"^(?:if\s+\(?__name__\s*==|[^\s#].*\bparse_(?:known_)?args\()", re.MULTILINE)
# An import of names, which may stand in parentheses.
_IMPORT = re.compile(
    rb"^[ \t]*from[ \t]+[\w.]+[ \t]+import[ \t]*(?:\([^)]*\)|[^\n]*)", re.MULTILINE
)
# How many other names an option is followed through.
MAX_RENAMED = 3
# Blanks for all bytes that no word contains; bytes above ASCII are parts of letters.
_SPACES = bytes(
    one if one >= 128 or chr(one).isalnum() or one == ord("_") else ord(" ") for one in range(256)
)


class Range(NamedTuple):
    """The modules that are searched: those in a folder, and others that hold one of some words.

    ``inside`` is the folder, or one file, below the folder of a `TextSearch`; "" for all of that.
    """

    inside: str = ""
    words: tuple[str, ...] = ()


EVERYWHERE = Range()


class TextSearch:
    """The texts of the modules below a folder, as they were when they were read."""

    def __init__(
        self,
        paths: list[str],
        folder: str = "",
        known: Mapping[str, bytes | str] | None = None,
    ) -> None:
        self.paths = paths
        self.folder = folder
        known = known or {}
        self._read = {p: known[p] if p in known else read_bytes(p) for p in paths}
        self._data = {path: one for path, one in self._read.items() if isinstance(one, bytes)}
        self._content: str | None = None
        self._known: dict[tuple[str, Range], tuple[str, ...] | None] = {}
        self._ranges: dict[Range, frozenset[str]] = {}
        self._trains: dict[str, bool] = {}
        self._shown: dict[str, bool] = {}
        # The values of an option, by its name and the digest of the files of settings.
        self._values: dict[tuple[str, str], Given] = {}
        # The modules that hold each word, once enough words have been searched.
        self._by_word: dict[bytes, list[str]] | None = None

    @property
    def content(self) -> str:
        """The digest of all modules, by which a cache detects changes."""
        if self._content is None:
            self._content = digest_of_files(self._read, self._digest)
        return self._content

    @cached_property
    def that_say_torch(self) -> frozenset[str]:
        """The modules that contain one of `TORCH_WORDS`."""
        words = [word.encode() for word in TORCH_WORDS]
        return frozenset(p for p, data in self._data.items() if any(w in data for w in words))

    def is_beside_torch(self, word: str) -> bool:
        """True if one of the modules that contain one of `TORCH_WORDS` holds a word."""
        return not self.that_say_torch.isdisjoint(self.that_say(word) or ())

    @cached_property
    def that_promise(self) -> tuple[str, ...]:
        """The modules that may hold a function that must not wait, in order."""
        return tuple(path for path, data in self._data.items() if promises(data))

    @cached_property
    def promises(self) -> str:
        """The digest of the modules in `that_promise`."""
        return digest_of_files(self.that_promise, self._digest)

    def trains(self, inside: str = "") -> bool:
        """True if the modules below a folder, relative to the searched one, take training steps."""
        known = self._trains.get(inside)
        if known is None:
            below = os.path.join(self.folder, inside)
            texts = [data for path, data in self._data.items() if path.startswith(below)]
            known = self._trains[inside] = texts_train(texts)
        return known

    @cached_property
    def _folders(self) -> frozenset[str]:
        """The folders that modules lie in, and those above them up to the searched one."""
        top = self.folder.rstrip(os.sep)
        own = set(map(os.path.dirname, self._read))
        return frozenset(above for folder in own for above in up_to(top, folder))

    @cached_property
    def _on_path(self) -> tuple[str, ...]:
        """The folders that modules put on the search path of imports."""
        return folders_on_path(self.folder.rstrip(os.sep), self._data, self._folders)

    def start_on_path(self, head: str) -> str:
        """Return the one folder on the search path in which ``import head`` finds something.

        "" if there is none, or more than one.
        """
        bases = [os.path.join(folder, head) for folder in self._on_path]
        found = [one for one in bases if f"{one}.py" in self._read or one in self._folders]
        return os.path.dirname(found[0]) if len(found) == 1 else ""

    @cached_property
    def is_started(self) -> bool:
        """True if one of the modules is a program: it does something where it is `__main__`."""
        return any(map(_STARTS.search, self._data.values()))

    @cached_property
    def _names(self) -> LookedUp:
        """The names that the texts may look up."""
        return LookedUp(self.folder, self._data, self.that_say)

    def is_class_found(self, name: str, module: str) -> bool:
        """True if a class of a module may be found without its name while the project runs."""
        return self._names.is_class_found(name, module)

    def is_looked_up(self, name: str, module: str) -> bool:
        """True if something of a module may be found by its name while the project runs."""
        settings, notebooks = read_settings(self.folder), read_notebooks(self.folder)
        return self._names.is_looked_up(name, module, settings, notebooks)

    def is_shown(self, name: str) -> bool:
        """True if a module names something other than to define it.

        Modules of tests count, and a class that names itself for ``super`` does not. Neither does
        an import whose module doesn't use it, but in a test and where a package offers it.
        """
        if name not in self._shown:
            used = re.compile(rb"(?<!class )(?<!def )(?<!super\()\b" + name.encode() + rb"\b")
            said = self.that_say(name)
            unused = partial(_IMPORT.sub, partial(_without, name.encode()))
            self._shown[name] = said is None or any(
                used.search(self._data[one])
                and (
                    os.path.basename(one) == INIT
                    or is_test_path(one)
                    or used.search(unused(self._data[one]))
                )
                for one in said
            )
        return self._shown[name]

    def option_values(self, name: str, further: int = MAX_RENAMED) -> Given:
        """Return the values that the modules give an option, also by options of other names.

        Files of tests count for nothing.
        """
        given = self._values_of(name)
        for other in sorted(given.others):
            if not given.whole or not further:
                return NOT_GIVEN
            more = self.option_values(other, further - 1)
            whole = given.whole and more.whole and bool(more.values)
            given = Given(given.values | more.values, whole)
        return given

    def _values_of(self, name: str) -> Given:
        """Return the values given to an option of this name, read once for all files linted."""
        settings = read_settings(self.folder)
        if name.startswith(options.OF_COMMAND_LINE) and self._sets_by_name:
            name = name.removeprefix(options.OF_COMMAND_LINE)
        asked = (name, settings.content)
        if options.IN_SECTION in name:
            asked = (name, settings.content + read_documents(self.folder).content)
            if asked not in self._values:
                self._values[asked] = values_in_section(
                    name, self.folder, self._data, self.that_say
                )
        if asked not in self._values:
            word = options.word_of(name)
            said = settings.that_say(word, word.replace("_", "-"))
            self._values[asked] = self._read_values(name, word, said)
        return self._values[asked]

    @cached_property
    def _sets_by_name(self) -> bool:
        """True if a module may set options by names that are made at run time."""
        found = [self.that_say(word) for word in options.SETTING_WORDS]
        paths = {path for one in found for path in one or ()}
        return None in found or any(
            options.SETTING.search(self._data[path].decode("utf-8", "replace")) for path in paths
        )

    def _read_values(self, name: str, word: str, settings: list[str]) -> Given:
        paths = self.that_say(word)
        if paths is None:
            return NOT_GIVEN
        last = word.rpartition("_")[2]
        if last and last != word:
            # The command line spells it with dashes.
            dashed = f"--{word.replace('_', '-')}".encode()
            said = self.that_say(last) or ()
            paths += tuple(one for one in said if one not in paths and dashed in self._data[one])
        paths = tuple(one for one in paths if not os.path.basename(one).startswith("test_"))
        # Each run that found a module changed would go through all texts once for each option.
        key = (version(options), name, *map(self._digest, paths), "settings", *settings)
        return shelved(
            key, lambda: self._given(name, paths, settings), given_as_data, given_from_data
        )

    def _given(self, name: str, paths: Iterable[str], settings: list[str]) -> Given:
        texts = (self._data[path].decode("utf-8", "replace") for path in paths)
        return values_given(name, texts, settings)

    def _digest(self, path: str) -> str:
        data = self._read[path]
        return digest(data) if isinstance(data, bytes) else data

    @property
    def texts(self) -> Mapping[str, bytes | str]:
        """The content of each module by its path, as `read_bytes` returned it."""
        return self._read

    def that_say(self, text: str, among: Range = EVERYWHERE) -> tuple[str, ...] | None:
        """Return the modules that hold a word, ``.word``, ``def word`` or ``"word"``, in order.

        Behind one of `PATTERNS`, those that this one finds. None if more than `MOST_MODULES` do.
        """
        asked = (text, among)
        if asked not in self._known:
            self._known[asked] = self._search(text.encode(), self._among(among))
        return self._known[asked]

    def answer(self, part: str) -> str:
        """Return the digest of the modules found by a recorded query of a folder."""
        if part.startswith(OPTION):
            return answer_of_values(self.option_values(part.removeprefix(OPTION)))
        if part.startswith(TRAINS):
            return "yes" if self.trains(part.removeprefix(TRAINS)) else ""
        if part == IS_PROGRAM:
            return "yes" if self.is_started else ""
        if part.startswith(BESIDE_TORCH):
            return "yes" if self.is_beside_torch(part.removeprefix(BESIDE_TORCH)) else ""
        if part.startswith(ON_PATH):
            return self.start_on_path(part.removeprefix(ON_PATH))
        asked, *rest = part.split(PART)
        if asked.startswith(CLASS_FOUND):
            return "yes" if self.is_class_found(asked.removeprefix(CLASS_FOUND), *rest) else ""
        if asked.startswith(LOOKED_UP):
            return "yes" if self.is_looked_up(asked.removeprefix(LOOKED_UP), *rest) else ""
        if asked.startswith(SHOWN):
            return "yes" if self.is_shown(asked.removeprefix(SHOWN)) else ""
        among = Range(rest[0], tuple(rest[1:])) if rest else EVERYWHERE
        return answer_of_search(self.that_say(asked.removeprefix(THAT_SAY), among))

    def _among(self, among: Range) -> frozenset[str] | None:
        """Return the modules of a range; None for all."""
        if not among.inside:
            return None
        if among not in self._ranges:
            inside = os.path.join(self.folder, among.inside)
            words = [word.encode() for word in among.words]
            self._ranges[among] = frozenset(
                path
                for path, data in self._data.items()
                if path.startswith(inside) or any(_holds(data, word) for word in words)
            )
        return self._ranges[among]

    def gather(self) -> None:
        """Gather the words of all modules now, so that forked processes share them."""
        self._words()

    def _search(self, text: bytes, among: frozenset[str] | None) -> tuple[str, ...] | None:
        word = pattern_of(text).strip() or text.strip(b'."').rpartition(b" ")[2]
        searched = self._by_word is None and len(self._known) < SEARCHES
        found: list[str] = []
        for path in self._data if searched else self._words().get(word, ()):
            if among is not None and path not in among:
                continue
            if (text == word and not searched) or _holds(self._data[path], text):
                if len(found) == MOST_MODULES:
                    return None
                found.append(path)
        return tuple(found)

    def _words(self) -> dict[bytes, list[str]]:
        if self._by_word is None:
            self._by_word = {}
            for path, data in self._data.items():
                for word in set(data.translate(_SPACES).split()):
                    self._by_word.setdefault(word, []).append(path)
        return self._by_word


class TrainingSigns(NamedTuple):
    """The parts of a training step that one module holds: all of it, or one of its two calls."""

    is_whole: bool
    backward: bool
    step: bool


def signs_of_training(text: bytes) -> TrainingSigns:
    """Return what a module holds of a training step."""
    patterns = (_TRAINING_STEP, _BACKWARD, _STEP)
    return TrainingSigns(*(one.search(text) is not None for one in patterns))


def signs_train(signs: Iterable[TrainingSigns]) -> bool:
    """True if modules call ``backward()`` and ``step()``, or one defines ``training_step``."""
    backward = step = False
    for one in signs:
        backward, step = backward or one.backward, step or one.step
        if one.is_whole or (backward and step):
            return True
    return False


def texts_train(texts: Iterable[bytes]) -> bool:
    """Return what `signs_train` returns, by the texts of modules."""
    return signs_train(map(signs_of_training, texts))


def _holds(data: bytes, text: bytes) -> bool:
    """True if a text holds a word, or ``.word``, that is not part of a longer one.

    A word in quotes may have quotes of either kind.
    """
    if pattern := pattern_of(text):
        return PATTERNS[pattern](data, text.removeprefix(pattern))
    if text.startswith(b'"'):
        return text in data or text.replace(b'"', b"'") in data
    start = data.find(text)
    while start >= 0:
        end = start + len(text)
        before = b"" if text.startswith(b".") else data[max(start - 1, 0) : start]
        if not (before + data[end : end + 1]).translate(_SPACES).strip():
            return True
        start = data.find(text, end)
    return text.startswith(b".") and _apart(text[1:]).search(data) is not None


@lru_cache(maxsize=64)
def _apart(word: bytes) -> re.Pattern[bytes]:
    """Return the pattern of an attribute that does not follow its point directly."""
    return re.compile(rb"\.(?:\s|\\\n|#[^\n]*\n)+" + re.escape(word) + rb"\b")


def _without(name: bytes, found: re.Match[bytes]) -> bytes:
    """Return an import of names without one of them, unless it gets another name."""
    return re.sub(rb"\b" + name + rb"\b(?!\s+as\b)(?=[\s,)\\#]|$)", b"", found[0])


@lru_cache(maxsize=1024)
def is_too_large(folder: str) -> bool:
    """True if the modules below a folder are too large to be searched, or if there are none."""
    return not modules_below(folder)


class _Last(NamedTuple):
    """A folder that was searched last; linting handles the packages one after the other."""

    folder: str
    stamps: list[tuple[int, int]]
    texts: TextSearch
    asked: float


# The package and the project that were searched last.
_LAST: list[_Last] = []
KEPT_FOLDERS = 2


def read_texts(folder: str) -> TextSearch:
    """Return the modules below a folder; read again only if one of them has changed.

    Linting goes through a package file by file, so a recent result is assumed to be valid still.
    """
    last = next((one for one in _LAST if one.folder == folder), None)
    if last is not None and time.monotonic() - last.asked < TRUSTED:
        return last.texts
    paths = modules_below(folder)
    stamps = [stamp(path) for path in paths]
    if last is not None and last.texts.paths == paths and last.stamps == stamps:
        texts = last.texts
    else:
        texts = TextSearch(paths, folder, _read_before(dict(zip(paths, stamps, strict=True))))
    others = [one for one in _LAST if one.folder != folder]
    _LAST[:] = [_Last(folder, stamps, texts, time.monotonic()), *others][:KEPT_FOLDERS]
    return texts


def _read_before(stamps: Mapping[str, tuple[int, int]]) -> dict[str, bytes | str]:
    """Return the texts of the files that were read before and have not changed."""
    return {
        path: last.texts.texts[path]
        for last in _LAST
        for path, known in zip(last.texts.paths, last.stamps, strict=True)
        if stamps.get(path) == known
    }


def forget() -> None:
    """Drop the results for the folders that were searched last, however recent."""
    _LAST.clear()


class Matching(NamedTuple):
    """The modules of a package that a pattern matches, and the digest of all its modules."""

    folder: str
    pattern: str
    paths: tuple[str, ...]
    content: str
    asked: float


_MATCHING: list[Matching] = []


def that_match(folder: str, pattern: str) -> Matching:
    """Return the modules below a folder that a pattern matches.

    Used for names that the user chose, so it also searches packages that are too large to be
    searched for callers.
    """
    last = _MATCHING[0] if _MATCHING else None
    now = time.monotonic()
    known = last is not None and (last.folder, last.pattern) == (folder, pattern)
    if known and last is not None and now - last.asked < TRUSTED:
        return last
    sought = re.compile(pattern.encode())
    found: list[str] = []
    held: dict[str, str] = {}
    for path in modules_below(folder, MAX_NAMED):
        data = read_bytes(path)
        held[path] = digest(data) if isinstance(data, bytes) else data
        if isinstance(data, bytes) and sought.search(data):
            found.append(path)
    content = digest_of_files(held, held.__getitem__)
    matching = Matching(folder, pattern, tuple(found), content, time.monotonic())
    _MATCHING[:] = [matching]
    return matching
