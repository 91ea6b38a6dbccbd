"""Expressions that compile a function passed to them, and calls of these, with their settings.

The analysis is by syntax.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from flake8_torchperf.program.life.compiled import COMPILE_FUNCTIONS
from flake8_torchperf.torch_compile.callables import PARTIAL
from flake8_torchperf.torch_compile.compiling_wrappers import Wrappers, handed_over, literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flake8_torchperf.torch_compile.compiling_wrappers import Compiling
    from flake8_torchperf.torch_compile.scopes import Scope, Scopes

# The older function, which takes the backend first and returns a decorator.
OPTIMIZE_FUNCTIONS = frozenset(("torch._dynamo.optimize", "torch._dynamo.eval_frame.optimize"))
# The most names and functions that are followed to find that an expression compiles.
MAX_STEPS = 6


@dataclass(frozen=True, slots=True)
class CompileSettings:
    """The settings of a call of ``torch.compile``, as far as literals show."""

    fullgraph: bool = False
    dynamic: bool | None = None
    line: int = 0


class Ways:
    """The expressions of one module that compile a function passed to them; results are cached."""

    def __init__(self, scopes: Scopes) -> None:
        self._module = scopes.module
        self._wrappers = Wrappers(scopes, self._handed_over)
        self._named: dict[tuple[str, int, int], CompileSettings | None] = {}

    def wraps(self, node: ast.expr, scope: Scope) -> bool:
        """True if an expression names a function of the module that compiles its argument."""
        return self._wrappers.named(node, scope, MAX_STEPS) is not None

    def settings(
        self, node: ast.expr, scope: Scope, left: int = MAX_STEPS
    ) -> CompileSettings | None:
        """Return the settings if ``node`` is an expression that compiles a function passed to it.

        ``left`` is the number of names and functions that may still be followed.
        """
        if left <= 0:
            return None
        if isinstance(node, ast.IfExp):
            return self.settings(node.body, scope, left - 1) or self.settings(
                node.orelse, scope, left - 1
            )
        if isinstance(node, ast.Name):
            found = self._settings_of_name(node.id, scope, left)
            if found is not None:
                return found
        name = self._module.qualify(node)
        if name in COMPILE_FUNCTIONS:
            return CompileSettings(line=node.lineno)
        if isinstance(node, ast.Call):
            return self._settings_of_call(node, scope, left)
        return self._settings_inside(self._wrappers.named(node, scope, left - 1), left - 1)

    def first_settings(
        self, nodes: Sequence[ast.expr], scope: Scope, left: int = MAX_STEPS
    ) -> CompileSettings | None:
        """Return the settings of the first of several expressions that has any."""
        for node in nodes:
            found = self.settings(node, scope, left)
            if found is not None:
                return found
        return None

    def _settings_of_name(self, name: str, scope: Scope, left: int) -> CompileSettings | None:
        """Return the settings of the first value of a name that has any; cached."""
        bound = scope.lookup(name)
        if bound is None:
            return None
        key = (name, id(bound[1]), left)
        if key not in self._named:
            values = [value for value in bound[0] if isinstance(value, ast.expr)]
            self._named[key] = self.first_settings(values, bound[1], left - 1)
        return self._named[key]

    def _settings_inside(self, found: Compiling | None, left: int) -> CompileSettings | None:
        """Return the settings with which a decorator of the module's own compiles."""
        inside = None if found is None else self.wrapped(*found, left)
        return None if inside is None else inside[1]

    def _handed_over(self, call: ast.Call, scope: Scope, left: int) -> ast.expr | None:
        wrapped = self.wrapped(call, scope, left)
        return None if wrapped is None else wrapped[0]

    def _settings_of_call(self, node: ast.Call, scope: Scope, left: int) -> CompileSettings | None:
        name = self._module.qualify(node.func)
        if name in OPTIMIZE_FUNCTIONS:
            return stated(node, CompileSettings(line=node.lineno), scope)
        if name in PARTIAL:
            if not node.args:
                return None
            before = self.settings(node.args[0], scope, left - 1)
            return None if before is None else stated(node, before, scope)
        made = self._settings_inside(self._wrappers.made(node.func, scope, left - 1), left - 1)
        if made is not None:
            return made
        if handed_over(node) is not None:
            return None
        before = self.settings(node.func, scope, left - 1)
        return None if before is None else stated(node, before, scope)

    def wrapped(
        self, call: ast.Call, scope: Scope, left: int = MAX_STEPS
    ) -> tuple[ast.expr, CompileSettings] | None:
        """Return the expression that ``call`` compiles, with its settings, or None."""
        before = self.settings(call.func, scope, left)
        if before is None or self._module.qualify(call.func) in OPTIMIZE_FUNCTIONS:
            return None
        given = handed_over(call)
        settings = stated(call, before, scope)
        if given is None or settings is None or isinstance(given, ast.Constant):
            return None
        return given, replace(settings, line=call.lineno)


def stated(call: ast.Call, before: CompileSettings, scope: Scope) -> CompileSettings | None:
    """Return settings with the literals that a further call adds; None for ``disable=True``."""
    settings = before
    for keyword in call.keywords:
        given = literal(keyword.value, scope)
        if not isinstance(given, ast.Constant):
            continue
        value = given.value
        match keyword.arg:
            case "disable" if value is True:
                return None
            case "fullgraph" | "nopython" if value is True:
                settings = replace(settings, fullgraph=True)
            case "dynamic" if isinstance(value, bool):
                settings = replace(settings, dynamic=value)
    return settings
