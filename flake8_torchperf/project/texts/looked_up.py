"""The names by which something may be found while the program runs, by module."""

from __future__ import annotations

import ast
import os
import re
from functools import cached_property, lru_cache
from itertools import chain, combinations
from typing import TYPE_CHECKING, NamedTuple

from flake8_torchperf.project.file_index import INIT
from flake8_torchperf.syntax.names import dotted_name
from flake8_torchperf.syntax.traversal import FUNCTIONS, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from flake8_torchperf.project.texts.settings_files import Settings

    Found = tuple[str, ...] | None

_WORD = re.compile(r"\w+")
_DOTTED = re.compile(r"\.*\w[\w.]*")
# The path of a name, as ``models.vit.build``, ``models.vit:build`` or ``train = pkg.cli:main``.
_PATH = re.compile(r"(?:[\w-]+\s*=\s*)?[\w./-]*[.:]\w+")
# In front of a name, asks for the modules that may put it together and look it up by this call.
BUILDING = "getattr "
LOOKING_UP = BUILDING.encode()
# The literal parts of names, before another part and behind one.
_BEGINS = re.compile(rb"[\"'](\w+)(?:\{|%s|[\"']\s*\+)")
_ENDS = re.compile(rb"(?:\}|%s|\+\s*[\"'])(\w+)[\"']")
# Calls that ask if an object belongs to a class, and so make none.
_ASKING = frozenset(("isinstance", "issubclass"))
# Calls that find any name of the module they stand in, or of the modules it imports from.
_OWN_LOOKUPS = frozenset(("globals", "locals", "vars", "eval", "exec"))
# Calls that find a name in what their first argument stands for.
_IMPORTS = frozenset(("import_module", "__import__"))
_LOOKUPS = _IMPORTS | {"getattr", "vars", "getmembers"}
# The text of a module that may look up a class by a name made at run time.
MAY_LOOK_UP = re.compile(
    rb"getattr\(\s*[^,()]+(?:\([^()]*\)|\[[^\[\]]*\])?\s*,\s*[^\"'\s]"
    rb"|__dict__|__import__|\b(?:globals|locals|vars|eval|exec|import_module|getmembers)\s*\("
)
# The words by which a class finds those derived from it.
_COLLECTS = re.compile(rb"__init_subclass__|__subclasses__|\bmetaclass\s*=")
_PLAIN_METACLASSES = ("ABCMeta", "EnumMeta")


class SaidNames(NamedTuple):
    """The names by which a module may find something at run time.

    ``found_by`` holds those in texts that are paths or calls, those of a module that looks up its
    own, and the methods of such a class. ``searched`` holds the dotted paths of the modules in
    which names are looked up that are made at run time, ``loaded`` those in texts for modules that
    are imported then and used, ``bases`` the last names of the bases of each class, and
    ``collecting`` the classes that find those below them.
    """

    found_by: frozenset[str]
    searched: frozenset[str] = frozenset()
    loaded: frozenset[str] = frozenset()
    bases: dict[str, tuple[str, ...]] = {}  # noqa: RUF012 - a tuple's default, never written
    collecting: frozenset[str] = frozenset()


def names_said(text: str) -> SaidNames:
    """Return the names that a module may look up; all its words if it is not Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return SaidNames(frozenset(_WORD.findall(text)))
    said: set[str] = set()
    bases: dict[str, tuple[str, ...]] = {}
    collecting: set[str] = set()
    found_by: set[str] = set()
    waiting: list[tuple[ast.AST, str]] = [(tree, "")]
    while waiting:
        node, holder = waiting.pop()
        if isinstance(node, ast.ClassDef):
            bases[node.name] = tuple(dotted_name(one).rpartition(".")[2] for one in node.bases)
            if _collects(node):
                collecting.add(node.name)
            waiting += [(one, holder) for one in node.decorator_list]
            holder = holder or node.name
        if isinstance(node, ast.Attribute) and node.attr == "__subclasses__":
            collecting |= {holder, *_words_of(node.value)} - {""}
        words = set(_said(node))
        if not holder:
            said |= words
        if isinstance(node, ast.Constant) and _is_code(node.value):
            found_by |= words
        elif isinstance(node, ast.ClassDef) and _looks_into_itself(node):
            found_by.update(one.name for one in node.body if isinstance(one, FUNCTIONS))
        waiting += [(one, holder) for one in _parts(node)]
    searched, loaded = _searched(tree, said)
    if "__name__" in searched | loaded:
        found_by |= said
        found_by.update(one.name for one in tree.body if isinstance(one, FUNCTIONS))
    return SaidNames(frozenset(found_by), searched, loaded, bases, frozenset(collecting))


def _is_code(text: object) -> bool:
    """True for a text that names something by its path, or calls it: ``"Loss(p=2)"``."""
    if not isinstance(text, str):
        return False
    if _PATH.fullmatch(text) or "(" not in text:
        return _PATH.fullmatch(text) is not None
    try:
        ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _looks_into_itself(node: ast.ClassDef) -> bool:
    """True for a class that calls ``getattr(self, name)``, where the name is made at run time."""
    nodes = walk([node])
    called = [one.func for one in nodes if isinstance(one, ast.Call)]
    names = {one.id for one in called if isinstance(one, ast.Name)}
    for one in nodes:
        match one:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in names:
                called.append(value)
    return any(map(_looks_up_own, called))


def _looks_up_own(value: ast.expr) -> bool:
    match value:
        case ast.Call(func=ast.Name(id="getattr"), args=[ast.Name(id="self" | "cls"), name, *_]):
            return not isinstance(name, ast.Constant)
    return False


def _collects(node: ast.ClassDef) -> bool:
    """True if a class is told of each class derived from it."""
    meta = [one.value for one in node.keywords if one.arg == "metaclass"]
    return any(
        dotted_name(one).rpartition(".")[2] not in _PLAIN_METACLASSES for one in meta
    ) or any(isinstance(one, FUNCTIONS) and one.name == "__init_subclass__" for one in node.body)


def _said(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node says by itself."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            yield name
        case ast.Constant(value=str(words)):
            yield from _WORD.findall(words)
        case ast.ImportFrom(names=names):
            yield from (one.name for one in names if one.asname not in (None, one.name))


def _parts(node: ast.AST) -> Sequence[ast.AST]:
    """Return the children of a node that may say names in live code."""
    match node:
        case (
            ast.Assign(targets=[ast.Name(id="__all__")])
            | ast.AugAssign(target=ast.Name(id="__all__"))
        ):
            return ()
        case ast.Call(func=ast.Attribute(value=ast.Name(id="__all__"))):
            return ()
        case ast.Call(func=ast.Name(id=name), args=[first, *_]) if name in _ASKING:
            return (first,)
        case ast.MatchClass(patterns=patterns, kwd_patterns=named):
            return (*patterns, *named)
        case ast.ClassDef(bases=bases, keywords=keywords, body=body):
            return (*bases, *keywords, *_undocumented(body))
        case ast.Module(body=body):
            return _undocumented(body)
    if isinstance(node, FUNCTIONS):
        return (
            *node.decorator_list,
            node.args,
            *([] if node.returns is None else [node.returns]),
            *_undocumented(node.body),
        )
    return list(ast.iter_child_nodes(node))


def _undocumented(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return statements without docstrings and texts that stand alone."""
    return [
        one
        for one in body
        if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
    ]


def _searched(tree: ast.Module, said: set[str]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the dotted paths of the modules that are searched for names made at run time.

    First those that expressions stand for, then those that texts name, or begin to name.
    A search of the module itself, ``__name__``, adds all that it defines and imports to ``said``.
    """
    nodes = walk([tree])
    imported = dict(_imports(nodes))
    searches = _Searches(nodes, imported)
    passed = _only_run(nodes) | _only_named(nodes)
    found: set[str] = set()
    loaded: set[str] = set()
    for node in nodes:
        match node:
            case ast.Call(func=ast.Name(id=name), args=[]) if name in _OWN_LOOKUPS:
                found.add("__name__")
            case ast.Call(func=ast.Name(id="eval" | "exec")):
                found.add("__name__")
            case ast.Call() if id(node) in passed:
                pass
            case ast.Call(
                func=ast.Name(id=name) | ast.Attribute(attr=name), args=[first, *others]
            ) if name in _LOOKUPS and not (others and isinstance(others[0], ast.Constant)):
                if name in _IMPORTS or isinstance(first, ast.Subscript):
                    loaded.update(searches.named(first))  # ``sys.modules[__name__]``
                found.update(searches.of(first))
            case ast.Attribute(value=value, attr="__dict__"):
                found.update(searches.of(value))
    if "__name__" in found | loaded:
        said.update(one.name for one in nodes if isinstance(one, ast.ClassDef))
        said.update(dotted.rpartition(".")[2] for dotted in imported.values())
        found.update(dotted for name, dotted in imported.items() if name[-1:] == "*")
    return frozenset(found) - {""}, frozenset(loaded) - {""}


def _only_run(nodes: Sequence[ast.AST]) -> frozenset[int]:
    """Return the imports at run time whose modules are run, and not used.

    They are statements of their own, or their modules are kept under a name that nothing reads, as
    where classes register themselves: ``archs = [import_module(f"archs.{one}") for one in all]``.
    """
    read = {one.id for one in nodes if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}
    found: set[int] = set()
    for node in nodes:
        match node:
            case ast.Expr(value=value):
                found.add(id(value))
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.ListComp(elt=value)):
                if name not in read:
                    found.add(id(value))
    return frozenset(found)


def _only_named(nodes: Sequence[ast.AST]) -> frozenset[int]:
    """Return the imports at run time of whose modules only names that the code writes are used.

    ``getattr(import_module(path), "Trainer")`` finds a class of that name alone, and so does
    ``loaded.Trainer`` or ``getattr(loaded, "Trainer")`` where ``loaded`` is such a module.
    """
    written: set[int] = set()
    for node in nodes:
        match node:
            case ast.Attribute(value=value, attr=name) if name != "__dict__":
                written.add(id(value))
            case ast.Call(func=ast.Name(id="getattr"), args=[value, ast.Constant(value=str()), *_]):
                written.add(id(value))
    used: dict[str, list[ast.Name]] = {}
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            used.setdefault(node.id, []).append(node)
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in used:
                if all(id(one) in written for one in used[name]):
                    written.add(id(value))
    return frozenset(written)


def _imports(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, str]]:
    """Yield each name that imports bind, with the dotted name that it stands for.

    The name of a star import is that of its module with a star. No dots stand in front of the name
    of a module that is near.
    """
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                head = alias.name.partition(".")[0]
                yield alias.asname or head, alias.name if alias.asname else head
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if alias.name == "*":
                    yield f"{node.module}*", node.module or ""
                else:
                    yield alias.asname or alias.name, _joined(node.module or "", alias.name)


def _joined(*parts: str) -> str:
    return ".".join(filter(None, parts))


class _Searches:
    """Finds the modules that expressions of a module stand for, or that they name."""

    def __init__(self, nodes: Sequence[ast.AST], imported: Mapping[str, str]) -> None:
        self._imported = imported
        # The values that variables of the module get anywhere.
        self._values: dict[str, list[ast.expr]] = {}
        for node in nodes:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self._values.setdefault(name, []).append(value)

    def of(self, value: ast.expr) -> Iterator[str]:
        """Yield the dotted path of the module that an expression stands for."""
        head, _, rest = dotted_name(value).partition(".")
        if head in self._imported:
            yield _joined(self._imported[head], rest)

    def named(self, value: ast.expr) -> Iterator[str]:
        """Yield the dotted paths in the texts of the name of a module.

        A variable stands for the texts that it is given. Where a text is only a part, the last name
        in it may be only the beginning of one.
        """
        nodes = walk([value])
        given = [self._values.get(one.id, ()) for one in nodes if isinstance(one, ast.Name)]
        for whole in (value, *chain.from_iterable(given)):
            for node in walk([whole]):
                match node:
                    case ast.Name(id="__name__"):
                        yield "__name__"
                    case ast.Constant(value=str(text)):
                        for path in _DOTTED.findall(text):
                            yield path.strip(".")
                            if node is not whole:
                                yield path.rpartition(".")[0].strip(".")


def _words_of(value: ast.expr) -> Iterator[str]:
    for node in walk([value]):
        yield from _said(node)


class LookedUp:
    """Decides what the code of a project may find by a name, by the texts of its modules."""

    def __init__(
        self, folder: str, texts: Mapping[str, bytes], that_say: Callable[[str], Found]
    ) -> None:
        self._folder = folder
        self._texts = texts
        self._that_say = that_say
        self._names: dict[str, SaidNames] = {}

    def is_class_found(self, name: str, module: str) -> bool:
        """True if a class may be found without its name.

        Its module is searched, or a package that imports from it; a folder around it is searched
        for modules; or a class above it finds it. ``module`` is the dotted path of its module.
        """
        if name in self._collected:
            return True
        parts = module.removesuffix(".__init__").split(".")
        for first, last in combinations(range(len(parts) + 1), 2):
            path = ".".join(parts[first:last])
            if path in self._loaded or (
                path in self._searched and self._is_exported(name, parts, last)
            ):
                return True
        return False

    def _is_exported(self, name: str, parts: Sequence[str], last: int) -> bool:
        """True if the first parts of a module's path are a package that says a name in the module.

        A package between the two must say the next part, or the name, as well; one without a text
        may say it, and so may one that looks up names itself.
        """
        for number in range(last, len(parts)):
            text = self._texts.get(os.path.join(self._folder, *parts[:number], INIT))
            if text is None or MAY_LOOK_UP.search(text):
                continue
            said = re.compile(rf"\b(?:{re.escape(parts[number])}|{re.escape(name)})\b".encode())
            if not said.search(text):
                return False
        return True

    def is_looked_up(self, name: str, module: str, settings: Settings, notebooks: Settings) -> bool:
        """True if something of a module may be found by its name while the project runs.

        A text or a file of settings names it by a path, a notebook names it, or the module or the
        subclasses of a class are searched. ``module`` is "" for a method.
        """
        parts = module.removesuffix(".__init__").split(".")
        ends = (".".join(parts[first:]) for first in range(len(parts)))
        searched = self._searched | self._loaded
        if module and (name in self._collected or not searched.isdisjoint(ends)):
            return True
        home = parts[-1]
        path = re.compile(rf"[.:]{re.escape(name)}\b")
        if any(map(path.search, settings.that_say(name))):
            return True
        used = _word(name) if module else re.compile(rf"\.{re.escape(name)}\b")
        if any(used.search(text) for text in notebooks.that_say(name) if home in text):
            return True
        paths = self._that_say(name)
        return paths is None or any(name in self.names(path).found_by for path in paths)

    def names(self, path: str) -> SaidNames:
        """Return the names that a module says, read once."""
        if path not in self._names:
            self._names[path] = names_said(self._texts[path].decode("utf-8", "replace"))
        return self._names[path]

    @cached_property
    def _searched(self) -> frozenset[str]:
        """The dotted paths of the modules that some module of the project searches for a name."""
        return frozenset(one for path in self._searching for one in self.names(path).searched)

    @cached_property
    def _loaded(self) -> frozenset[str]:
        """The dotted paths in texts that some module of the project imports by, in full or not."""
        return frozenset(one for path in self._searching for one in self.names(path).loaded)

    @cached_property
    def _searching(self) -> tuple[str, ...]:
        """The modules that may look up names that are made at run time."""
        return tuple(path for path, text in self._texts.items() if MAY_LOOK_UP.search(text))

    @cached_property
    def _collected(self) -> frozenset[str]:
        """The classes that a class above them finds."""
        paths = [path for path, text in self._texts.items() if _COLLECTS.search(text)]
        found = {name for path in paths for name in self.names(path).collecting}
        waiting = sorted(found)
        while waiting:
            base = waiting.pop()
            for path in self._that_say(base) or ():
                below = {
                    name for name, bases in self.names(path).bases.items() if base in bases
                } - found
                found |= below
                waiting += sorted(below)
        return frozenset(found)


def may_build(text: bytes, name: bytes) -> bool:
    """True if a module may put a name together and look it up by it.

    A literal text begins or ends as the name does, and has another part.
    """
    if LOOKING_UP.strip() not in text:
        return False
    begins, ends = _literal_parts(text)
    return name.startswith(begins) or name.endswith(ends)


@lru_cache(maxsize=1024)
def _literal_parts(text: bytes) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    """Return what names that a text puts together begin with, and what they end in."""
    return tuple({*_BEGINS.findall(text)}), tuple({*_ENDS.findall(text)})


def _word(name: str) -> re.Pattern[str]:
    return re.compile(rf"\b{re.escape(name)}\b")
