"""Names across the outlines of a project: the functions and classes that they stand for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from flake8_torchperf.program.given import (
    COLLATING,
    GIVING_TO_DATA,
    LOADING_CLASSES,
    OF_DATA_PACKAGES,
    PLAIN_DECORATORS,
)
from flake8_torchperf.program.outlines.asked import (
    MAIN,
    NAME,
    TRAINING,
    AskedOutline,
    answer,
    answer_of_name,
    has_main_block,
    question,
)
from flake8_torchperf.program.outlines.outline import FUNCTION, OWNER, VALUE, Kind, Outline
from flake8_torchperf.program.outlines.store import OUTLINED, outline_of_text, outline_once
from flake8_torchperf.project.answers import PART, record
from flake8_torchperf.project.files import NO_PYTHON, decoded, read_bytes, stamp
from flake8_torchperf.project.import_roots import absolute_import, module_name
from flake8_torchperf.project.live_names import is_class_found, is_looked_up, named_in_settings
from flake8_torchperf.project.resolver import root_of
from flake8_torchperf.project.stores.kept import Kept
from flake8_torchperf.project.texts.text_search import signs_of_training

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flake8_torchperf.program.outlines.outline import Body, Class
    from flake8_torchperf.project.resolver import Project
    from flake8_torchperf.project.texts.text_search import TrainingSigns

# The most imports that are followed for one name, from module to module.
MAX_IMPORTS = 8
# And the most names that are each bound to the next one.
MAX_BOUND = 3


class Unit(NamedTuple):
    """A body or a class, by its module's path and its number there."""

    path: str
    number: int
    is_class: bool = False


class Variable(NamedTuple):
    """A name that a body binds, by the number of the body."""

    body: int
    name: str


class Module(NamedTuple):
    """An outlined module: the dotted names of itself and of its package, and its outline."""

    name: str
    package: str
    checked: dict[str, str]
    outline: Outline


class Search(Protocol):
    """A search of the texts of a project for a word."""

    def __call__(
        self, word: str, path: str, *, is_attribute: bool = False
    ) -> tuple[str, ...] | None:
        """Return the modules that hold a word and may use what a module defines.

        None if too many do.
        """


# The modules whose outlines were asked for last, by path, time and size. The outlines are mostly
# those that the shelf keeps.
_OUTLINED: Kept[tuple[str, int, int], Module] = Kept(OUTLINED)


def _outlined(path: str, modified: int, size: int) -> Module:
    """Return the module in a file; an empty one if it is not Python."""
    return _OUTLINED.made((path, modified, size), size, lambda: _outlined_now(path))


def _outlined_now(path: str) -> Module:
    data = read_bytes(path)
    try:
        text = decoded(data if isinstance(data, bytes) else b"")
        outline = outline_of_text(text)
    except NO_PYTHON:
        text, outline = "", Outline()  # flake8 reports the error when it lints that file
    return Module(*module_name(Path(path), text), outline)


class Linker:
    """Resolves names from the modules of the project of a linted module."""

    def __init__(self, project: Project, modules: dict[str, Module] | None = None) -> None:
        self.project = project
        self.linted_path = project.linted_path
        # The outlined modules by path, which linkers may share.
        self.modules = {} if modules is None else modules
        self._lineages: dict[Unit, list[Unit]] = {}
        self._foreign: dict[Unit, list[str]] = {}
        # The meanings of names, by module, body and name, and of expressions, by module and number.
        self._named: dict[tuple[str, int, str], Unit | Variable | str | None] = {}
        self._named_by: dict[tuple[str, int], Unit | str] = {}

    def module(self, path: str) -> Module:
        """Return an outlined module; the linted text may differ from its file."""
        known = self.modules.get(path)
        if known is None:
            linted = self.project.linted
            if path == self.linted_path:
                outline = outline_once("".join(linted.lines), linted.tree)
                known = Module(linted.name, linted.package, {}, outline)
            else:
                known = _outlined(path, *stamp(path))
                record(known.checked)
                known = self._asked(path, known)
            self.modules[path] = known
        return known

    def _asked(self, path: str, known: Module) -> Module:
        """Return a module whose outline records what is looked up in it, for a cache."""
        project, outline = self.project, known.outline
        if project.reads is None:
            return known
        if not outline.bodies:
            project.note_whole(path)
            return known
        project.note_content(path)
        project.note(f"{path}{PART}{NAME}", answer_of_name(*known[:3]))

        def ask(asked: str) -> None:
            found = answer(outline, asked, lambda: self._text(path))
            project.note(f"{path}{PART}{asked}", found)

        return known._replace(outline=AskedOutline(outline, ask))

    def outline(self, path: str) -> Outline:
        """Return the outline of a module."""
        known = self.modules.get(path)  # `module` without its call: it nearly always is
        return self.module(path).outline if known is None else known.outline

    def body(self, unit: Unit) -> Body:
        """Return the body that a unit names."""
        return self.outline(unit.path).bodies[unit.number]

    def klass(self, unit: Unit) -> Class:
        """Return the class that a unit names."""
        return self.outline(unit.path).classes[unit.number]

    def text(self, path: str) -> bytes:
        """Return the text of a module; empty if it can't be read."""
        if path != self.linted_path:
            self.project.note_whole(path)
        return self._text(path)

    def _text(self, path: str) -> bytes:
        if path == self.linted_path:
            return "".join(self.project.linted.lines).encode("utf-8", "surrogatepass")
        data = read_bytes(path)
        return data if isinstance(data, bytes) else b""

    def has_main_block(self, path: str) -> bool:
        """True if a module does something where it is `__main__`."""
        self._ask(path, MAIN)
        return has_main_block(self._text(path))

    def signs_of_training(self, path: str) -> TrainingSigns:
        """Return what a module holds of a training step."""
        self._ask(path, TRAINING)
        return signs_of_training(self._text(path))

    def _ask(self, path: str, what: str) -> None:
        outline = self.outline(path)
        if isinstance(outline, AskedOutline):
            outline.ask(question(what))

    def program(self, entry: str) -> Iterator[str]:
        """Yield a module and those of the project that it imports, through others too."""
        seen = {entry}
        waiting = [entry]
        while waiting:
            path = waiting.pop()
            yield path
            above = self.imported_by(path) - seen
            seen |= above
            waiting += sorted(above)

    def imported_by(self, path: str) -> set[str]:
        """Return the modules of the project that a module imports, or imports names of."""
        found: set[str] = set()
        for source in self.outline(path).imports.values():
            known = self.project.find(self._full(path, source))
            if known is not None and known[0].path is not None:
                found.add(known[0].place)
        return found

    def is_looked_up(self, unit: Unit, *, closed: bool = False) -> bool:
        """True if a function or class may be found by its name while the program runs.

        ``closed`` says if nothing outside the project counts.
        """
        if unit.is_class:
            return is_class_found(self.project, self.klass(unit).name, unit.path, closed=closed)
        body = self.body(unit)
        path = unit.path if body.owner < 0 else ""
        return is_looked_up(self.project, body.name, path, closed=closed)

    def is_own(self, dotted: str) -> bool:
        """True if a dotted name starts in the project."""
        return self.project.find(dotted) is not None

    def named(self, path: str, body: int, name: str) -> Unit | Variable | str | None:
        """Return what a name in a body stands for.

        A function or class of the project, a variable, or the dotted name of something else that is
        imported; None if nothing binds the name.
        """
        asked = path, body, name
        if asked not in self._named:
            self._named[asked] = self._found(path, body, name)
        return self._named[asked]

    def _found(self, path: str, body: int, name: str) -> Unit | Variable | str | None:
        outline = self.outline(path)
        scope = body
        while scope >= 0:
            found = self._in_scope(path, outline, scope, name)
            if found is not None:
                return found
            scope = outline.bodies[scope].outer
        if name in outline.imports:
            return self._imported(path, outline.imports[name])
        return self._by_star(path, (name,), MAX_IMPORTS)

    def in_settings(self, section: str) -> list[Unit]:
        """Return the classes that a section of the project's files of settings names; "" for all.

        Without such a section, those that stand in none.
        """
        named = sorted(named_in_settings(self.project, section))
        found = (self._dotted(one, MAX_IMPORTS) for one in named)
        return [one for one in found if isinstance(one, Unit) and one.is_class]

    def others(self, path: str, name: str) -> list[Unit | str]:
        """Return what further imports of a module bind to a name."""
        again = self.outline(path).other_sources.get(name, ())
        return [self._imported(path, source) for source in again]

    def imported(self, path: str, name: str) -> Unit | str:
        """Return what an import of a module binds to a name."""
        return self._imported(path, self.outline(path).imports[name])

    def may_be(self, path: str, number: int, meant: Unit) -> bool:
        """True if a name or a dotted name stands for a function or class, or may do so."""
        if self.dotted(path, number) == meant:
            return True
        node = self.outline(path).nodes[number]
        return node.kind == Kind.NAME and meant in self.others(path, node.word)

    def _in_scope(
        self, path: str, outline: Outline, scope: int, name: str
    ) -> Unit | Variable | None:
        functions = outline.defined.get((scope, name))
        if functions:
            return Unit(path, functions[-1])
        number = outline.class_named.get((scope, name))
        if number is not None:
            return Unit(path, number, is_class=True)
        body = outline.bodies[scope]
        if (scope, name) in outline.bound or name in (*body.positional, *body.named, *body.rest):
            return Variable(scope, name)
        return None

    def _imported(self, path: str, source: tuple[int, str, str]) -> Unit | str:
        dotted = self._full(path, source)
        relative = source[0] > 0 or not path
        root = "" if relative else root_of(Path(path), self.module(path).package)
        if root and not self.project.imports_alike(root, dotted):
            return f"{root}:{dotted}"  # a name of another folder, whatever it is called
        return self._dotted(dotted, MAX_IMPORTS)

    def _full(self, path: str, source: tuple[int, str, str]) -> str:
        """Return the dotted name that a module imports, relative dots resolved."""
        level, module, name = source
        absolute = absolute_import(level, module, self.module(path).package)
        return ".".join(filter(None, (absolute, name)))

    def _dotted(self, dotted: str, left: int) -> Unit | str:
        """Return the function or class of a dotted name; the name itself if it is another thing."""
        found = self.project.find(dotted) if left > 0 else None
        if found is None or not found[1] or found[0].path is None:
            return dotted
        path, (first, *rest) = found[0].place, found[1]
        outline = self.outline(path)
        here = self._in_scope(path, outline, 0, first)
        if isinstance(here, Unit):
            return self._below(here, rest) or dotted
        if first in outline.imports:
            source = ".".join((self._full(path, outline.imports[first]), *rest))
            return dotted if source == dotted else self._dotted(source, left - 1)
        return self._by_star(path, found[1], left - 1) or dotted

    def _by_star(self, path: str, names: tuple[str, ...], left: int) -> Unit | None:
        """Return the function or class that a star import of a module binds to names.

        A star import of a module that is not there binds nothing: to look for its names in the
        package around it would lead back to the same star imports, again and again.
        """
        for level, module in self.outline(path).stars:
            source = self._full(path, (level, module, ""))
            if self.project.module(source) is None:
                continue
            found = self._dotted(".".join((source, *names)), left)
            if isinstance(found, Unit):
                return found
        return None

    def place_at(self, path: str, number: int) -> tuple[str, str] | None:
        """Return what `place` does of the dotted name that an expression is."""
        dotted = self.dotted(path, number)
        return self.place(dotted) if isinstance(dotted, str) and dotted else None

    def place(self, dotted: str) -> tuple[str, str] | None:
        """Return the path of a module of the project and the variable there that a name stands for.

        The variable is "" for the module itself; None for any other name.
        """
        for _ in range(MAX_IMPORTS):
            found = self.project.find(dotted)
            if found is None or found[0].path is None or len(found[1]) > 1:
                return None
            path, name = found[0].place, "".join(found[1])
            outline = self.outline(path)
            if not name or (0, name) in outline.bound:
                return path, name
            if name not in outline.imports:
                return None
            dotted = self._full(path, outline.imports[name])
        return None

    def _below(self, unit: Unit, names: list[str]) -> Unit | None:
        """Return the unit itself, or the method that one further name of a class stands for."""
        if not names:
            return unit
        return self.method(unit, names[0]) if unit.is_class and len(names) == 1 else None

    def dotted(self, path: str, number: int) -> Unit | str:
        """Return the function or class that an expression names, or its dotted name, or ""."""
        asked = path, number
        if asked not in self._named_by:
            self._named_by[asked] = self._meant(path, number)
        return self._named_by[asked]

    def _meant(self, path: str, number: int) -> Unit | str:
        outline = self.outline(path)
        node = outline.nodes[number]
        if node.kind == Kind.NAME:
            found = self.named(path, node.body, node.word)
            if isinstance(found, Variable):
                return ""
            return node.word if found is None else found
        if node.kind != Kind.ATTRIBUTE:
            return ""
        owner = outline.child(number, OWNER)
        above = "" if owner is None else self.dotted(path, owner)
        if isinstance(above, Unit):
            found = self._below(above, [node.word])
            return "" if found is None else found
        return self._dotted(f"{above}.{node.word}", MAX_IMPORTS) if above else ""

    def origin(self, path: str, number: int, left: int = MAX_BOUND) -> str:
        """Return the dotted name of another project that makes the object of an expression.

        That is what a chain of calls, attributes and items starts with, through names that are
        bound once; "" if that is of the project, or not shown.
        """
        outline = self.outline(path)
        found: Unit | str = ""
        start: int | None = number
        while start is not None and not found:
            found, number = self.dotted(path, start), start
            called = outline.child(start, FUNCTION)
            start = outline.child(start, OWNER) if called is None else called
        if found or not left:
            return found if isinstance(found, str) else ""
        node = outline.nodes[number]
        bound = outline.bound.get((node.body, node.word), ()) if node.kind == Kind.NAME else ()
        value = outline.child(bound[0], VALUE) if len(bound) == 1 else None
        return "" if value is None else self.origin(path, value, left - 1)

    def collates(self, path: str, number: int) -> bool:
        """True for an argument that makes the batches of a loader, in the loader's workers."""
        return self.outline(path).nodes[number].slot in COLLATING

    def loads(self, path: str, call: int) -> bool:
        """True if a call makes a loader of another package, which takes samples from its data."""
        called = self.outline(path).child(call, FUNCTION)
        if called is None or self.outline(path).nodes[called].word not in LOADING_CLASSES:
            return False
        return isinstance(self.dotted(path, called), str)

    def gives_to_data(self, path: str, call: int) -> bool:
        """True if a call gives functions to a data set of another package.

        That runs them where samples are loaded.
        """
        outline = self.outline(path)
        called = outline.child(call, FUNCTION)
        if called is None:
            return False
        word = outline.nodes[called].word
        if not word[:1].isupper() and word not in GIVING_TO_DATA:
            return False
        return f"{self.origin(path, called)}.".startswith(OF_DATA_PACKAGES)

    def method(self, klass: Unit, name: str) -> Unit | None:
        """Return the method that an object of a class runs by a name, bases included."""
        for one in self.lineage(klass):
            methods = self.klass(one).methods
            if name in methods:
                return Unit(one.path, methods[name])
        return None

    def lineage(self, klass: Unit) -> list[Unit]:
        """Return a class and its bases in the project, nearest first."""
        known = self._lineages.get(klass)
        if known is None:
            known = self._lineages[klass] = []
            waiting, foreign = [klass], []
            while waiting:
                one = waiting.pop(0)
                if one in known:
                    continue
                known.append(one)
                for base in self._bases(one):
                    if isinstance(base, str):
                        foreign.append(base)
                    elif base.is_class:
                        waiting.append(base)
            self._foreign[klass] = foreign
        return known

    def foreign_bases(self, klass: Unit) -> list[str]:
        """Return the dotted names of the bases of a class that are not classes of the project."""
        self.lineage(klass)
        return self._foreign[klass]

    def is_protocol(self, klass: Unit) -> bool:
        """True for a class that only says which methods others must have."""
        bases = filter(lambda base: isinstance(base, str), self._bases(klass))
        return any(str(base).rpartition(".")[2] == "Protocol" for base in bases)

    def fits(self, klass: Unit, protocol: Unit) -> bool:
        """True if a class has the methods of a protocol."""
        return self.is_protocol(protocol) and all(
            self.method(klass, name) is not None for name in self.klass(protocol).methods
        )

    def _bases(self, klass: Unit) -> Iterator[Unit | str]:
        outline = self.outline(klass.path)
        for root in outline.of(Kind.BASE, str(klass.number)):
            base = outline.child(root, VALUE)
            if base is not None and outline.nodes[base].kind == Kind.ITEM:
                base = outline.child(base, OWNER)  # Generic[T]
            if base is not None:
                yield self.dotted(klass.path, base) or "?"

    def has_registry(self, klass: Unit) -> bool:
        """True if a decorator may hand a class on to code that makes its objects."""
        outline = self.outline(klass.path)
        for root in outline.of(Kind.DECORATED, f"c{klass.number}"):
            value = outline.child(root, VALUE)
            called = None if value is None else outline.child(value, FUNCTION) or value
            if called is None or outline.nodes[called].word not in PLAIN_DECORATORS:
                return True
        return False

    def owner(self, path: str, body: int) -> Unit | None:
        """Return the class whose method a body is, or stands in."""
        outline = self.outline(path)
        while body >= 0:
            if outline.bodies[body].owner >= 0:
                return Unit(path, outline.bodies[body].owner, is_class=True)
            body = outline.bodies[body].outer
        return None
