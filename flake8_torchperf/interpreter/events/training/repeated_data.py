"""Data loaders that give every rank of a data-parallel training the whole data set."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.idioms.module_roles import is_beside_steps
from flake8_torchperf.interpreter.events.recording import emit
from flake8_torchperf.interpreter.events.training.rank_names import is_of_rank, rank_names
from flake8_torchperf.interpreter.events.training.trained_loaders import parents, tree_of, uses_of
from flake8_torchperf.interpreter.stated_types.class_hierarchy import lineage
from flake8_torchperf.knowledge.parallel_training import DATA_PARALLEL, SPLITTING
from flake8_torchperf.project.stores.module_facts import once_per_module
from flake8_torchperf.syntax.names import called_name, dotted_name
from flake8_torchperf.syntax.traversal import CALL, walk
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import Instance, NoneValue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.project.module_index import ModuleMap
    from flake8_torchperf.values.arguments import Arguments
    from flake8_torchperf.values.values import Value

# Data sets that yield their items themselves, and so may split them over ranks.
ITERABLE = frozenset(("torch.utils.data.IterableDataset", "torch.utils.data.IterDataPipe"))
# The positions of the arguments that choose what a loader loads.
SAMPLERS = ((3, "sampler"), (4, "batch_sampler"))
# Arguments that hold no data: a batch size for each rank is divided by the number of ranks.
SIZE_ARGUMENTS = frozenset(("batch_size", "num_workers", "pin_memory", "pin_memory_device",
                      "prefetch_factor", "timeout", "drop_last"))  # fmt: skip
# How many assignments the data set is followed back through.
MAX_STEPS = 4


def note_loader(arguments: Arguments, ctx: Context) -> None:
    """Record a loader without a sampler whose batches train a data-parallel model."""
    if ctx.sink is None or arguments.open or is_beside_steps(ctx.module, ctx.analysis.conventions):
        return
    given = [arguments.get(position, name) for position, name in SAMPLERS]
    if any(one is not None and not isinstance(one.value, NoneValue) for one in given):
        return
    if not _is_whole(arguments.value(0, "dataset"), ctx) or not ctx.module.says("DataLoader"):
        return
    if _may_be_split(arguments.node, ctx.module) or _is_in_a_branch(arguments.node, ctx.module):
        return
    modules = _training_modules(arguments.node, ctx)
    if any(map(wraps_in_parallel, modules)) and not any(map(splits_work, modules)):
        emit(ctx, SiteKind.REPEATED_DATA, "DataLoader", arguments.node)


def _is_whole(data: Value, ctx: Context) -> bool:
    """True for a data set with positions, of a class whose code asks for no rank."""
    if not isinstance(data, Instance):
        return False
    if data.info is None:
        found = ctx.analysis.table.klass(data.name)
        named = () if found is None else (found.qualified, *found.bases)
        return ITERABLE.isdisjoint(named)
    for base in lineage(data.info, ctx.analysis):
        if isinstance(base, str):
            found = ctx.analysis.table.klass(base)
            if base in ITERABLE or (found is not None and not ITERABLE.isdisjoint(found.bases)):
                return False
        elif is_of_rank(base.node, rank_names(base.module)):
            return False
    return True


def _may_be_split(call: ast.Call, module: ModuleMap) -> bool:
    """True if what a loader loads, or how, is made of a rank."""
    names = rank_names(module)
    waiting: list[tuple[ast.expr, int]] = [(one, 0) for one in call.args[:1]]
    waiting += [(k.value, 0) for k in call.keywords if k.arg not in SIZE_ARGUMENTS]
    seen: set[str] = set()
    while waiting:
        made, steps = waiting.pop()
        if is_of_rank(made, names):
            return True
        read = {dotted_name(n) for n in walk([made]) if isinstance(n, (ast.Name, ast.Attribute))}
        if steps < MAX_STEPS:
            waiting.extend((one, steps + 1) for one in _assigned(read - seen, module))
        seen |= read
    return False


def _assigned(names: set[str], module: ModuleMap) -> Iterator[ast.expr]:
    for node in walk([tree_of(module)]):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
                if any(dotted_name(part) in names for part in parts):
                    yield node.value


def _is_in_a_branch(node: ast.AST, module: ModuleMap) -> bool:
    """True if a test decides whether the loader is made: one for a single process, perhaps."""
    above = parents(module)
    found = above.get(id(node))
    while found is not None:
        match found:
            case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
                pass
            case ast.If() | ast.IfExp() | ast.Match() | ast.Try():
                return True
        found = above.get(id(found))
    return False


def _training_modules(call: ast.Call, ctx: Context) -> list[ModuleMap]:
    """Return the modules that a loader goes through, if some loop trains by it; else none."""
    uses = uses_of(call, ctx)
    return list(uses.modules.values()) if uses.trained and not uses.escapes else []


@once_per_module
def wraps_in_parallel(module: ModuleMap) -> bool:
    """True if a module wraps a model whose gradients all ranks average."""
    return any(
        isinstance(node, CALL) and module.qualify(node.func) in DATA_PARALLEL
        for node in walk([tree_of(module)])
    )


@once_per_module
def splits_work(module: ModuleMap) -> bool:
    """True if a module uses what splits data, or a rank chooses items, rounds or random numbers."""
    names = rank_names(module)
    return any(_splits(node, names) for node in walk([tree_of(module)]))


def _splits(node: ast.AST, names: frozenset[str]) -> bool:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in SPLITTING
        case ast.BinOp(op=ast.Mod(), left=left, right=right):
            text = isinstance(left, (ast.Constant, ast.JoinedStr))
            return not text and is_of_rank(right, names)
        case ast.Subscript(value=owner, slice=index):
            return called_name(owner) != "environ" and is_of_rank(index, names)
        case ast.Call(func=func) if "seed" in called_name(func):
            return is_of_rank(node, names)
    return False
