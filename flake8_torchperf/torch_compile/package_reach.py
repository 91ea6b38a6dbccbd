"""The functions of a package that compiled code in other modules reaches through calls.

A call counts if its name leads to one function: by imports, by the class of ``self`` and its bases,
and by the classes of the values of names and attributes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.project.files import stamp
from flake8_torchperf.torch_compile.call_outline import outline
from flake8_torchperf.torch_compile.compile_calls import Settings
from flake8_torchperf.torch_compile.compiled_code import Compilation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flake8_torchperf.project.text_search import TextSearch
    from flake8_torchperf.torch_compile.call_outline import (
        Called,
        ClassOutline,
        FunctionOutline,
        ModuleOutline,
    )

# The most imports that are followed for one name, from module to module.
MAX_IMPORTS = 8
# Path of a module -> qualified names of its functions that compiled code of other modules reaches.
Reached = dict[str, dict[str, Compilation]]
# The result for the last package, because linting handles the packages one after the other.
_LAST: list[tuple[TextSearch, Reached]] = []


def reached_from_outside(texts: TextSearch) -> Reached:
    """Return the functions of a package that a ``forward`` of any of its classes reaches."""
    if not (_LAST and _LAST[0][0] is texts):
        _LAST[:] = [(texts, _Package(texts.paths).reached())]
    return _LAST[0][1]


class _Package:
    """The modules of a package, with the resolution of their names."""

    def __init__(self, paths: list[str]) -> None:
        outlines = [outline(path, *stamp(path)) for path in paths]
        self._modules: dict[str, ModuleOutline] = {one.name: one for one in outlines if one.name}
        # Dotted name of a class -> the classes right below it.
        self._below: dict[str, list[str]] = {}
        for name, module, klass in self._classes():
            for base in klass.bases:
                found = self._class(_from_here(base, module))
                if found:
                    self._below.setdefault(found, []).append(name)

    def _classes(self) -> Iterator[tuple[str, ModuleOutline, ClassOutline]]:
        for module in self._modules.values():
            for name, klass in module.classes.items():
                yield f"{module.name}.{name}", module, klass

    def reached(self) -> Reached:
        """Return all functions that calls in compiled code lead to, with the reason for each."""
        found: dict[tuple[str, str], str] = {}
        waiting: list[tuple[str, str]] = []
        for name, module, klass in self._classes():
            if not klass.bases or _is_function(klass) or not any(self._method(name, "forward")):
                continue
            own = name.removeprefix(f"{module.name}.")
            for qualname in (f"{own}.forward", f"{own}.__call__"):
                if qualname in module.functions:
                    found[(module.name, qualname)] = ""
                    waiting.append((module.name, qualname))
        while waiting:
            caller = waiting.pop()
            entry = found[caller] or caller[1]
            for called in self._modules[caller[0]].functions[caller[1]].calls:
                for callee in self._lead(called):
                    if callee not in found:
                        found[callee] = entry
                        waiting.append(callee)
        return self._worded(found)

    def _worded(self, found: dict[tuple[str, str], str]) -> Reached:
        words: Reached = {}
        for (name, qualname), entry in found.items():
            # The analysis of the module itself finds functions that are compiled directly.
            if entry or qualname.endswith(".__call__"):
                entry = entry or qualname
                last = qualname.rpartition(".")[2]
                told = f"of {last}, called by the compiled {entry}"
                path = self._modules[name].path
                words.setdefault(path, {})[qualname] = Compilation(told, Settings(), entry)
        return words

    def _lead(self, called: Called) -> Iterator[tuple[str, str]]:
        """Yield the functions that a call runs and the compiler traces, by module and name."""
        for place, qualname, function in self._targets(called):
            if function.is_traced and (called.how != "property" or function.is_property):
                yield place, qualname

    def _targets(self, called: Called) -> Iterator[tuple[str, str, FunctionOutline]]:
        if called.how == "name":
            yield from self._named(called.name)
            return
        owner = self._class(called.owner)
        if not owner:
            return
        match called.how:
            case "inherited":
                yield from self._method(owner, called.name, above=True)
            case "attribute":
                first, _, last = called.name.partition(".")
                for made in self._attribute(owner, first):
                    yield from self._method(made, last)
            case _:
                yield from self._method(owner, called.name)
                for below in self._descendants(owner):
                    yield from self._own(below, called.name)

    def _named(self, dotted: str) -> Iterator[tuple[str, str, FunctionOutline]]:
        found = self._resolve(dotted)
        if found is None:
            return
        module, name = found
        if name in module.functions:
            yield module.name, name, module.functions[name]
        elif name in module.classes:
            yield from self._method(f"{module.name}.{name}", "__init__")

    def _method(
        self, owner: str, name: str, *, above: bool = False
    ) -> Iterator[tuple[str, str, FunctionOutline]]:
        """Yield a class's method by its name, or the ``forward`` of its attribute of that name."""
        lineage = list(self._lineage(owner))[1 if above else 0 :]
        for klass in lineage:
            own = list(self._own(klass, name))
            if own:
                yield from own
                return
        for made in self._attribute(owner, name):
            yield from self._method(made, "forward")

    def _own(self, owner: str, name: str) -> Iterator[tuple[str, str, FunctionOutline]]:
        found = self._resolve(owner)
        if found is None:
            return
        module, klass = found
        function = module.functions.get(f"{klass}.{name}")
        if function is not None:
            yield module.name, f"{klass}.{name}", function

    def _attribute(self, owner: str, name: str) -> list[str]:
        """Return the classes of the values that an attribute of a class is assigned."""
        for klass in self._lineage(owner):
            found = self._resolve(klass)
            if found is not None:
                made = found[0].classes[found[1]].attributes.get(name, ())
                known = [one for one in map(self._class, made) if one]
                if known:
                    return known
        return []

    def _lineage(self, owner: str) -> Iterator[str]:
        """Yield a class and its bases in the package, nearest first."""
        waiting, seen = [owner], {owner}
        while waiting:
            name = waiting.pop(0)
            yield name
            found = self._resolve(name)
            if found is None:
                continue
            for base in found[0].classes[found[1]].bases:
                above = self._class(_from_here(base, found[0]))
                if above and above not in seen:
                    seen.add(above)
                    waiting.append(above)

    def _descendants(self, owner: str) -> Iterator[str]:
        waiting, seen = [owner], {owner}
        while waiting:
            for name in self._below.get(waiting.pop(), ()):
                if name not in seen:
                    seen.add(name)
                    waiting.append(name)
                    yield name

    def _class(self, dotted: str) -> str:
        """Return the name of a class in the module that defines it; "" for anything else."""
        found = self._resolve(dotted)
        if found is None or found[1] not in found[0].classes:
            return ""
        return f"{found[0].name}.{found[1]}"

    def _resolve(self, dotted: str, left: int = MAX_IMPORTS) -> tuple[ModuleOutline, str] | None:
        """Return the module that defines a dotted name, and the name in that module."""
        parts = dotted.split(".")
        for end in range(len(parts) - 1, 0, -1):
            module = self._modules.get(".".join(parts[:end]))
            if module is None:
                continue
            rest = ".".join(parts[end:])
            if rest in module.functions or rest in module.classes:
                return module, rest
            if left <= 0:
                return None
            source = module.imports.get(parts[end])
            if source is not None:
                return self._resolve(".".join([source, *parts[end + 1 :]]), left - 1)
            for star in module.stars:
                found = self._resolve(f"{star}.{rest}", left - 1)
                if found is not None:
                    return found
            return None
        return None


def _from_here(name: str, module: ModuleOutline) -> str:
    """Return a base as a dotted name; a base that is not imported may come from a star import."""
    return name if "." in name else f"{module.name}.{name}"


def _is_function(klass: ClassOutline) -> bool:
    """True for a class derived from ``autograd.Function``, whose ``forward`` is not a module's."""
    return any(base.rpartition(".")[2] == "Function" for base in klass.bases)
