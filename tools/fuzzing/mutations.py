"""Mutations of source text and of syntax trees: source in, another source out.

Text mutations give valid or broken Python; tree mutations always give valid Python, of kinds that
people do not write. The module does not know the linter.
"""

from __future__ import annotations

import ast
import io
import keyword
import random
import tokenize
import warnings
from collections.abc import Callable

NEWLINES = ("\r\n", "\r", "\n\n", "\\\n", "\f\n", "\x0b", "\u2028", ";")
FRAGMENTS = (
    "(", ")", "[", "]", "{", "}", ":", "=", ":=", "*", "**", "@", "->", "...", "'", '"""', "f'{",
    "}'", "#", "\\", ",", ".", "lambda ", "await ", "yield ", "not ", " if ", " else ", " for ",
    " in ", " is ", "async ", "def ", "class ", "del ", "global x", "nonlocal x", "return ",
    "import ", "from . import *", "match x:", "case _:", "with ", "try:", "except* E:", "\t", "\0",
    "\ufeff", "é", "𝔘", "0xF", "1e999", "0j", "None", "True", "__class__", "super()", "self",
    "torch.", ".item()", ".shape", "[0]", "[:, None]", ".cpu()", ".to('cuda')", "torch.Tensor",
)  # fmt: skip
NAMES = ("torch", "self", "x", "item", "nn", "Tensor", "cls", "range", "len", "super", "zip", "_")


def text_mutation(source: str, rng: random.Random) -> str:
    """Mutate the text one to three times: lines, tokens, indents, line ends."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        source = rng.choice(TEXT)(source, rng)
    return source


def _lines(source: str) -> list[str]:
    return source.splitlines(True) or [""]


def _span(rng: random.Random, size: int) -> tuple[int, int]:
    start = rng.randrange(size)
    return start, min(size, start + rng.choice((1, 1, 2, 5, 20)))


def delete(source: str, rng: random.Random) -> str:
    """Delete some lines."""
    lines = _lines(source)
    start, end = _span(rng, len(lines))
    return "".join(lines[:start] + lines[end:])


def swap(source: str, rng: random.Random) -> str:
    """Exchange two lines."""
    lines = _lines(source)
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return "".join(lines)


def repeat(source: str, rng: random.Random) -> str:
    """Repeat some lines elsewhere."""
    lines = _lines(source)
    start, end = _span(rng, len(lines))
    at = rng.randrange(len(lines))
    return "".join(lines[:at] + lines[start:end] * rng.choice((1, 1, 3)) + lines[at:])


def indent(source: str, rng: random.Random) -> str:
    """Indent some lines by more, by less, or by tabs."""
    lines = _lines(source)
    start, end = _span(rng, len(lines))
    extra = rng.choice((" ", "    ", "\t", "\f", "        ", ""))
    if extra:
        moved = [extra + line for line in lines[start:end]]
    else:
        moved = [line.removeprefix("    ") for line in lines[start:end]]
    return "".join(lines[:start] + moved + lines[end:])


def truncate(source: str, rng: random.Random) -> str:
    """Cut the text off somewhere, as an editor holds it while a line is typed."""
    return source[: rng.randrange(len(source) + 1)]


def insert(source: str, rng: random.Random) -> str:
    """Insert a piece of syntax somewhere."""
    at = rng.randrange(len(source) + 1)
    return source[:at] + rng.choice(FRAGMENTS) + source[at:]


def newline(source: str, rng: random.Random) -> str:
    """Change the end of one line, or of all lines."""
    made = rng.choice(NEWLINES)
    if rng.random() < 0.3:
        return source.replace("\n", made)
    lines = _lines(source)
    at = rng.randrange(len(lines))
    lines[at] = lines[at].rstrip("\n") + made
    return "".join(lines)


def tokens(source: str, rng: random.Random) -> str:
    """Delete or double one token, or exchange it for another of the same file."""
    try:
        found = list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (tokenize.TokenError, SyntaxError):
        return insert(source, rng)
    words = [one for one in found if one.string.strip()]
    if not words:
        return source
    chosen = rng.choice(words)
    same = [one.string for one in words if one.type == chosen.type]
    made = rng.choice(("", f"{chosen.string} {chosen.string}", rng.choice(same), rng.choice(same)))
    lines = source.split("\n")
    if chosen.start[0] != chosen.end[0] or chosen.start[0] > len(lines):
        return source
    line = lines[chosen.start[0] - 1]
    lines[chosen.start[0] - 1] = line[: chosen.start[1]] + made + line[chosen.end[1] :]
    return "\n".join(lines)


TEXT: tuple[Callable[[str, random.Random], str], ...] = (
    delete, swap, repeat, indent, truncate, insert, newline, tokens, tokens, tokens,
)  # fmt: skip


def tree_mutation(source: str, other: str, rng: random.Random) -> str | None:
    """Return a text with nodes exchanged, wrapped or taken from ``other``; None if that failed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree, donor = ast.parse(source), ast.parse(other)
            _type(tree, rng)
            for _ in range(rng.choice((1, 2, 4, 8))):
                _graft(tree, donor, rng)
            made = ast.unparse(ast.fix_missing_locations(tree))
            ast.parse(made)
    except (SyntaxError, ValueError, RecursionError, AttributeError, TypeError, KeyError):
        return None  # not a valid program: for example a call in place of a name
    return made


def _type(tree: ast.Module, rng: random.Random) -> None:
    """Annotate some parameters as tensors: the linter reports nothing about unknown values."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and node.arg not in ("self", "cls") and rng.random() < 0.4:
            node.annotation = ast.parse(rng.choice(TYPES), mode="eval").body


def _graft(tree: ast.Module, donor: ast.Module, rng: random.Random) -> None:
    """Replace a node by another of its kind."""
    sort: type[ast.AST] = rng.choice((ast.expr, ast.expr, ast.stmt))
    places = [
        (parent, name, index)
        for parent in ast.walk(tree)
        for name, value in ast.iter_fields(parent)
        for index, one in enumerate(value if isinstance(value, list) else [value])
        if isinstance(one, sort) and (name not in ("targets", "target") or rng.random() < 0.2)
    ]
    if not places:
        return
    parent, name, index = rng.choice(places)
    value = getattr(parent, name)
    old = value[index] if isinstance(value, list) else value
    pool = [one for one in ast.walk(rng.choice((tree, donor))) if isinstance(one, sort)]
    new = _copied(rng.choice(pool)) if pool and rng.random() < 0.6 else old
    if isinstance(new, ast.expr) and (new is old or rng.random() < 0.3):
        new = _wrapped(new, rng)
    elif isinstance(new, ast.stmt) and new is old:
        new = _nested(new, rng)
    if isinstance(value, list):
        value[index] = new
    else:
        setattr(parent, name, new)


def _copied(node: ast.AST) -> ast.AST:
    """Return a copy of a node: a tree that contains a node twice could become cyclic."""
    made = type(node)()
    for name, value in ast.iter_fields(node):
        if isinstance(value, list):
            copied: object = [_copied(v) if isinstance(v, ast.AST) else v for v in value]
        else:
            copied = _copied(value) if isinstance(value, ast.AST) else value
        setattr(made, name, copied)
    return made


TYPES = ("torch.Tensor", "torch.Tensor", "list[torch.Tensor]", "torch.nn.Module", "'Tensor | None'")
EXPRESSIONS = (
    "lambda: _", "lambda *a, k=_: (_, a)", "[_ for y in _ if _]", "{_: _ for y in range(3)}",
    "{**_, 'k': _}", "[*_, _]", "f'{_!r:>{_}} {_=}'", "(y := _)", "_ if _ else _", "not _", "-_",
    "await _", "(yield _)", "_[_]", "_[_:_:_, ..., None]", "_._torch", "_.item()", "_(*_, **_)",
    "_ and _ or _", "_ < _ <= _ is not _", "_ @ _", "torch.where(_, _, _)", "torch.stack([_, _])",
    "_.shape[0]", "len(_)", "range(_)", "zip(_, _)", "enumerate(_)", "(_ for y in _)", "float(_)",
    "isinstance(_, torch.Tensor)", "_ is None", "super().f(_)", "getattr(_, 'data')", "dict(a=_)",
    "sorted(_, key=lambda k: _)", "functools.partial(_, _)", "print(_)", "_.cuda().tolist()",
    "torch.tensor(_, device='cuda')", "'%s' % (_,)", "type(_)(_)", "map(_, _)", "_ in _", "1 << _",
)  # fmt: skip
STATEMENTS = tuple(
    text.strip("\n")
    for text in (
        """
for y in x:
    _
""",
        """
while x:
    _
    break
""",
        """
if x.any():
    _
else:
    _
""",
        """
try:
    _
except (A, B) as x:
    _
else:
    _
finally:
    _
""",
        """
with torch.no_grad() as x, y:
    _
""",
        """
def step(x: torch.Tensor, *y, k=1, **z):
    _
""",
        """
class A(B, metaclass=C):
    _
""",
        """
match x:
    case [y, *z] if x:
        _
    case A(k=1) | {"k": 2, **r}:
        _
    case _:
        pass
""",
        """
async def step(x):
    async for y in x:
        _
    async with x as y:
        _
""",
        """
@torch.compile
def forward(self, x):
    _
    return step(x)
""",
        """
if torch.is_tensor(x):
    _
elif x is None:
    return
""",
        """
for i in range(len(x)):
    _
    x[i] = i
else:
    del x
""",
    )
)


class _Fill(ast.NodeTransformer):
    """Puts a node where a template says ``_``."""

    def __init__(self, node: ast.AST) -> None:
        self.node = node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return _copied(self.node) if node.id == "_" else node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        if isinstance(self.node, ast.stmt) and ast.unparse(node) == "_":
            return _copied(self.node)
        return self.generic_visit(node)


def _wrapped(node: ast.expr, rng: random.Random) -> ast.AST:
    template = ast.parse(rng.choice(EXPRESSIONS), mode="eval").body
    made: ast.AST = _Fill(node).visit(template)
    return made


def _nested(node: ast.stmt, rng: random.Random) -> ast.AST:
    body = ast.parse(rng.choice(STATEMENTS)).body
    made: ast.AST = _Fill(node).visit(body[0])
    return made


def renamed(source: str, rng: random.Random) -> str:
    """Exchange names for torch's and for each other, so that a made-up module holds tensors."""
    try:
        found = list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (tokenize.TokenError, SyntaxError, IndentationError):
        return source
    chosen: dict[str, str] = {}
    lines = source.split("\n")
    for token in reversed(found):
        if token.type != tokenize.NAME or keyword.iskeyword(token.string):
            continue
        name = chosen.setdefault(token.string, rng.choice(NAMES))
        row = token.start[0] - 1
        lines[row] = lines[row][: token.start[1]] + name + lines[row][token.end[1] :]
    return "\n".join(lines)
