"""From the tree of a module to its outline."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from flake8_torchperf.program.outlines.nodes import nodes_of
from flake8_torchperf.program.outlines.outline import (
    ATTRIBUTE,
    COMPARING,
    FUNCTION,
    KEY,
    NONE,
    OWNER,
    STARRED,
    VALUE,
    Body,
    Class,
    Kind,
    Outline,
)
from flake8_torchperf.syntax.names import dotted_name
from flake8_torchperf.syntax.traversal import children, once, walk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flake8_torchperf.program.outlines.nodes import Row

_Function: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef"
Callable_: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda"
# Expressions nested deeper than this are left out: nobody wrote them by hand.
MAX_DEPTH = 60
# And lambdas in lambdas.
MAX_LAMBDAS = 16
# Decorators of a method that runs when its name is read.
READ_DECORATORS = frozenset(("property", "cached_property", "abstractproperty"))
# Decorators of a method that runs when its name is assigned or deleted.
WRITE_DECORATORS = frozenset(("setter", "deleter"))
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


class Outlined(NamedTuple):
    """An outline with the ast of its nodes and of its bodies, the module level excepted."""

    outline: Outline
    nodes: list[ast.AST]
    functions: list[Callable_]


def outline_of(tree: ast.Module) -> Outline:
    """Return the outline of a module."""
    return outlined(tree).outline


@once
def outlined(tree: ast.Module) -> Outlined:
    """Return the outline of a module with what its nodes and bodies were made of."""
    outliner = _Outliner()
    return Outlined(outliner.outline(tree), outliner.made_of, outliner.functions)


class _Outliner:
    """Builds one outline, statement by statement."""

    def __init__(self) -> None:
        self._bodies: list[Body] = [Body("", "", 0, NONE, NONE, "called")]
        self._classes: list[Class] = []
        self._rows: list[Row] = []
        # Names that are bound with others, in words that list them.
        self._names: set[str] = set()
        self.made_of: list[ast.AST] = []
        self.functions: list[Callable_] = []
        self._imports: dict[str, tuple[int, str, str]] = {}
        self._again: dict[tuple[str, tuple[int, str, str]], None] = {}
        self._stars: dict[tuple[int, str], None] = {}
        # The bodies that yield.
        self._generators: set[int] = set()
        # How many lambdas are around the expression that is added.
        self._lambdas = 0

    def outline(self, tree: ast.Module) -> Outline:
        # Statements wait with the number of their body and of the class whose body they stand in.
        waiting: list[tuple[ast.AST, int, int]] = [(one, 0, NONE) for one in reversed(tree.body)]
        while waiting:
            node, body, owner = waiting.pop()
            waiting += reversed(self._statement(node, body, owner))
        for number in self._generators:
            if self._bodies[number].runs == "called":
                self._bodies[number] = self._bodies[number]._replace(runs="iterated")
        return Outline(
            tuple(self._bodies),
            tuple(self._classes),
            nodes_of(self._rows, self._names),
            self._imports,
            tuple(self._stars),
            tuple(self._again),
        )

    def _statement(self, node: ast.AST, body: int, owner: int) -> list[tuple[ast.AST, int, int]]:
        """Add a statement; returns those inside it, each with its body and its class."""
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                number = self._function(node, body, owner)
                return [(one, number, NONE) for one in node.body]
            case ast.ClassDef():
                number = self._class(node, body, owner)
                return [(one, body, number) for one in node.body]
            case ast.Import():
                for alias in node.names:
                    head = alias.name if alias.asname else alias.name.partition(".")[0]
                    self._import(alias.asname or head, (0, head, ""))
            case ast.ImportFrom():
                for alias in node.names:
                    if alias.name == "*":
                        self._stars[node.level, node.module or ""] = None
                    else:
                        found = (node.level, node.module or "", alias.name)
                        self._import(alias.asname or alias.name, found)
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                self._assignment(node, body, owner)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                for name in names:
                    self._add(Kind.CHANGED, name, NONE, "", body, node)
            case ast.For() | ast.AsyncFor():
                self._rounds(node.target, node.iter, node.body[0], body)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    self._entered(item, body)
            case ast.ExceptHandler(name=str(name)):
                self._add(Kind.CHANGED, name, NONE, "", body, node)
                if node.type is not None:
                    self._root(Kind.USED, "", node.type, body)
            case ast.match_case(pattern=pattern, guard=guard):
                self._changed(pattern, body)
                if guard is not None:
                    self._root(Kind.USED, "", guard, body)
            case ast.Return(value=value) if value is not None:
                self._root(Kind.RETURNED, "", value, body)
            case _:
                for one in children(node):
                    if isinstance(one, ast.expr):
                        self._root(Kind.USED, "", one, body)
        return [(one, body, owner) for name in _BLOCKS for one in getattr(node, name, ())]

    def _import(self, name: str, source: tuple[int, str, str]) -> None:
        known = self._imports.setdefault(name, source)
        if known != source:
            self._again[name, source] = None

    def _function(self, node: _Function, body: int, owner: int) -> int:
        decorators = {dotted_name(one).rpartition(".")[2] for one in node.decorator_list}
        runs = "called" if READ_DECORATORS.isdisjoint(decorators) else "read"
        static = "staticmethod" in decorators
        methods = self._classes[owner].methods if owner >= 0 else {}
        getter = None if decorators.isdisjoint(WRITE_DECORATORS) else methods.get(node.name)
        number = self._body(node, node.name, body, owner, runs, static=static)
        if getter is not None:
            methods[node.name] = getter
        for one in node.decorator_list:
            self._root(Kind.DECORATED, f"b{number}", one, body)
        if node.returns is not None:
            self._root(Kind.RESULT, str(number), node.returns, body)
        self._parameters(node.args, number, body)
        return number

    def _body(
        self, node: Callable_, name: str, outer: int, owner: int, runs: str, *, static: bool
    ) -> int:
        args = node.args
        number = len(self._bodies)
        around = self._bodies[outer].qualname
        if owner >= 0:
            qualname = f"{self._classes[owner].qualname}.{name}"
            self._classes[owner].methods[name] = number
        else:
            qualname = f"{around}.<locals>.{name}" if around else name
        positional = tuple(one.arg for one in (*args.posonlyargs, *args.args))
        named = tuple(one.arg for one in args.kwonlyargs)
        rest = (
            args.vararg.arg if args.vararg is not None else "",
            args.kwarg.arg if args.kwarg is not None else "",
        )
        self._bodies.append(
            Body(name, qualname, node.lineno, outer, owner, runs, positional, named, rest, static)
        )
        self.functions.append(node)
        return number

    def _parameters(self, args: ast.arguments, number: int, outer: int) -> None:
        """Add the defaults and annotations of a function's parameters."""
        every = [*args.posonlyargs, *args.args]
        given = every[len(every) - len(args.defaults) :]
        defaults = [*zip(given, args.defaults, strict=True)]
        defaults += [
            (one, value)
            for one, value in zip(args.kwonlyargs, args.kw_defaults, strict=True)
            if value is not None
        ]
        for one, value in defaults:
            self._root(Kind.DEFAULT, one.arg, value, outer, str(number))
        for one in (*every, *args.kwonlyargs):
            if one.annotation is not None:
                self._root(Kind.ANNOTATED, one.arg, one.annotation, outer, str(number))

    def _class(self, node: ast.ClassDef, body: int, owner: int) -> int:
        number = len(self._classes)
        around = self._classes[owner].qualname if owner >= 0 else self._bodies[body].qualname
        middle = "." if owner >= 0 else ".<locals>."
        qualname = f"{around}{middle}{node.name}" if around else node.name
        self._classes.append(Class(node.name, qualname, node.lineno, body, {}))
        for base in node.bases:
            self._root(Kind.BASE, str(number), base, body)
        for keyword in node.keywords:
            self._root(Kind.USED, "", keyword.value, body)
        for one in node.decorator_list:
            self._root(Kind.DECORATED, f"c{number}", one, body)
        return number

    def _assignment(
        self, node: ast.Assign | ast.AnnAssign | ast.AugAssign, body: int, owner: int
    ) -> None:
        value = node.value
        if isinstance(node, ast.AnnAssign):
            match node.target:
                case ast.Name(id=name) | ast.Attribute(attr=name):
                    slot = "" if isinstance(node.target, ast.Name) else ATTRIBUTE
                    slot = f"c{owner}" if owner >= 0 else slot
                    self._root(Kind.ANNOTATED, name, node.annotation, body, slot)
        if isinstance(node, ast.AugAssign):
            self._changed(node.target, body)
        if value is None:
            return
        if isinstance(node, ast.AugAssign):
            word = f"{type(node.op).__name__}="
            number = self._add(Kind.OPERATION, word, NONE, "", body, node)
            self._expression(node.target, number, "0", body, 0)
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            self._target(target, value, body, owner)

    def _target(self, target: ast.expr, value: ast.expr, body: int, owner: int) -> None:
        match target:
            case ast.Name(id=name) if owner >= 0:
                self._root(Kind.KEPT, name, value, body, f"c{owner}", VALUE)
            case ast.Name(id=name):
                self._root(Kind.BOUND, name, value, body)
            case ast.Attribute(value=holder, attr=name):
                root = self._root(Kind.KEPT, name, value, body, "", VALUE)
                self._expression(holder, root, OWNER, body, 0)
            case ast.Subscript(value=holder, slice=key):
                root = self._root(Kind.PUT, _literal(key), value, body, "", VALUE)
                self._expression(holder, root, OWNER, body, 0)
                if isinstance(key, ast.Name):
                    self._expression(key, root, KEY, body, 0)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                match value:
                    case ast.Tuple(elts=values) | ast.List(elts=values) if len(values) == len(
                        targets
                    ):
                        for one, part in zip(targets, values, strict=True):
                            self._target(one, part, body, owner)
                    case _:
                        self._root(Kind.UNPACKED, self._listed(*targets), value, body)
                        self._changed(target, body)
            case _:
                self._root(Kind.USED, "", value, body)
                self._changed(target, body)

    def _changed(self, target: ast.AST, body: int) -> None:
        """Add the names and attributes that are bound to what no node shows."""
        for one in walk([target]):
            match one:
                case (
                    ast.Name(id=name, ctx=ast.Store())
                    | ast.Attribute(attr=name, ctx=ast.Store())
                    | ast.MatchAs(name=str(name))
                    | ast.MatchStar(name=str(name))
                    | ast.MatchMapping(rest=str(name))
                ):
                    self._add(Kind.CHANGED, name, NONE, "", body, target)

    def _rounds(self, target: ast.expr, source: ast.expr, inside: ast.AST, body: int) -> None:
        """Add the loop over an iterable; its place is that of the first thing in the loop."""
        self._root(Kind.ITERATED, self._listed(target), source, body, at=inside)
        if not isinstance(target, ast.Name):
            self._changed(target, body)

    def _listed(self, *targets: ast.expr) -> str:
        """Return what targets bind as one word; see `Outline.unpacked`."""
        self._names.update(name for one in targets for name in _names(one))
        return ",".join(map(_places, targets))

    def _entered(self, item: ast.withitem, body: int) -> None:
        bound = item.optional_vars
        word = bound.id if isinstance(bound, ast.Name) else ""
        self._root(Kind.ENTERED, word, item.context_expr, body)
        if bound is not None and not word:
            self._changed(bound, body)

    def _root(
        self,
        kind: Kind,
        word: str,
        value: ast.expr,
        body: int,
        slot: str = "",
        inside: str = VALUE,
        at: ast.AST | None = None,
    ) -> int:
        number = self._add(kind, word, NONE, slot, body, value if at is None else at)
        self._expression(value, number, inside, body, 0)
        return number

    def _add(self, kind: Kind, word: str, parent: int, slot: str, body: int, node: ast.AST) -> int:
        line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
        self._rows.append((kind, word, parent, slot, body, line, column))
        self.made_of.append(node)
        return len(self._rows) - 1

    def _expression(self, node: ast.expr, parent: int, slot: str, body: int, depth: int) -> None:
        """Add an expression below a parent."""
        if type(node) is ast.Name:  # two in five of all expressions
            at = (Kind.NAME, node.id, parent, slot, body, node.lineno, node.col_offset)
            self._rows.append(at)
            self.made_of.append(node)
            return
        if depth > MAX_DEPTH:
            self._unknown(parent, slot, body, node)
            return
        depth += 1
        match node:
            case ast.Attribute(value=holder, attr=name):
                number = self._add(Kind.ATTRIBUTE, name, parent, slot, body, node)
                self._expression(holder, number, OWNER, body, depth)
            case ast.Call():
                self._call(node, parent, slot, body, depth)
            case ast.Subscript(value=holder, slice=key):
                number = self._add(Kind.ITEM, _literal(key), parent, slot, body, node)
                self._expression(holder, number, OWNER, body, depth)
                if not isinstance(key, ast.Constant):
                    self._expression(key, number, "", body, depth)
            case ast.Constant(value=str(text)):
                if text.isprintable() and len(text) < MAX_TEXT:
                    self._add(Kind.TEXT, text, parent, slot, body, node)
                else:
                    self._unknown(parent, slot, body, node)
            case ast.Constant(value=bool() | int() | float() | None as value):
                self._literal_value(repr(value), parent, slot, body, node)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                self._literal_value(repr(-value), parent, slot, body, node)
            case ast.Lambda(args=args, body=result):
                if self._lambdas >= MAX_LAMBDAS:
                    self._unknown(parent, slot, body, node)
                    return
                self._lambdas += 1
                inner = self._body(node, "<lambda>", body, NONE, "called", static=False)
                self._add(Kind.LAMBDA, str(inner), parent, slot, body, node)
                self._parameters(args, inner, body)
                self._root(Kind.RETURNED, "", result, inner)
                self._lambdas -= 1
            case _:
                self._other(node, parent, slot, body, depth)

    def _literal_value(self, word: str, parent: int, slot: str, body: int, node: ast.expr) -> None:
        """Add a literal value, unless it stands in a container: those may be long tables."""
        if self._rows[parent][0] not in (Kind.GROUP, Kind.ROUNDS):
            self._add(Kind.LITERAL, word, parent, slot, body, node)

    def _call(self, node: ast.Call, parent: int, slot: str, body: int, depth: int) -> None:
        number = self._add(Kind.CALL, "", parent, slot, body, node)
        self._expression(node.func, number, FUNCTION, body, depth)
        for position, one in enumerate(node.args):
            where = STARRED if isinstance(one, ast.Starred) else str(position)
            self._expression(one, number, where, body, depth)
        for keyword in node.keywords:
            self._expression(keyword.value, number, keyword.arg or STARRED, body, depth)

    def _other(self, node: ast.expr, parent: int, slot: str, body: int, depth: int) -> None:
        match node:
            case ast.List(elts=values) | ast.Tuple(elts=values) | ast.Set(elts=values):
                number = self._add(Kind.GROUP, "", parent, slot, body, node)
                for position, one in enumerate(values):
                    self._expression(one, number, str(position), body, depth)
            case ast.Dict(keys=keys, values=values):
                number = self._add(Kind.GROUP, "", parent, slot, body, node)
                for key, one in zip(keys, values, strict=True):
                    where = STARRED if key is None else _literal(key)
                    self._expression(one, number, where, body, depth)
            case ast.IfExp(test=test, body=first, orelse=second):
                number = self._add(Kind.EITHER, "", parent, slot, body, node)
                self._root(Kind.USED, str(number), test, body)
                self._expression(first, number, "0", body, depth)
                self._expression(second, number, "1", body, depth)
            case ast.BoolOp(values=values):
                number = self._add(Kind.EITHER, "", parent, slot, body, node)
                for position, one in enumerate(values):
                    self._expression(one, number, str(position), body, depth)
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):  # also ``A | None``
                number = self._add(Kind.EITHER, "", parent, slot, body, node)
                self._expression(left, number, "0", body, depth)
                self._expression(right, number, "1", body, depth)
            case ast.BinOp(left=left, op=operator, right=right):
                self._operation(node, [operator], [left, right], parent, slot, body, depth)
            case ast.UnaryOp(op=operator, operand=operand):
                self._operation(node, [operator], [operand], parent, slot, body, depth)
            case ast.Compare(left=left, ops=operators, comparators=compared):
                self._operation(node, operators, [left, *compared], parent, slot, body, depth)
            case ast.Await(value=value) | ast.Starred(value=value):
                number = self._add(Kind.PASSED, "", parent, slot, body, node)
                self._expression(value, number, VALUE, body, depth)
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                number = self._add(Kind.PASSED, name, parent, slot, body, node)
                self._expression(value, number, VALUE, body, depth)
            case ast.Yield(value=value):
                self._unknown(parent, slot, body, node)
                self._generators.add(body)
                if value is not None:
                    self._root(Kind.YIELDED, "", value, body)
            case ast.YieldFrom(value=value):
                self._unknown(parent, slot, body, node)
                self._generators.add(body)
                self._root(Kind.YIELDED_FROM, "", value, body)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                self._comprehension(node, parent, slot, body, depth)
            case _:
                self._unknown(parent, slot, body, node)
                for inner in children(node):
                    if isinstance(inner, ast.expr):
                        self._root_at(inner, body, depth)

    def _operation(
        self,
        node: ast.expr,
        operators: Sequence[ast.AST],
        operands: Sequence[ast.expr],
        parent: int,
        slot: str,
        body: int,
        depth: int,
    ) -> None:
        word = ",".join(type(one).__name__ for one in operators)
        number = self._add(Kind.OPERATION, word, parent, slot, body, node)
        for position, one in enumerate(operands):
            if word in COMPARING or not isinstance(one, ast.Constant):
                self._expression(one, number, str(position), body, depth)

    def _unknown(self, parent: int, slot: str, body: int, node: ast.expr) -> None:
        """Add an expression of which nothing is known, where that it stands there is of use."""
        if self._rows[parent][0] in (Kind.CALL, Kind.EITHER):
            self._add(Kind.OTHER, "", parent, slot, body, node)

    def _root_at(self, node: ast.expr, body: int, depth: int) -> None:
        """Add an expression whose value goes into one that nothing is known of."""
        if isinstance(node, ast.Constant):
            return
        number = self._add(Kind.USED, "", NONE, "", body, node)
        self._expression(node, number, VALUE, body, depth)

    def _comprehension(
        self,
        node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp,
        parent: int,
        slot: str,
        body: int,
        depth: int,
    ) -> None:
        element = node.value if isinstance(node, ast.DictComp) else node.elt
        number = self._add(Kind.ROUNDS, "", parent, slot, body, node)
        for one in node.generators:
            self._rounds(one.target, one.iter, element, body)
            for test in one.ifs:
                self._root_at(test, body, depth)
        if isinstance(node, ast.DictComp):
            self._root_at(node.key, body, depth)
        self._expression(element, number, VALUE, body, depth)


# Longer texts name nothing.
MAX_TEXT = 120


def _literal(key: ast.expr) -> str:
    """Return a literal key as text; "" for one that is made at run time."""
    return str(key.value) if isinstance(key, ast.Constant) else ""


def _places(target: ast.expr) -> str:
    """Return the names that a target binds, or an attribute with a dot in front."""
    match target:
        case ast.Attribute(value=ast.Name(), attr=name):
            return f".{name}"
    return " ".join(_names(target))


def _names(target: ast.expr) -> Sequence[str]:
    """Return the names that a target binds."""
    return [one.id for one in walk([target]) if isinstance(one, ast.Name)]
