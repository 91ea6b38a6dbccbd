"""The functions of a module that ``torch.compile`` compiles or a ``torch.func`` transform runs.

The analysis is by syntax: a function that is passed on in a way that syntax does not show stays
unknown. For a module that mentions neither, one search of its text is enough.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from flake8_torchperf.syntax.compile_guards import COMPILE_WORDS
from flake8_torchperf.torch_compile.recompilation import find_marks
from flake8_torchperf.torch_compile.region_search import RegionSearch
from flake8_torchperf.torch_compile.scopes import Scopes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from flake8_torchperf.project.module_index import FunctionInfo, ModuleMap
    from flake8_torchperf.project.resolver import Project
    from flake8_torchperf.torch_compile.compiled_code import Compilation, CompiledCode

# Switches of torch._dynamo.config that prevent graph breaks, as they stand in a module's text.
SWITCHES = frozenset((
    "capture_scalar_outputs", "capture_dynamic_output_shape_ops", "reorderable_logging_functions",
    "ignore_logging_functions", "ignore_logger_methods", "trace_autograd_ops", "allow_rnn",
    "allow_unspec_int_on_nn_module",
))  # fmt: skip
_SPEAKS = re.compile(
    r"torch\.compile\b|import[^\n#]*\bcompile\b|_dynamo(?:\.optimize| import)|(?<!\bre)\.compile\("
    r"|\bvmap\b|functorch|torch\.func\b"
)
# Names that compiling code must use: torch._dynamo.optimize compiles, torch._dynamo alone does not.
_WORDS = frozenset(("compile", "optimize", "vmap", "functorch"))


def find_compiled(
    module: ModuleMap, *, assume: bool = False, project: Project | None = None
) -> CompiledCode | None:
    """Return the compiled and transformed functions of a module; None if it has none.

    What compiled code of other modules of a ``project`` runs counts too. With ``assume``, every
    ``forward`` of a class with a base counts as compiled.
    """
    text = "".join(module.lines)
    outside = None if project is None or module.path is None else _outside(project, assume=assume)
    speaks = assume or (_speaks(module.lines, text) and _names(module))
    if outside is None and not speaks:
        return None
    scopes = Scopes(module)
    search = RegionSearch(scopes)
    search.decorators()
    search.calls()
    if assume:
        search.assume()
    if outside is not None:
        search.callees()
        search.outside(outside)
    elif not assume and not search.wraps_any:
        return None
    search.callees()
    search.batched()
    found = search.found
    found.switches = frozenset(word for word in SWITCHES if word in text)
    found.marks = find_marks(search)
    return found if found else None


def _outside(
    project: Project, *, assume: bool
) -> Callable[[FunctionInfo], Compilation | None] | None:
    """Return what tells why other modules compile a function; None if they compile none."""
    if assume:
        from flake8_torchperf.program.running import Program
        from flake8_torchperf.torch_compile.package_reach import PackageReach, entry_assumed

        return PackageReach(Program(project), entry_assumed).compilation
    from flake8_torchperf.torch_compile.project_reach import reached_in

    reached = reached_in(project)
    return (lambda info: reached.get(info.qualname)) if reached else None


def _speaks(lines: Iterable[str], text: str) -> bool:
    """True if a line of the text may compile or transform something."""
    said = [word for word in COMPILE_WORDS if word in text]
    return any(_SPEAKS.search(line) for word in said for line in lines if word in line)


def _names(module: ModuleMap) -> bool:
    """True if the words stand in code, not only in comments and docstrings."""
    nodes = module.nodes(module.tree)
    return (
        not _WORDS.isdisjoint([name.id for name in nodes.of(ast.Name)])
        or any(_is_word(part) for part in nodes.of(ast.Attribute))
        or any(_imports(f"{s.module}.{a.name}") for s in nodes.of(ast.ImportFrom) for a in s.names)
        or any(_imports(alias.name) for s in nodes.of(ast.Import) for alias in s.names)
    )


def _is_word(part: ast.Attribute) -> bool:
    owner = part.value.id if isinstance(part.value, ast.Name) else ""
    return (part.attr in _WORDS and owner != "re") or (part.attr == "func" and owner == "torch")


def _imports(name: str) -> bool:
    return name.startswith("torch.func") or not IMPORTED.isdisjoint(name.split("."))


IMPORTED = _WORDS | {"_dynamo"}
