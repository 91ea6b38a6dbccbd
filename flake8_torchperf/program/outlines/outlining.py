"""From the tree of a module to its outline."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from flake8_torchperf.program.outlines.nodes import nodes_of
from flake8_torchperf.program.outlines.outline import (
    ATTRIBUTE,
    FORMATTED,
    FUNCTION,
    KEY,
    NONE,
    OWNER,
    STARRED,
    TESTED,
    VALUE,
    Body,
    Class,
    Kind,
    Outline,
)
from flake8_torchperf.program.outlines.rows import (
    Rows,
    Waiting,
    built_text,
    formats_name,
    literal,
    names_bound,
    places,
)
from flake8_torchperf.syntax.names import dotted_name
from flake8_torchperf.syntax.traversal import ATTRIBUTE as ATTRIBUTE_NODE
from flake8_torchperf.syntax.traversal import CALL, CONSTANT, FUNCTIONS, NAME, children, once, walk

if TYPE_CHECKING:
    from collections.abc import Sequence


_Function: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef"
Callable_: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda"
# Expressions nested deeper than this are left out: nobody wrote them by hand.
MAX_DEPTH = 60
# And lambdas in lambdas.
MAX_LAMBDAS = 16
# Decorators of a method that runs when its name is read.
READ_DECORATORS = frozenset(("property", "cached_property", "abstractproperty"))
# Decorators of a method that runs when its name is assigned or deleted, with when it runs.
WRITE_DECORATORS = {"setter": "assigned", "deleter": "deleted"}
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
# Statements without others inside; most are of these types.
_SINGLE = frozenset((
    ast.Expr, ast.Assign, ast.Return, ast.AugAssign, ast.AnnAssign, ast.Raise, ast.Assert, ast.Pass,
    ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Delete, ast.Break, ast.Continue,
))  # fmt: skip
# Kinds that most nodes have: in Python 3.11, reading an attribute of an enum takes 100 ns.
_NAME: Final = Kind.NAME
_ATTRIBUTE: Final = Kind.ATTRIBUTE
_CALL: Final = Kind.CALL


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


class _Outliner(Rows):
    """Builds one outline, statement by statement."""

    def __init__(self) -> None:
        super().__init__()
        self._bodies: list[Body] = [Body("", "", 0, NONE, NONE, "called")]
        self._classes: list[Class] = []
        # Names that are bound with others, in words that list them.
        self._names: set[str] = set()
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
            inside = self._statement(node, body, owner)
            if inside:
                waiting += reversed(inside)
        for number in self._generators:
            if self._bodies[number].runs == "called":
                self._bodies[number] = self._bodies[number]._replace(runs="iterated")
        return Outline(
            tuple(self._bodies),
            tuple(self._classes),
            nodes_of(self.rows, self._names),
            self._imports,
            tuple(self._stars),
            tuple(self._again),
        )

    def _statement(
        self, node: ast.AST, body: int, owner: int
    ) -> Sequence[tuple[ast.AST, int, int]]:
        """Add a statement; returns those inside it, each with its body and its class."""
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            self._assignment(node, body, owner)
        elif isinstance(node, ast.Expr):
            self._root(Kind.USED, "", node.value, body)
        elif isinstance(node, ast.Return):
            if node.value is not None:
                self._root(Kind.RETURNED, "", node.value, body)
        elif isinstance(node, FUNCTIONS):
            number = self._function(node, body, owner)
            return [(one, number, NONE) for one in node.body]
        elif isinstance(node, ast.ClassDef):
            number = self._class(node, body, owner)
            return [(one, body, number) for one in node.body]
        else:
            self._further(node, body)
        if type(node) in _SINGLE:
            return ()
        return [(one, body, owner) for name in _BLOCKS for one in getattr(node, name, ())]

    def _further(self, node: ast.AST, body: int) -> None:
        """Add a statement of a rarer type, or a clause."""
        match node:
            case ast.If(test=test) | ast.While(test=test):
                self._root(Kind.USED, "", test, body, TESTED)
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
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                for name in names:
                    self.add(Kind.CHANGED, name, NONE, "", body, node)
            case ast.For() | ast.AsyncFor():
                self._rounds(node.target, node.iter, node.body[0], body)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    self._entered(item, body)
            case ast.ExceptHandler(name=str(name)):
                self.add(Kind.CHANGED, name, NONE, "", body, node)
                if node.type is not None:
                    self._root(Kind.USED, "", node.type, body)
            case ast.match_case(pattern=pattern, guard=guard):
                self._changed(pattern, body)
                if guard is not None:
                    self._root(Kind.USED, "", guard, body, TESTED)
            case _:
                for one in children(node):
                    if isinstance(one, ast.expr):
                        self._root(Kind.USED, "", one, body)

    def _import(self, name: str, source: tuple[int, str, str]) -> None:
        known = self._imports.setdefault(name, source)
        if known != source:
            self._again[name, source] = None

    def _function(self, node: _Function, body: int, owner: int) -> int:
        decorators = {dotted_name(one).rpartition(".")[2] for one in node.decorator_list}
        runs = "called" if READ_DECORATORS.isdisjoint(decorators) else "read"
        written = [when for word, when in WRITE_DECORATORS.items() if word in decorators]
        if owner >= 0 and written:
            runs = written[0]
        static = "staticmethod" in decorators
        methods = self._classes[owner].methods if owner >= 0 else {}
        getter = methods.get(node.name) if written else None
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
        positional = tuple([one.arg for one in (*args.posonlyargs, *args.args)])
        named = tuple([one.arg for one in args.kwonlyargs])
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
            number = self.add(Kind.OPERATION, word, NONE, "", body, node)
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
                root = self._root(Kind.PUT, literal(key), value, body, "", VALUE)
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

    def _changed(self, target: ast.expr | ast.pattern, body: int) -> None:
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
                    self.add(Kind.CHANGED, name, NONE, "", body, target)

    def _rounds(
        self, target: ast.expr, source: ast.expr, inside: ast.stmt | ast.expr, body: int
    ) -> None:
        """Add the loop over an iterable; its place is that of the first thing in the loop."""
        self._root(Kind.ITERATED, self._listed(target), source, body, at=inside)
        if not isinstance(target, ast.Name):
            self._changed(target, body)

    def _listed(self, *targets: ast.expr) -> str:
        """Return what targets bind as one word; see `Outline.unpacked`."""
        self._names.update(name for one in targets for name in names_bound(one))
        return ",".join(map(places, targets))

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
        at: ast.stmt | ast.expr | None = None,
    ) -> int:
        """Add a node without a parent, and its value; returns its number."""
        at = value if at is None else at
        number = len(self.rows)
        self.rows.append((kind, word, NONE, slot, body, at.lineno, at.col_offset))
        self.made_of.append(at)
        self._expression(value, number, inside, body, 0)
        return number

    def _expression(self, node: ast.expr, parent: int, slot: str, body: int, depth: int) -> None:
        """Add an expression below a parent.

        Names, attributes and calls, which are three in four, take no call of a method.
        """
        rows, made_of = self.rows, self.made_of
        waiting: list[Waiting] = [(node, parent, slot, depth)]
        while waiting:
            node, parent, slot, depth = waiting.pop()
            if isinstance(node, NAME):
                row = (_NAME, node.id, parent, slot, body, node.lineno, node.col_offset)
                rows.append(row)
                made_of.append(node)
            elif depth > MAX_DEPTH:
                self.unknown(parent, slot, body, node)
            elif isinstance(node, ATTRIBUTE_NODE):
                waiting.append((node.value, len(rows), OWNER, depth + 1))
                row = (_ATTRIBUTE, node.attr, parent, slot, body, node.lineno, node.col_offset)
                rows.append(row)
                made_of.append(node)
            elif isinstance(node, CALL) and not formats_name(node):
                number, depth = len(rows), depth + 1
                rows.append((_CALL, "", parent, slot, body, node.lineno, node.col_offset))
                made_of.append(node)
                for keyword in reversed(node.keywords):
                    waiting.append((keyword.value, number, keyword.arg or STARRED, depth))
                for position in range(len(node.args) - 1, -1, -1):
                    one = node.args[position]
                    where = STARRED if isinstance(one, ast.Starred) else str(position)
                    waiting.append((one, number, where, depth))
                waiting.append((node.func, number, FUNCTION, depth))
            elif isinstance(node, CONSTANT):
                self.constant(node.value, parent, slot, body, node)
            else:
                waiting += reversed(self._other(node, parent, slot, body, depth + 1))

    def _other(
        self, node: ast.expr, parent: int, slot: str, body: int, depth: int
    ) -> Sequence[Waiting]:
        """Add an expression; returns those inside it, each with its parent, slot and depth."""
        number = len(self.rows)
        if isinstance(node, (ast.JoinedStr, ast.BinOp, ast.Call)):
            name, parts = built_text(node)
            if name:
                self.add(Kind.BUILT, name, parent, slot, body, node)
                return [(one, number, str(place), depth) for place, one in enumerate(parts)]
        match node:
            case ast.Compare(left=left, ops=operators, comparators=compared):
                return self.operation(node, operators, [left, *compared], parent, slot, body, depth)
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):  # also ``A | None``
                self.add(Kind.EITHER, "", parent, slot, body, node)
                return (left, number, "0", depth), (right, number, "1", depth)
            case ast.BinOp(left=left, op=operator, right=right):
                return self.operation(node, [operator], [left, right], parent, slot, body, depth)
            case ast.Subscript(value=holder, slice=key):
                self.add(Kind.ITEM, literal(key), parent, slot, body, node)
                owner = holder, number, OWNER, depth
                return (owner,) if isinstance(key, CONSTANT) else (owner, (key, number, "", depth))
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                self.literal_value(repr(-value), parent, slot, body, node)
            case ast.UnaryOp(op=operator, operand=operand):
                return self.operation(node, [operator], [operand], parent, slot, body, depth)
            case ast.List(elts=values) | ast.Tuple(elts=values) | ast.Set(elts=values):
                self.add(Kind.GROUP, "", parent, slot, body, node)
                return [(one, number, str(place), depth) for place, one in enumerate(values)]
            case ast.BoolOp(values=values):
                self.add(Kind.EITHER, TESTED, parent, slot, body, node)
                return [(one, number, str(place), depth) for place, one in enumerate(values)]
            case ast.Dict(keys=keys, values=values):
                self.add(Kind.GROUP, "", parent, slot, body, node)
                words = [STARRED if key is None else literal(key) for key in keys]
                pairs = zip(values, words, strict=True)
                return [(one, number, word, depth) for one, word in pairs]
            case ast.IfExp(test=test, body=first, orelse=second):
                self.add(Kind.EITHER, "", parent, slot, body, node)
                self._root(Kind.USED, str(number), test, body, TESTED)
                return (first, number, "0", depth), (second, number, "1", depth)
            case ast.Await(value=value) | ast.Starred(value=value):
                self.add(Kind.PASSED, "", parent, slot, body, node)
                return ((value, number, VALUE, depth),)
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                self.add(Kind.PASSED, name, parent, slot, body, node)
                return ((value, number, VALUE, depth),)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return (self._comprehension(node, parent, slot, body, depth),)
            case _:
                self._with_roots(node, parent, slot, body, depth)
        return ()

    def _with_roots(self, node: ast.expr, parent: int, slot: str, body: int, depth: int) -> None:
        """Add an expression whose parts don't make its value, as far as nodes show it."""
        match node:
            case ast.Lambda(args=args, body=result) if self._lambdas < MAX_LAMBDAS:
                self._lambdas += 1
                inner = self._body(node, "<lambda>", body, NONE, "called", static=False)
                self.add(Kind.LAMBDA, str(inner), parent, slot, body, node)
                self._parameters(args, inner, body)
                self._root(Kind.RETURNED, "", result, inner)
                self._lambdas -= 1
            case ast.Lambda():
                self.unknown(parent, slot, body, node)
            case ast.Yield(value=value):
                self.unknown(parent, slot, body, node)
                self._generators.add(body)
                if value is not None:
                    self._root(Kind.YIELDED, "", value, body)
            case ast.YieldFrom(value=value):
                self.unknown(parent, slot, body, node)
                self._generators.add(body)
                self._root(Kind.YIELDED_FROM, "", value, body)
            case _:
                self.unknown(parent, slot, body, node)
                for inner_node in children(node):
                    if isinstance(inner_node, ast.expr):
                        slot = FORMATTED if isinstance(node, ast.FormattedValue) else ""
                        self._root_at(inner_node, body, depth, slot)

    def _root_at(self, node: ast.expr, body: int, depth: int, slot: str = "") -> None:
        """Add an expression whose value goes into one that nothing is known of."""
        if isinstance(node, ast.Constant):
            return
        number = self.add(Kind.USED, "", NONE, slot, body, node)
        self._expression(node, number, VALUE, body, depth)

    def _comprehension(
        self,
        node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp,
        parent: int,
        slot: str,
        body: int,
        depth: int,
    ) -> Waiting:
        """Add a comprehension; returns what each round gives."""
        element = node.value if isinstance(node, ast.DictComp) else node.elt
        number = self.add(Kind.ROUNDS, "", parent, slot, body, node)
        for one in node.generators:
            self._rounds(one.target, one.iter, element, body)
            for test in one.ifs:
                self._root_at(test, body, depth, TESTED)
        if isinstance(node, ast.DictComp):
            self._root_at(node.key, body, depth)
        return element, number, VALUE, depth
