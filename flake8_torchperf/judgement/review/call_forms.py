"""The forms of calls in one module: whether they may run a function, or hand it on."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flake8_torchperf.judgement.frequency.call_graph import Calls, CallSite
    from flake8_torchperf.project.module_index import FunctionInfo, ModuleMap

CONTAINER_METHODS = frozenset(
    name for kind in (list, dict, set) for name in vars(kind) if not name.startswith("_")
)


def fits_container(name: str, site: CallSite) -> bool:
    """True if a list, a dict or a set may be called as ``x.name(...)`` with these arguments."""
    most = 2 if name == "insert" else 1
    return name in CONTAINER_METHODS and (site.arguments is None or site.arguments <= most)


def fits(info: FunctionInfo, site: CallSite) -> bool:
    """True if a method may be called on an object with as many arguments as a call gives."""
    if site.arguments is None:
        return True
    args = info.node.args
    named = [*args.posonlyargs, *args.args][0 if "staticmethod" in info.decorators else 1 :]
    needed = len(named) - len(args.defaults) + sum(one is None for one in args.kw_defaults)
    most = len(named) + len(args.kwonlyargs)
    open_ended = args.vararg is not None or args.kwarg is not None
    return needed <= site.arguments and (open_ended or site.arguments <= most)


def files_of(module: ModuleMap) -> tuple[str, ...]:
    """Return the file of a module, if it has one."""
    return () if module.path is None else (str(module.path.resolve()),)


def calls_of_name(info: FunctionInfo, module: ModuleMap, calls: Calls) -> list[CallSite]:
    """Return the calls of all methods of a name, since one class may override another's."""
    methods = [
        one.methods[info.name] for one in module.classes.values() if info.name in one.methods
    ]
    return [site for method in methods for site in calls.of(method)]


def hands_on(info: FunctionInfo, module: ModuleMap, calls: Calls) -> bool:
    """True if the function, or something of its name, is passed on or renamed."""
    if info.owner is not None or module.name == info.module.name:
        return info.name in calls.values
    if info.name in module.functions or info.name in module.classes:
        return False  # the module defines the name itself
    if not module.stars and not _may_import(info.name, module):
        return False  # it is a name of the module's own
    names = [n for n, to in module.imports.items() if to.rpartition(".")[2] == info.name]
    package = module.path is not None and module.path.stem == "__init__"
    if package and any(name != info.name for name in names):
        return True  # modules that import it from the package use another name
    return any(name in calls.values for name in (*names, info.name))


def _may_import(name: str, module: ModuleMap) -> bool:
    """True if a module imports a name, anywhere, or may read it as an attribute of a module."""
    whole = module.nodes(module.tree)
    if any(
        isinstance(node.ctx, ast.Load) and node.attr == name for node in whole.of(ast.Attribute)
    ):
        return True
    return any(alias.name == name for node in whole.of(ast.ImportFrom) for alias in node.names)
