"""The project's other modules: found by import name, read and mapped, never imported."""

from __future__ import annotations

import os
import re
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from flake8_torchperf.project import files
from flake8_torchperf.project.answers import (
    ALL,
    IS_PROGRAM,
    LINES_OF,
    ON_PATH,
    OPTION,
    PART,
    PROMISES,
    SHOWN,
    SPLITS,
    THAT_SAY,
    TRAINS,
    WHOLE,
    answer_of_search,
    answer_of_values,
    noting,
    record,
)
from flake8_torchperf.project.file_index import INIT, SITE_FOLDERS, FileIndex
from flake8_torchperf.project.files import NO_FILE, stamp
from flake8_torchperf.project.import_roots import (
    IS_FOLDER,
    NO,
    STARTS,
    is_distribution,
    is_elsewhere,
    is_marked,
    project_folder,
    start_of,
)
from flake8_torchperf.project.mapped_files import read_file
from flake8_torchperf.project.option_values import IN_SECTION, NOT_GIVEN, Given
from flake8_torchperf.project.texts.looked_up import SaidNames, names_said
from flake8_torchperf.project.texts.settings_files import (
    ALL_DOCUMENTS,
    ALL_SETTINGS,
    SHOWING,
    read_documents,
    read_settings,
)
from flake8_torchperf.project.texts.text_search import (
    EVERYWHERE,
    Range,
    TextSearch,
    is_too_large,
    read_texts,
    texts_train,
    that_match,
)

if TYPE_CHECKING:
    from flake8_torchperf.project.module_index import ModuleMap

# Stands for the path and the folder of a text that has no file.
NO_PATH = ""
# The most modules that are read for one linted file.
MAX_MODULES = 400


class Project:
    """Reads the modules of the project that the linted module belongs to, lazily."""

    def __init__(self, module: ModuleMap, reads: dict[str, str] | None = None) -> None:
        self.linted = module
        # None if reads are not recorded. A text without a file depends on no other.
        self._reads = reads if module.path is not None else None
        self._root = import_root(module)
        self._folder = project_folder(self._root) if self._root else ""
        self._own = _own_path(module)
        self.top = module.name.partition(".")[0] if module.package else ""
        self._modules: dict[str, ModuleMap | None] = {module.name: module} if module.name else {}
        self._read = 0
        self._folders = FileIndex()
        self._are_folders: dict[str, bool] = {}
        # The folders in which the names of modules that were adopted start.
        self._adopted: dict[str, str] = {}
        self._starts: dict[tuple[str, str], str] = {}
        self._texts: dict[str, TextSearch] = {}
        self._options: dict[str, Given] = {}

    def module(self, name: str) -> ModuleMap | None:
        """Return the map of a module of the same project, or None if there is no such file."""
        if name in self._modules:
            return self._modules[name]
        self._modules[name] = None
        start = self._start(name)
        if not name or not start or self._read >= MAX_MODULES:
            return None
        base = os.path.join(start, *filter(None, name.split(".")))
        if not self._is_folder(os.path.dirname(base), start):
            return None
        for path in (f"{base}.py", os.path.join(base, INIT)):
            if path == self._own:
                self._modules[name] = self.linted
                break
            if self._folders.holds(path):
                self._read += 1
                self._modules[name] = self.opened(path)
                break
            self.note(path, NO_FILE)
        return self._modules[name]

    def has_read(self, module: ModuleMap) -> bool:
        """True if a module was found by its name."""
        return bool(module.name) and self._modules.get(module.name) is module

    def _is_folder(self, path: str, start: str) -> bool:
        """True for a folder at or below another; one that is missing is recorded, once for all."""
        if path == start:
            return True
        if path not in self._are_folders:
            above = self._is_folder(os.path.dirname(path), start)
            self._are_folders[path] = above and os.path.isdir(path)
            if above and not self._are_folders[path]:
                self.note(f"{path}{IS_FOLDER}", NO)
        return self._are_folders[path]

    def adopt(self, module: ModuleMap) -> None:
        """Let the names that a module of another folder defines be found by its name."""
        if module.name and self.module(module.name) is None:
            self._modules[module.name] = module
            self._adopted.setdefault(module.name.partition(".")[0], import_root(module) or "")

    def imports_alike(self, root: str, name: str) -> bool:
        """True if a dotted name that is imported from a root starts where the linted module's does.

        The root is the folder that the absolute imports of a module start from.
        """
        head = name.partition(".")[0]
        if root == self._root:
            return True
        here = self._start(head) or self._adopted.get(head, "")
        return self._start_from(root, head) == here

    def opened(self, path: str) -> ModuleMap | None:
        """Map the file at a path, and record that it can be queried in parts, or all of it.

        None if the file cannot be read or is not Python.
        """
        if path == self._own:
            return self.linted
        module, content = read_file(path)
        self.note(path, content)
        with noting(self._reads):
            if module is not None:
                record(module.checked)
            if module is not None and module.parts is not None:
                module.parts.ask(SPLITS)
            else:
                self.note(f"{path}{PART}{ALL}", content)
        return module

    def note_whole(self, path: str) -> None:
        """Record that findings depend on all of a file whose text has been searched."""
        if self._reads is not None and f"{path}{PART}{ALL}" not in self._reads:
            self.note_content(path)
            self.note(f"{path}{PART}{ALL}", self._reads[path])

    def note_lines(self, path: str, qualname: str) -> None:
        """Record that findings name a line of a function of another module."""
        module = self.opened(path)
        if module is None or module.parts is None:
            return
        outer = qualname.partition(".<locals>")[0]
        with noting(self._reads):
            module.parts.ask(f"{LINES_OF}{outer}")

    def note_content(self, path: str) -> None:
        """Record the content of a file of which parts are queried."""
        if self._reads is not None:
            self._reads[path] = _content(path, stamp(path))

    def note(self, path: str, content: str) -> None:
        """Record that findings depend on an answer, if answers are recorded."""
        if self._reads is not None:
            self._reads[path] = content

    def find(self, qualified: str) -> tuple[ModuleMap, tuple[str, ...]] | None:
        """Return the longest prefix of a dotted name that is a module, and the names after it."""
        parts = qualified.split(".")
        if parts[0] not in self._adopted and not self._start(qualified):
            return None
        for end in range(len(parts), 0, -1):
            module = self.module(".".join(parts[:end]))
            if module is not None:
                return module, tuple(parts[end:])
        return None

    def modules_that_say(
        self, word: str, module: ModuleMap | None = None
    ) -> tuple[str, ...] | None:
        """Return the paths of the modules of the project whose text holds a word.

        Modules outside the package of ``module``, which is the linted one by default, count if they
        also name that package. If too many modules hold the word, only the package is searched. The
        result is empty if there is nothing to search, and None if too many modules of the package
        hold the word.
        """
        among = self._range(module or self.linted)
        found = self._that_say(word, among)
        return self._that_say(word, Range(among.inside)) if found is None else found

    def all_modules_that_say(self, word: str) -> tuple[str, ...] | None:
        """Return the paths of all modules that are searched whose text holds a word.

        None if too many do. An object may be used by modules that name neither its class nor the
        module of that.
        """
        return self._that_say(word, EVERYWHERE)

    def _that_say(self, word: str, among: Range) -> tuple[str, ...] | None:
        texts = self._searching()
        if texts is None:
            return ()
        found = texts.that_say(word, among)
        self.note(f"{texts.folder}{PART}{THAT_SAY}{word}{_text(among)}", answer_of_search(found))
        return found

    def is_in_package(self, path: str, module: ModuleMap) -> bool:
        """True for a file in the package of a module, and for a script itself."""
        return path.startswith(_package_path(module))

    def option_values(self, name: str) -> Given:
        """Return the values that the project gives an option; none if it is not searched whole."""
        texts = self._searching() if self.is_searched_whole else None
        if texts is None:
            return NOT_GIVEN
        if name not in self._options:
            self._options[name] = texts.option_values(name)
            answer = answer_of_values(self._options[name])
            self.note(f"{texts.folder}{PART}{OPTION}{name}", answer)
            self.note(f"{texts.folder}{ALL_SETTINGS}", read_settings(texts.folder).content)
            if IN_SECTION in name:
                self.note(f"{texts.folder}{ALL_DOCUMENTS}", read_documents(texts.folder).content)
        return self._options[name]

    def is_in_settings(self, word: str) -> bool:
        """True if a file of settings of the project says a word that is not the name of a file."""
        texts = self._searching()
        if texts is None:
            return False
        settings = read_settings(texts.folder)
        self.note(f"{texts.folder}{ALL_SETTINGS}", settings.content)
        said = re.compile(rf"\b{re.escape(word)}\b(?!\.py\b)")
        return any(said.search(text) for text in settings.that_say(word))

    def program_texts(self, name: str, *, closed: bool = False) -> TextSearch | None:
        """Return the texts of the project if only these may run something of this name.

        None in a project that is not searched whole or that does not train, and for a folder that
        nothing marks as a project. If the project counts as ``closed``, nothing outside it runs
        anything, unless it holds no program. A public name of a distribution is used elsewhere if
        a text of the project shows how, or if it holds no program.
        """
        if not self._folder or not is_marked(self._folder):
            return None
        if self.linted.path is None or not self.is_searched_whole:
            return None
        texts = self._searching()
        if texts is None:
            return None
        if not closed and (name.startswith("_") or not self.in_distribution):
            return texts if self.trains else None
        if not self.starts(texts):
            return None
        return texts if closed or not self._is_shown(texts, name) else None

    def _is_shown(self, texts: TextSearch, name: str) -> bool:
        """True if the project shows how to use something: its texts do not only define it."""
        found = texts.is_shown(name)
        self.note(f"{texts.folder}{PART}{SHOWN}{name}", "yes" if found else "")
        for ending, read in SHOWING.items():
            if found:
                break
            held = read(texts.folder)
            self.note(f"{texts.folder}{ending}", held.content)
            found = bool(held.that_say(name))
        return found

    def starts(self, texts: TextSearch) -> bool:
        """True if texts of the project hold a program; findings then depend on the answer."""
        self.note(f"{texts.folder}{PART}{IS_PROGRAM}", "yes" if texts.is_started else "")
        return texts.is_started

    @cached_property
    def said(self) -> SaidNames:
        """The names that the linted text looks up."""
        return names_said("".join(self.linted.lines))

    @cached_property
    def in_distribution(self) -> bool:
        """True if the project says how its package is installed."""
        return self._folder != "" and is_distribution(self._folder, self.note)

    @cached_property
    def trains(self) -> bool:
        """True if the linted module belongs to a program that takes training steps.

        In a distribution, the package is a program for itself, because its functions are called
        from elsewhere, and so is a script that imports nothing of the project. False for a package
        that is installed.
        """
        if self._root is not None and os.path.basename(self._root) in SITE_FOLDERS:
            return False
        if texts_train(["".join(self.linted.lines).encode("utf-8", "surrogatepass")]):
            return True
        texts = self._searching()
        if texts is None:
            return False
        inside = ""
        if self.in_distribution:
            if self.top_folder:
                inside = os.path.relpath(self.top_folder, texts.folder) + os.sep
            elif not any(map(self._is_ours, self.linted.imports.values())):
                return False
        found = texts.trains("" if inside.startswith(".") else inside)
        self.note(f"{texts.folder}{PART}{TRAINS}{inside}", "yes" if found else "")
        return found

    def modules_that_promise(self) -> tuple[str, ...]:
        """Return the modules of the package that may hold a function that must not wait."""
        texts = self._texts_in(self._package())
        if texts is None:
            return ()
        if self._reads is not None:
            self._reads[f"{texts.folder}{PROMISES}"] = texts.promises
        return texts.that_promise

    def modules_that_match(self, pattern: str) -> tuple[str, ...]:
        """Return the modules of the package that a pattern matches, even in a large package."""
        folder = self.top_folder
        if not folder:
            return ()
        found = that_match(folder, pattern)
        if self._reads is not None:
            self._reads[f"{folder}{WHOLE}"] = found.content
        return found.paths

    @property
    def linted_path(self) -> str:
        """The resolved path of the linted module; "" for a text without a file."""
        return self._own

    @property
    def reads(self) -> dict[str, str] | None:
        """The paths looked up, with the digests of their contents; None if not recorded."""
        return self._reads

    @property
    def top_folder(self) -> str:
        """The folder of the outermost package; "" for a module outside any package."""
        return os.path.join(self._root, self.top, "") if self._root and self.top else ""

    def searched_texts(self) -> TextSearch | None:
        """Return the text of all modules that are searched for callers; None if none are.

        A text without a file, as an editor pastes it, is a project of its own.
        """
        if self.linted.path is None:
            return self._alone
        return self._texts_in(self._searched)

    @cached_property
    def _alone(self) -> TextSearch:
        """The linted text as the only module of a project."""
        text = "".join(self.linted.lines).encode("utf-8", "surrogatepass")
        return TextSearch([NO_PATH], NO_PATH, {NO_PATH: text})

    def _searching(self) -> TextSearch | None:
        """Return the modules that are searched, for queries that are recorded one by one."""
        texts = self.searched_texts()
        if texts is not None and self._reads is not None:
            self._reads.setdefault(texts.folder, texts.content)
        return texts

    def _texts_in(self, folder: str) -> TextSearch | None:
        if folder and folder not in self._texts:
            self._texts[folder] = read_texts(folder)
        return self._texts.get(folder)

    @cached_property
    def is_searched_whole(self) -> bool:
        """True if all modules of the package are searched for callers.

        In a package that is too large, only the part around the linted module is searched.
        """
        searched = self._searched
        alone = self.linted.path is None
        return alone or (searched != "" and searched in (self._whole(), self.top_folder))

    def _whole(self) -> str:
        """Return the project's folder; "" if there is none."""
        return os.path.join(self._folder, "") if self._folder else ""

    @cached_property
    def _searched(self) -> str:
        """The folder to search for callers: the project, or else the package; "" if none."""
        whole = self._whole()
        return whole if whole and not is_too_large(whole) else self._package()

    def _package(self) -> str:
        """Return the outermost package around the module that is not too large; "" if none."""
        if self._root is None:
            return ""
        folder = self._root
        for part in self.linted.package.split(".") if self.top else ():
            folder = os.path.join(folder, part)
            if not is_too_large(folder):
                return os.path.join(folder, "")
        return ""

    def _range(self, module: ModuleMap) -> Range:
        """Return the modules that may call those of a module, among those that are searched."""
        whole, inside = self._whole(), _package_path(module)
        if self._searched != whole or inside == whole or not inside.startswith(whole):
            return EVERYWHERE
        return Range(inside.removeprefix(whole), (module.name.partition(".")[0],))

    def _start(self, name: str) -> str:
        """Return the folder that a dotted name of the project starts in; "" for other names."""
        head = name.partition(".")[0]
        root = self._root
        if root is None or not head:
            return ""
        if self.top and head == self.top:
            return root
        if not self._folder or is_elsewhere(head):
            return "" if self.top else root
        return self._start_from(root, head)

    def _is_ours(self, name: str) -> bool:
        """True if a dotted name that is imported starts in the project."""
        head = name.partition(".")[0]
        found = (
            "" if is_elsewhere(head) or self._root is None else self._start_from(self._root, head)
        )
        return found != ""

    def _start_from(self, root: str, head: str) -> str:
        found = self._starts.get((root, head))
        if found is None:
            found = start_of(head, root, self._folder, self._folders)
            self.note(f"{root}{STARTS}{head}", found)
            found = self._starts[root, head] = found or self._start_on_path(head)
        return found

    def _start_on_path(self, head: str) -> str:
        """Return the folder in which an import starts by what modules put on the search path."""
        texts = self._searching() if self._folder else None
        if texts is None:
            return ""
        found = texts.start_on_path(head)
        self.note(f"{texts.folder}{PART}{ON_PATH}{head}", found)
        return found


def _text(among: Range) -> str:
    """Return a range as the end of a recorded query."""
    return "".join(f"{PART}{part}" for part in (among.inside, *among.words) if among.inside)


@lru_cache(maxsize=512)
def _content(path: str, changed: tuple[int, int]) -> str:
    """Return the digest of a file, cached from one linted file to the next."""
    return files.read_file(path)[1]


def import_root(module: ModuleMap) -> str | None:
    """Return the folder that absolute imports of a module's own package start from."""
    return None if module.path is None else root_of(Path(module.place), module.package)


def root_of(path: Path, package: str) -> str:
    """Return the folder that the absolute imports of a module in a package start from."""
    return str(path.parents[len(package.split(".")) if package else 0])


def _package_path(module: ModuleMap) -> str:
    """Return the folder of a module's outermost package, or the path of a script."""
    if module.path is None:
        return ""
    if not module.package:
        return module.place
    return os.path.join(import_root(module) or "", module.name.partition(".")[0], "")


def _own_path(module: ModuleMap) -> str:
    """Return the resolved path of a module whose text was read; "" for others."""
    return "" if module.parsed is None else module.place
