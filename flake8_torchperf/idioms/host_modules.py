"""Modules whose tensors lie on the host, by what the whole module does."""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING

from flake8_torchperf.idioms.host_names import is_device

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flake8_torchperf.project.module_index import ClassInfo, FunctionNode, ModuleMap

# Libraries that leave each tensor where the program puts it.
PLAIN_LIBRARIES = frozenset(("torch", "numpy", *sys.stdlib_module_names))
# Words without which a program with torch alone uses no device.
DEVICES = ("cuda", "device", ".to(", "mps", "xpu", "npu", "hpu", "xla", "accelerator")
# The library of actors: functions and objects in other processes, called as `x.method.remote()`.
ACTORS = "ray"
# The keywords of loaders, and of trainers that make loaders.
COLLATORS = ("collate_fn", "data_collator")
# Members of a process group compute on their devices.
PROCESS_GROUPS = "torch.distributed"


def uses_no_device(module: ModuleMap) -> bool:
    """True for a script that names no device and imports torch and the standard library alone."""
    if not module.says("__main__") or any(map(module.says, DEVICES)):
        return False
    return all(name.partition(".")[0] in PLAIN_LIBRARIES for name in module.imports.values())


def drives_actors(module: ModuleMap) -> bool:
    """True for a module that calls actors, and has neither a device nor a process group.

    What actors return is pickled between processes, and programs move it to the host for that.
    """
    imported = module.imports.values()
    if not any(name.partition(".")[0] == ACTORS for name in imported):
        return False
    if any(name.startswith(PROCESS_GROUPS) for name in imported):
        return False
    nodes = list(ast.walk(module.tree))
    return any(map(_calls_actor, nodes)) and not any(map(_has_device, nodes))


def collators(module: ModuleMap) -> frozenset[str]:
    """Return the names of the functions and classes that a module gives loaders to make batches.

    A loader calls them in its workers, with what the data set made there. A name that is given
    stands for what the module assigns to it, too: ``collate = Padded(...)``.
    """
    nodes = list(ast.walk(module.tree))
    given = {
        name
        for keyword in nodes
        if isinstance(keyword, ast.keyword) and keyword.arg in COLLATORS
        for name in _names(keyword.value)
    }
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=bound) | ast.Attribute(attr=bound)], value=value):
                if bound in given:
                    given.update(_names(value))
    return frozenset(given)


def _names(node: ast.expr) -> Iterator[str]:
    for inner in ast.walk(node):
        match inner:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                yield name


def is_actor(owner: ClassInfo | None, function: FunctionNode | None) -> bool:
    """True for a function that runs in a process of its own, which may have a device."""
    above = () if owner is None else owner.node.decorator_list
    own = () if function is None else function.decorator_list
    return any("remote" in ast.unparse(decorator) for decorator in (*above, *own))


def _calls_actor(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr="remote")):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="get" | "wait")):
            return name == ACTORS
    return False


def _has_device(node: ast.AST) -> bool:
    """True for a use of CUDA, of torch's process groups, or of a device to put tensors on."""
    match node:
        case ast.Attribute(attr="cuda"):
            return True
        case ast.Attribute(value=ast.Name(id="torch"), attr="distributed"):
            return True
        case ast.Call(func=ast.Attribute(attr="to"), args=args):
            return any(map(is_device, args))
        case ast.keyword(arg="device", value=value):
            return not isinstance(value, ast.Constant) or value.value not in ("cpu", None)
    return False
