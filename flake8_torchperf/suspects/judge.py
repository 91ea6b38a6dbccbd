"""Could anything in this function read a tensor? A cheap answer, wrong only towards yes.

Enters the ast of a function and facts of its module; leaves whether it holds a site whose operand
may be a tensor, what it returns and writes on `self`, and which functions it gives tensors.
Expressions evaluate to grades; one pass in program order, repeated only where a loop or a later use
brings news. Must not know libcst.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from flake8_torchperf.suspects import judge_calls
from flake8_torchperf.suspects.grades import (
    ANY,
    CPU,
    GROUP,
    GROUPS,
    HOST,
    ITEM,
    KNOWN,
    LIST,
    OBJECT,
    READ,
    ROLE,
    TENSOR,
    TENSORS,
    TORCH,
    TYPED,
    WEAK,
    element,
    has_items,
    holding,
    iterated,
    mapping,
    matters,
    parameters_in,
)
from flake8_torchperf.suspects.words import (
    HOST_ATTRIBUTES,
    TELLING,
    torch_words,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from flake8_torchperf.suspects.facts import ModuleFacts
    from flake8_torchperf.suspects.modulemap import ClassInfo

# Passes over a function before it is nominated for moving on and on.
MAX_PASSES = 4
PARAMETER_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Judge:
    """One function being judged."""

    __slots__ = (
        "again",
        "attributes",
        "deferred",
        "depth",
        "env",
        "ever",
        "evident",
        "facts",
        "found",
        "given_inside",
        "gives",
        "imports",
        "loops",
        "owner",
        "ranges",
        "read",
        "returns",
        "self_name",
        "shared",
        "start",
        "writes",
    )  # fmt: skip

    def __init__(self, facts: ModuleFacts, owner: ClassInfo | None, self_name: str) -> None:
        self.facts = facts
        self.owner = owner
        self.self_name = self_name
        self.found = False
        self.start: dict[str, int] = {}
        self.env: dict[str, int] = {}
        self.ever: dict[str, int] = {}
        self.read: dict[str, int] = {}
        self.writes: dict[str, int] = {}
        self.attributes: dict[str, int] = {}
        self.imports: dict[str, str] = {}
        self.gives: set[int] = set()
        self.given_inside: set[str] = set()
        self.shared: set[str] = set()
        self.ranges: set[str] = set()
        self.deferred: list[ast.FunctionDef | ast.AsyncFunctionDef] = []
        self.returns = 0
        self.evident = 0
        self.loops = 0
        self.depth = 0
        self.again = False

    def run(self, body: list[ast.stmt], parameters: dict[str, int]) -> None:
        """Judge a function's body, again where a loop or a later use brings news."""
        start = parameters
        for _ in range(MAX_PASSES):
            self.again = False
            known, inside = self.evident, len(self.given_inside)
            self.env = dict(start)
            self.ever = dict(start)
            self.read = {}
            self.block(body)
            self._nested()
            if self.again:
                start = {name: grade | start.get(name, 0) for name, grade in self.ever.items()}
            elif self.evident == known and len(self.given_inside) == inside:
                return
            if self.evident:
                start = {name: self._told(grade) for name, grade in start.items()}
        self.found = True

    def _told(self, grade: int) -> int:
        """Parameters that were used as tensors, or whose elements were, are taken for both."""
        return grade | ANY if parameters_in(grade) & self.evident else grade

    def _nested(self) -> None:
        """Nested functions, in the environment of everything ever bound around them."""
        while self.deferred:
            waiting, self.deferred = self.deferred, []
            self.depth += 1
            for node in waiting:
                self.env = dict(self.ever)
                extra = ANY if node.name in self.given_inside else 0
                for name, said in self.facts.declared(node, "", method=False).items():
                    grade = said | extra if said & ~KNOWN else said
                    self.env[name] = grade
                    self.ever[name] = self.ever.get(name, 0) | grade
                returns = self.returns
                self.block(node.body)
                self.returns = returns
            self.depth -= 1

    def hit(self) -> None:
        """A site."""
        self.found = True

    # -- statements ---------------------------------------------------------------------------

    def block(self, body: list[ast.stmt]) -> None:
        """Statements in order."""
        for statement in body:
            handler = STATEMENTS.get(statement.__class__)
            if handler is not None:
                handler(self, statement)

    def inside(self, body: list[ast.stmt]) -> None:
        """A block that may be left out or run again."""
        self.depth += 1
        self.block(body)
        self.depth -= 1

    def bind(self, target: ast.expr, grade: int, value: ast.expr | None = None) -> None:
        """Assign; a name that was read before with less known of it makes another pass."""
        kind = target.__class__
        if kind is ast.Name:
            self.bind_name(target.id, grade)  # type: ignore[attr-defined]
        elif kind is ast.Tuple or kind is ast.List:
            self._unpack(target, grade, value)  # type: ignore[arg-type]
        elif kind is ast.Attribute:
            self._bind_attribute(target, grade)  # type: ignore[arg-type]
        elif kind is ast.Subscript:
            self._bind_item(target, grade)  # type: ignore[arg-type]
        elif kind is ast.Starred:
            self.bind(target.value, holding(grade) | LIST)  # type: ignore[attr-defined]

    def bind_name(self, name: str, grade: int) -> None:
        """``name = ...``, or a dotted path."""
        before = self.env.get(name, 0)
        if self.depth:
            grade |= before
        if name in self.shared:
            grade |= self.ever.get(name, 0)
            self.again = self.again or bool(grade & ~self.ever.get(name, 0))
        self.env[name] = grade
        self.ever[name] = self.ever.get(name, 0) | grade
        if self.loops and name in self.read and grade & ~self.read[name]:
            self.again = True

    def widen(self, node: ast.expr, grade: int) -> None:
        """What is said of a place adds to what was known of it."""
        kind = node.__class__
        if kind is ast.NamedExpr:
            node = node.target  # type: ignore[attr-defined]
        elif kind is ast.Subscript and grade:
            self.widen(node.value, holding(grade))  # type: ignore[attr-defined]
            return
        path = path_of(node)
        if path and grade:
            self.bind_name(path, self.env.get(path, 0) | grade)
            head, _, attribute = path.partition(".")
            if attribute and head == self.self_name:
                self.write(attribute, grade)

    def write(self, attribute: str, grade: int) -> None:
        """``self.attribute = ...``."""
        self.writes[attribute] = self.writes.get(attribute, 0) | grade & KNOWN

    def _unpack(self, target: ast.Tuple | ast.List, grade: int, value: ast.expr | None) -> None:
        if grade & TENSOR:
            self.hit()
        if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
            grades = [self.grade(v) for v in value.elts]
            for one, given, node in zip(target.elts, grades, value.elts, strict=True):
                self.bind(one, given, node)
            return
        inner = element(grade)
        for one in target.elts:
            self.bind(one, inner)

    def _bind_attribute(self, target: ast.Attribute, grade: int) -> None:
        path = path_of(target)
        if not path:
            self.grade(target.value)
            return
        if self.depth and path not in self.env:
            grade |= self._attribute(target)  # what it was stays where this is not run
        self.bind_name(path, grade)
        head, _, attribute = path.partition(".")
        if head == self.self_name and "." not in attribute:
            self.write(attribute, grade)

    def _bind_item(self, target: ast.Subscript, grade: int) -> None:
        base = self.grade(target.value)
        self._index(base, target.slice)
        if not base & TENSOR and matters(grade):
            self.widen(target.value, mapping(grade) if _is_text(target.slice) else holding(grade))

    def _assign(self, node: ast.Assign) -> None:
        value = node.value
        grade = self.grade(value)
        if self.loops:
            self._in_loop(value, grade)
        for target in node.targets:
            self.bind(target, grade, value)

    def _in_loop(self, value: ast.expr, grade: int) -> None:
        """``x = torch.cat([x, y])`` and ``total = total + read``."""
        if isinstance(value, ast.Call):
            if judge_calls.grows(value):
                self.hit()
        elif grade & READ and isinstance(value, ast.BinOp):
            self.hit()

    def _ann_assign(self, node: ast.AnnAssign) -> None:
        said = self.facts.stated(node.annotation)
        grade = said or 0
        if node.value is not None:
            grade |= self.grade(node.value)
        self.bind(node.target, grade)

    def _aug_assign(self, node: ast.AugAssign) -> None:
        target = node.target
        left = self.grade(target)
        right = self.grade(node.value)
        if self.loops and (
            right & READ or (left & ROLE and isinstance(node.op, PARAMETER_OPERATORS))
        ):
            self.hit()
        grade = (left | right) & KNOWN
        if isinstance(target, ast.Subscript):
            self._index(self.grade(target.value), target.slice)
            if matters(grade):
                self.widen(target.value, holding(grade))
        else:
            self.widen(target, grade)

    def _for(self, node: ast.For | ast.AsyncFor) -> None:
        grade = self.grade(node.iter)
        if grade & TENSOR:
            self.hit()
        self.loops += 1
        self.depth += 1
        self._each(node.target, node.iter, grade)
        self.block(node.body)
        self.depth -= 1
        self.loops -= 1
        self.inside(node.orelse)

    def _each(self, target: ast.expr, over: ast.expr, grade: int) -> None:
        """Bind a loop's target; ``enumerate`` and ``zip`` give each of several its own."""
        if isinstance(over, ast.Call) and isinstance(over.func, ast.Name):
            called, parts = over.func.id, over.args
            if called == "range" and isinstance(target, ast.Name):
                self.ranges.add(target.id)
            if isinstance(target, ast.Tuple) and called not in self.env:
                if called == "enumerate" and len(target.elts) == 2 and parts:
                    self.bind(target.elts[0], 0)
                    self.bind(target.elts[1], iterated(self.grade(parts[0])))
                    return
                if called == "zip" and len(parts) == len(target.elts):
                    for one, part in zip(target.elts, parts, strict=True):
                        self.bind(one, iterated(self.grade(part)))
                    return
        self.bind(target, iterated(grade))

    def _while(self, node: ast.While) -> None:
        self.loops += 1
        self.test(node.test)
        self.inside(node.body)
        self.loops -= 1
        self.inside(node.orelse)

    def _if(self, node: ast.If) -> None:
        self.test(node.test)
        self.inside(node.body)
        if node.orelse:
            self.inside(node.orelse)

    def _assert(self, node: ast.Assert) -> None:
        self.test(node.test)
        if node.msg is not None:
            self.grade(node.msg)

    def _with(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            grade = self.grade(item.context_expr)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, grade)
        self.block(node.body)

    def _try(self, node: ast.Try) -> None:
        self.inside(node.body)
        for handler in node.handlers:
            self.inside(handler.body)
        self.inside(node.orelse)
        self.inside(node.finalbody)

    def _return(self, node: ast.Return) -> None:
        if node.value is not None:
            self.returns |= self.grade(node.value) & KNOWN

    def _expr(self, node: ast.Expr) -> None:
        if node.value.__class__ is not ast.Constant:
            self.grade(node.value)

    def _raise(self, node: ast.Raise) -> None:
        if node.exc is not None:
            self.grade(node.exc)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        self.imports.update(self.facts.imported(node))

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        said = self.facts.stated(node.returns)
        self.bind_name(node.name, OBJECT if said is None or said else 0)
        self.deferred.append(node)

    def _outer(self, node: ast.Nonlocal | ast.Global) -> None:
        self.shared.update(node.names)

    def _match(self, node: ast.Match) -> None:
        grade = self.grade(node.subject)
        if grade & TENSOR:
            self.hit()
        self.depth += 1
        for case in node.cases:
            for inner in ast.walk(case.pattern):
                name = getattr(inner, "name", None) or getattr(inner, "rest", None)
                if isinstance(name, str):
                    self.bind_name(name, ANY)
                if isinstance(inner, ast.MatchClass):
                    self.widen(node.subject, self.facts.stated(inner.cls) or 0)
            if case.guard is not None:
                self.test(case.guard)
            self.block(case.body)
        self.depth -= 1

    # -- expressions --------------------------------------------------------------------------

    def grade(self, node: ast.expr) -> int:
        """The grade of an expression."""
        handler = EXPRESSIONS.get(node.__class__)
        return 0 if handler is None else handler(self, node)

    def _constant(self, node: ast.Constant) -> int:
        value = node.value
        return CPU if value.__class__ is str and value.startswith("cpu") else 0

    def test(self, node: ast.expr) -> None:
        """Python asks for the truth of each part."""
        kind = node.__class__
        if kind is ast.BoolOp:
            for value in node.values:  # type: ignore[attr-defined]
                self.test(value)
        elif kind is ast.UnaryOp and node.op.__class__ is ast.Not:  # type: ignore[attr-defined]
            self.test(node.operand)  # type: ignore[attr-defined]
        elif self.grade(node) & TENSOR:
            self.hit()

    def _name(self, node: ast.Name) -> int:
        name = node.id
        grade = self.env.get(name)
        if grade is None:
            if name == self.self_name and self.owner is not None:
                return self.facts.world.typed(self.owner)
            target = self.imports.get(name)
            return self.facts.global_name(name) if target is None else self.facts.qualified(target)
        if self.loops:
            self.read[name] = self.read.get(name, grade) & grade
        return grade

    def _attribute(self, node: ast.Attribute) -> int:
        value, attr = node.value, node.attr
        if value.__class__ is ast.Name:
            owner: str = value.id
            path = f"{owner}.{attr}"
            known = self.env.get(path)
            if known is not None:
                if self.loops:
                    self.read[path] = self.read.get(path, known) & known
                return known | (self._own(attr) if owner == self.self_name and self.depth else 0)
            if owner == self.self_name and owner not in self.env:
                return self._own(attr)
            if owner not in self.env:
                target = self.import_of(owner)
                if target is not None:
                    return self.facts.qualified(f"{target}.{attr}")
        else:
            path = path_of(node)
            known = self.env.get(path) if path else None
            if known is not None:
                return known
            if path:
                head, _, rest = path.partition(".")
                target = None if head in self.env else self.import_of(head)
                if target is not None:
                    return self.facts.qualified(f"{target}.{rest}")
        return self.attribute_of(self.grade(value), attr)

    def import_of(self, name: str) -> str | None:
        """The dotted name that a name was imported as, here or at module level."""
        return self.imports.get(name) or self.facts.module.imports.get(name)

    def _own(self, attr: str) -> int:
        if self.owner is None:
            return 0
        if attr in HOST_ATTRIBUTES:
            return 0
        grade = self.facts.attribute(self.owner, attr)
        self.attributes[attr] = grade
        return grade

    def attribute_of(self, grade: int, attr: str) -> int:
        """``x.attr`` for an object of this grade."""
        if attr in TELLING:
            self.evident |= parameters_in(grade)
        if attr == "saved_tensors":
            return holding(TENSOR)
        if attr in HOST_ATTRIBUTES:
            return 0
        if attr == "param_groups":
            return GROUPS | holding(GROUP) if grade & (OBJECT | TORCH | TYPED) else 0
        found = 0
        if grade & OBJECT:
            found |= ANY
        if grade & (TENSOR | WEAK):
            found |= TENSOR | grade & HOST | (ROLE if attr in ("grad", "data") else 0)
        if has_items(grade):
            found |= element(grade) & KNOWN  # a named tuple's fields
        if grade & TORCH:
            words = torch_words()
            found |= words.attributes.get(attr, 0)
            if attr in ("weight", "bias"):
                found |= TENSOR | ROLE
            elif attr in words.members:
                found |= OBJECT
        if grade & TYPED:
            for info in self.facts.world.classes(grade):
                found |= self.facts.attribute(info, attr)
        return found

    def _call(self, node: ast.Call) -> int:
        return judge_calls.call(self, node)

    def _subscript(self, node: ast.Subscript) -> int:
        base = self.grade(node.value)
        index = node.slice
        if base & GROUP:
            named = isinstance(index, ast.Constant) and index.value == "params"
            return holding(TENSOR | ROLE) | LIST if named else element(base) & KNOWN & ~TENSOR
        self._index(base, index)
        if index.__class__ is ast.Slice:
            return base & KNOWN
        found = element(base)
        if index.__class__ is not ast.Constant:
            found &= KNOWN
        if base & OBJECT:
            found |= ANY
        if base & TYPED:
            found |= judge_calls.typed_method(self, base, "__getitem__", {})
        return found

    def _index(self, base: int, index: ast.expr) -> None:
        """Sites between the brackets: masks, 0-d tensors, slice bounds, lists of numbers."""
        kind = index.__class__
        if kind is ast.Constant:
            return
        if kind is ast.Slice:
            for bound in (index.lower, index.upper, index.step):  # type: ignore[attr-defined]
                if bound is not None and self.grade(bound) & TENSOR:
                    self.hit()
            return
        if kind is ast.Tuple:
            for part in index.elts:  # type: ignore[attr-defined]
                self._index(base, part)
            return
        grade = self.grade(index)
        tensor = base & (TENSOR | WEAK)
        if grade & TENSOR or (tensor and grade & LIST):
            self.hit()
        if tensor and kind is ast.Name and index.id in self.ranges:  # type: ignore[attr-defined]
            self.hit()

    def _compare(self, node: ast.Compare) -> int:
        left = self.grade(node.left)
        left_node: ast.expr = node.left
        result = 0
        for operator, right_node in zip(node.ops, node.comparators, strict=True):
            if result & TENSOR:
                self.hit()
            right = self.grade(right_node)
            kind = operator.__class__
            if kind is ast.In or kind is ast.NotIn:
                result = 0
                strings = _only_strings(right_node) or _is_text(left_node)
                if (not strings and (right & (TENSOR | ITEM) or left & TENSOR)) or (
                    _is_text(left_node) and right & TENSOR
                ):
                    self.hit()
            elif kind is ast.Is or kind is ast.IsNot:
                result = 0
            else:
                text = _is_text(left_node) or _is_text(right_node)
                result = 0 if text else (left | right) & (TENSOR | HOST)
                if kind is ast.Eq:
                    self._same_type(left_node, right_node)
            if kind is ast.Is:
                self._same_type(left_node, right_node)
            left, left_node = right, right_node
        return result

    def _same_type(self, left: ast.expr, right: ast.expr) -> None:
        """``type(x) is torch.Tensor``."""
        match left:
            case ast.Call(func=ast.Name(id="type"), args=[subject]):
                self.widen(subject, self.facts.stated(right) or 0)

    def _bool_op(self, node: ast.BoolOp) -> int:
        result = 0
        last = len(node.values) - 1
        for position, value in enumerate(node.values):
            grade = self.grade(value)
            if grade & TENSOR and position != last:
                self.hit()
            result |= grade
        return result

    def _unary(self, node: ast.UnaryOp) -> int:
        grade = self.grade(node.operand)
        if node.op.__class__ is ast.Not:
            if grade & TENSOR:
                self.hit()
            return 0
        return grade & KNOWN

    def _binary(self, node: ast.BinOp) -> int:
        left, right = self.grade(node.left), self.grade(node.right)
        if node.op.__class__ is ast.Mod and not left & TENSOR and right & TENSORS:
            self.hit()
        return (left | right) & KNOWN & ~ROLE

    def _if_exp(self, node: ast.IfExp) -> int:
        self.test(node.test)
        return self.grade(node.body) | self.grade(node.orelse)

    def _joined(self, node: ast.JoinedStr) -> int:
        for part in node.values:
            if part.__class__ is ast.FormattedValue:
                if self.grade(part.value) & TENSORS:
                    self.hit()
                if part.format_spec is not None:
                    self.grade(part.format_spec)
        return 0

    def _lambda(self, node: ast.Lambda) -> int:
        names = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        before = {name: self.env.get(name) for name in names}
        self.env.update(dict.fromkeys(names, ANY))
        self.grade(node.body)
        for name, grade in before.items():
            if grade is None:
                del self.env[name]
            else:
                self.env[name] = grade
        return OBJECT

    def _tuple(self, node: ast.Tuple | ast.Set) -> int:
        result = 0
        for item in node.elts:
            result |= self.grade(item)
        return holding(result)

    def _list(self, node: ast.List) -> int:
        result = 0
        for item in node.elts:
            result |= self.grade(item)
        return holding(result) | LIST

    def _dict(self, node: ast.Dict) -> int:
        result = keys = 0
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                result |= element(self.grade(value))
            else:
                keys |= matters(self.grade(key))
                result |= self.grade(value)
        return holding(result | keys) if keys else mapping(result)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> int:
        self._clauses(node.generators)
        result = holding(self.grade(node.elt))
        self._leave(node.generators)
        return result | LIST if node.__class__ is ast.ListComp else result

    def _dict_comprehension(self, node: ast.DictComp) -> int:
        self._clauses(node.generators)
        keys = matters(self.grade(node.key))
        result = self.grade(node.value)
        result = holding(result | keys) if keys else mapping(result)
        self._leave(node.generators)
        return result

    def _clauses(self, generators: list[ast.comprehension]) -> None:
        self.depth += 1
        for clause in generators:
            grade = self.grade(clause.iter)
            if grade & TENSOR:
                self.hit()
            self.loops += 1
            self._each(clause.target, clause.iter, grade)
            for condition in clause.ifs:
                self.test(condition)

    def _leave(self, generators: list[ast.comprehension]) -> None:
        self.loops -= len(generators)
        self.depth -= 1

    def _walrus(self, node: ast.NamedExpr) -> int:
        grade = self.grade(node.value)
        self.bind_name(node.target.id, grade)
        return grade

    def _starred(self, node: ast.Starred) -> int:
        grade = self.grade(node.value)
        if grade & TENSOR:
            self.hit()
        return element(grade)

    def _await(self, node: ast.Await) -> int:
        return self.grade(node.value)

    def _yield(self, node: ast.Yield) -> int:
        if node.value is not None:
            self.returns |= holding(self.grade(node.value)) & KNOWN
        return 0

    def _yield_from(self, node: ast.YieldFrom) -> int:
        grade = self.grade(node.value)
        if grade & TENSOR:
            self.hit()
        self.returns |= grade & KNOWN
        return 0


def path_of(node: ast.expr) -> str:
    """``a.b.c`` for a chain of names, "" for anything else."""
    kind = node.__class__
    if kind is ast.Name:
        return node.id  # type: ignore[attr-defined, no-any-return]
    if kind is ast.Attribute:
        head = path_of(node.value)  # type: ignore[attr-defined]
        return f"{head}.{node.attr}" if head else ""  # type: ignore[attr-defined]
    return ""


def _is_text(node: ast.expr) -> bool:
    return node.__class__ is ast.Constant and (node.value is None or isinstance(node.value, str))


def _only_strings(node: ast.expr) -> bool:
    return isinstance(node, (ast.Tuple, ast.List, ast.Set)) and all(map(_is_text, node.elts))


STATEMENTS: dict[type[ast.AST], Callable[[Judge, Any], None]] = {
    ast.Assign: Judge._assign,
    ast.AnnAssign: Judge._ann_assign,
    ast.AugAssign: Judge._aug_assign,
    ast.For: Judge._for,
    ast.AsyncFor: Judge._for,
    ast.While: Judge._while,
    ast.If: Judge._if,
    ast.Assert: Judge._assert,
    ast.With: Judge._with,
    ast.AsyncWith: Judge._with,
    ast.Try: Judge._try,
    ast.Return: Judge._return,
    ast.Expr: Judge._expr,
    ast.Raise: Judge._raise,
    ast.Import: Judge._import,
    ast.ImportFrom: Judge._import,
    ast.FunctionDef: Judge._function,
    ast.AsyncFunctionDef: Judge._function,
    ast.Match: Judge._match,
    ast.Nonlocal: Judge._outer,
    ast.Global: Judge._outer,
}
if hasattr(ast, "TryStar"):
    STATEMENTS[ast.TryStar] = Judge._try
EXPRESSIONS: dict[type[ast.AST], Callable[[Judge, Any], int]] = {
    ast.Name: Judge._name,
    ast.Constant: Judge._constant,
    ast.Attribute: Judge._attribute,
    ast.Call: Judge._call,
    ast.Subscript: Judge._subscript,
    ast.Compare: Judge._compare,
    ast.BoolOp: Judge._bool_op,
    ast.UnaryOp: Judge._unary,
    ast.BinOp: Judge._binary,
    ast.IfExp: Judge._if_exp,
    ast.JoinedStr: Judge._joined,
    ast.Lambda: Judge._lambda,
    ast.Tuple: Judge._tuple,
    ast.Set: Judge._tuple,
    ast.List: Judge._list,
    ast.Dict: Judge._dict,
    ast.ListComp: Judge._comprehension,
    ast.SetComp: Judge._comprehension,
    ast.GeneratorExp: Judge._comprehension,
    ast.DictComp: Judge._dict_comprehension,
    ast.NamedExpr: Judge._walrus,
    ast.Starred: Judge._starred,
    ast.Await: Judge._await,
    ast.Yield: Judge._yield,
    ast.YieldFrom: Judge._yield_from,
}
