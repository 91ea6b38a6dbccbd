"""The attributes of its arguments that a call writes: ``fill(state)`` sets ``state.loss``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.engine.caches import Cache
from flake8_torchperf.interpreter.stated_types.class_hierarchy import is_module
from flake8_torchperf.interpreter.transfer.assignment import set_attribute
from flake8_torchperf.project.function_facts import GIVEN_WRITES
from flake8_torchperf.values.environments import forget, path_of
from flake8_torchperf.values.values import UNKNOWN, Instance, Mapping_, Value

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.project.module_index import FunctionInfo
    from flake8_torchperf.values.arguments import Arguments
    from flake8_torchperf.values.environments import Env

# By function: the paths of the attributes of its parameters that it writes.
WRITTEN: Cache[str, tuple[tuple[str, str], ...]] = Cache("attributes of arguments written")


def attributes_written(
    info: FunctionInfo, me: str, analysis: Analysis
) -> tuple[tuple[str, str], ...]:
    """Return the parameters, other than ``me``, of which a function sets attributes, with these."""
    return WRITTEN.kept(
        analysis, info.key, lambda: tuple(one for one in GIVEN_WRITES.of(info) if one[0] != me)
    )


def set_given(
    info: FunctionInfo,
    arguments: Arguments,
    written: dict[tuple[str, str], Value],
    env: Env,
    ctx: Context,
    *,
    skip: bool,
) -> None:
    """Set the attributes of arguments that a call has written, where the caller keeps them."""
    names = [a.arg for a in (*info.tree.args.posonlyargs, *info.tree.args.args)][1 if skip else 0 :]
    given = arguments.by_parameter(names)
    for (name, attribute), value in written.items():
        argument = given.get(name)
        path = None if argument is None else path_of(argument.node)
        if argument is None or path is None or not _keeps(argument.value, ctx):
            continue
        if value is UNKNOWN:
            forget(env, f"{path}.{attribute}")
        else:
            set_attribute(path, argument.value, attribute, value, env, ctx)


def _keeps(owner: Value, ctx: Context) -> bool:
    """True for an object of the project that is no module: what writes to it is seen whole."""
    if isinstance(owner, Mapping_):
        return owner.info is not None
    return isinstance(owner, Instance) and not is_module(owner, ctx.analysis)
