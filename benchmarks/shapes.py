"""Programs of any size, for `perf growth` to measure and for tests to count the work.

Takes a size; returns the text of a module. Each kind of program is made larger in one direction
only: more lines, terms, branches, or more of one thing in one function. The module does not know
the plugin.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from textwrap import indent

HEAD = "import torch\nfrom torch import nn\n\n\n"
# The code that a generated file repeats: one model with a training loop.
UNIT = '''\
class Net{i}(nn.Module):
    """A layer and a head."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.inner = nn.Linear(width, width)
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for row in x:
            if row.isnan().any():
                x = torch.where(x > 0, self.inner(x), x)
        return x * self.scale + helper{i}(x)


def helper{i}(x: torch.Tensor, rate: float = 0.5) -> torch.Tensor:
    total = 0.0
    for part in x.split(4):
        total += part.sum().item() * rate
    names = {{"a": 1, "b": 2, "c": [3, 4, 5]}}
    return x.clamp(min=total).to(torch.float32) + len(names)


def train_step{i}(net: Net{i}, batch: torch.Tensor, target: torch.Tensor) -> float:
    loss = (net(batch) - target).pow(2).mean()
    loss.backward()
    value = loss.item()
    return value + float(helper{i}(batch).sum())


'''
STEP = "def step(x: torch.Tensor, n: int):\n"
# Places for many repeated statements: the code before them, and their additional indentation.
PLACES = {
    "function": STEP,
    "loop": f"{STEP}    for row in x:\n    ",
    "training": f"{STEP}    for batch in loader:\n        loss = net(batch).sum()\n"
    "        loss.backward()\n        optimizer.step()\n    ",
    "cold": "def plot(x: torch.Tensor, n: int):\n",
}


@dataclass(frozen=True)
class Shape:
    """A kind of source: ``make`` gives it at a size, ``full`` is the size the issue asks for."""

    full: int
    make: Callable[[int], str]
    bound: str


def many_units(lines: int) -> str:
    """A file of that many lines: one model with its training step again and again."""
    count = lines // UNIT.count("\n")
    return HEAD + "".join(UNIT.format(i=i) for i in range(count))


def _terms(count: int) -> str:
    return HEAD + STEP + "    y = " + " + ".join(["x"] * count) + "\n    return y.item()\n"


def _calls(count: int) -> str:
    return HEAD + STEP + "    y = x" + ".abs()" * count + "\n    return y.item()\n"


def _branches(count: int) -> str:
    body = "".join(f"    if n == {i}:\n        x = x + {i}\n" for i in range(count))
    return HEAD + STEP + body + "    return x.item()\n"


def _elifs(count: int) -> str:
    body = "".join(f"    elif n == {i}:\n        x = x + {i}\n" for i in range(1, count))
    return HEAD + STEP + f"    if n == 0:\n        pass\n{body}    return x.item()\n"


def _loops(count: int) -> str:
    """Side by side where Python's parser allows no deeper nest (100 indents)."""
    lines, depth = [], 0
    for i in range(count):
        lines.append(f"{' ' * (depth + 1)}for r{i} in x:\n")
        depth = (depth + 1) % 90
        if depth == 0:
            lines.append(f"{' ' * 91}x = x + r{i}.item()\n")
    if depth:
        lines.append(f"{' ' * (depth + 1)}x = x + r{count - 1}.item()\n")
    return HEAD + STEP + "".join(lines) + " return x\n"


def _classes(count: int) -> str:
    """Each calls two others, round in a circle."""
    return HEAD + "".join(
        f"class A{i}(nn.Module):\n"
        f"    def __init__(self):\n        super().__init__()\n"
        f"        self.one = A{(i + 1) % count}()\n        self.two = A{(i * 7 + 3) % count}()\n\n"
        f"    def forward(self, x):\n        y = self.one(x) + self.two.forward(x)\n"
        f"        return y.item() if y.sum() > 0 else self.two(self.one(y))\n\n\n"
        for i in range(count)
    )


def _functions(count: int) -> str:
    """Each calls the next two: without summaries the calls would double at every step."""
    return HEAD + "".join(
        f"def step{i}(x: torch.Tensor):\n    y = step{(i + 1) % count}(x)\n"
        f"    return step{(i + 2) % count}(y) + y.sum().item()\n\n\n"
        for i in range(count)
    )


def _closures(count: int) -> str:
    """Nested functions that call themselves and each other in several places."""
    return HEAD + "".join(
        f"def outer{i}(x: torch.Tensor):\n"
        "    def walk(y):\n        if isinstance(y, list):\n"
        "            return [walk(z) for z in y] + [other(z) for z in y]\n"
        "        return walk(y[0]) if len(y) else other(y).item()\n\n"
        "    def other(y):\n        return walk(y) if y.any() else walk(other(y[1]))\n\n"
        "    return walk(x)\n\n\n"
        for i in range(count)
    )


def _bases(count: int) -> str:
    chain = "".join(f"class B{i + 1}(B{i}):\n    pass\n\n\n" for i in range(count))
    return (
        HEAD + "class B0(nn.Module):\n    x: torch.Tensor\n\n\n" + chain
        + f"class Net(B{count}):\n    def step(self):\n        return self.x.item()\n"
    )  # fmt: skip


def _names(count: int) -> str:
    """A table: one literal with that many entries, and a loop over it."""
    entries = "".join(f"    'key{i}': ({i}, 'text', [{i}, None]),\n" for i in range(count))
    return (
        HEAD + f"TABLE = {{\n{entries}}}\n\n\n" + STEP + "    return x[TABLE['key1'][0]].item()\n"
    )


def _body(line: str, before: str = "", after: str = "    return x\n") -> Callable[[int], str]:
    """One function that says the same line again and again, ``{i}`` counting them."""

    def make(count: int, place: str = "function") -> str:
        middle = "".join(f"    {line.format(i=i, j=i // 2)}\n" for i in range(count))
        around = PLACES[place]
        depth = around.rpartition("\n")[2]
        return HEAD + around.removesuffix(depth) + indent(before + middle, depth) + after

    return make


def _module(text: str, before: str = "", after: str = "") -> Callable[[int], str]:
    """A module that says the same again and again, ``{i}`` counting them."""

    def make(count: int) -> str:
        middle = "".join(text.format(i=i, j=i // 2) for i in range(count))
        return HEAD + before + middle + after

    return make


def _methods(count: int) -> str:
    """One class whose methods all write an attribute, and read one that another wrote."""
    methods = "".join(
        f"    def set{i}(self, x: torch.Tensor):\n        self.a{i} = x + self.a{i // 2}\n"
        f"        return self.a{i // 2}.item()\n\n"
        for i in range(count)
    )
    return HEAD + f"class Net(nn.Module):\n{methods}"


def _inheritors(count: int) -> str:
    """Classes that inherit many methods, which call one another ten in a row."""
    methods = "".join(
        f"    def m{i}(self, x):\n        self.a{i} = x\n"
        + (f"        return self.m{i + 1}(x) + {i}\n\n" if i % 10 else "        return x + 1\n\n")
        for i in range(count)
    )
    inheritors = "".join(
        f"\n\nclass Net{i}(Base):\n    def forward(self, x: torch.Tensor):\n"
        f"        return self.m{i}(x).item()\n"
        for i in range(count)
    )
    return f"{HEAD}class Base(nn.Module):\n{methods}{inheritors}"


def _layers(count: int) -> str:
    """Two functions in each layer, which call both of the layer below: 2 to the power of n ways."""
    layers = "".join(
        f"def _a{i + 1}(x):\n    return _a{i}(x) + _b{i}(x)\n\n\n"
        f"def _b{i + 1}(x):\n    return _b{i}(x) + _a{i}(x)\n\n\n"
        for i in range(count)
    )
    return (
        HEAD + "def _a0(x):\n    return torch.ones(3).cuda().item()\n\n\n"
        "def _b0(x):\n    return torch.zeros(3).cuda().item()\n\n\n" + layers
    )


def _compiled_body(count: int) -> str:
    made = _body("print(x); y{i} = x[{i}].item(); f = lambda: y{j}")(count)
    return made.replace("def step", "@torch.compile\ndef step")


def _chain(text: str, after: str, before: str = "") -> Callable[[int], str]:
    """Each names the one before, ``{k}``; the first names the one without a number."""

    def make(count: int) -> str:
        parts = [text.format(i=i, k=i - 1 if i else "") for i in range(count)]
        return HEAD + before + "".join(parts) + after.format(i=count - 1)

    return make


FIELDS = "\ndef step(a: A):\n    return a.a1.item() + a.a2.item()\n"
DOCUMENTED = '    """\n    return n1.item() + x.item()\n'
STEPS = "40,000 steps a function; each fact of a function is kept"
HELPER = "    return y1\n\n\ndef helper(x, n):\n    return x.item() + n\n"
HELPED = "def helper(x):\n    return x.item() if x.sum() > 0 else x.cpu()\n\n\n"
SHAPES = {
    "file": Shape(
        60_000, many_units, "functions are interpreted one by one, summaries once for each"
    ),
    "terms": Shape(3_000, _terms, "a chain to the left is folded in a loop, not by recursion"),
    "calls": Shape(900, _calls, "beyond 110 expressions in one another the inner ones are Unknown"),
    "branches": Shape(2_000, _branches, "40,000 steps a function; then all is Unknown"),
    "elifs": Shape(900, _elifs, "40,000 steps a function; then all is Unknown"),
    "loops": Shape(200, _loops, "a loop's body is run three times at most; 40,000 steps"),
    "classes": Shape(500, _classes, "calls are followed 5 deep and never into one that is running"),
    "functions": Shape(2_000, _functions, "one summary for each function and kind of arguments"),
    "closures": Shape(200, _closures, "a nested function is not called while it is running"),
    "bases": Shape(500, _bases, "classes are followed once each"),
    "names": Shape(20_000, _names, "40,000 steps a function, 2,000 a constant"),
    # Many of one thing in one function, class or module.
    "reads": Shape(2_000, _body("y{i} = x[{i}].item()"), STEPS),
    "copies": Shape(2_000, _body("y{i} = x[{i}].cpu()"), STEPS),
    "copies used": Shape(2_000, _body("y{i} = x.cpu().numpy(); use(y{i})"), STEPS),
    "copies of one": Shape(2_000, _body("y = x.cpu(); use(y)"), STEPS),
    "moves": Shape(2_000, _body("y{i} = torch.zeros({i}).to(x.device)"), STEPS),
    "moves of one": Shape(2_000, _body("y = torch.ones(n).to(x.device); z = torch.relu(y)"), STEPS),
    "masks": Shape(2_000, _body("x[x > {i}] = x[{i}]"), STEPS),
    "selections": Shape(2_000, _body("y{i} = x[x > {i}]"), STEPS),
    "tests": Shape(2_000, _body("if x.sum() > {i}: x = x + {i}"), STEPS),
    "asserts": Shape(2_000, _body("assert x.sum() > {i}, f'{{x}}'"), STEPS),
    "prints": Shape(2_000, _body("print(f'{{x}}', {i}, x.mean())"), STEPS),
    "logs": Shape(2_000, _body("log.info('%s', x.mean().item())"), STEPS),
    "given": Shape(2_000, _body("y{i} = x + {i}; use(y{i}.cpu(), y{j}.numpy())"), STEPS),
    "attributes": Shape(2_000, _body("n.a{i} = x + {i}; n.b{i} = n.a{j}.item()"), STEPS),
    "kept": Shape(2_000, _body("n.a{i} = torch.ones({i}); n.a{i} = n.a{i}.to(x.device)"), STEPS),
    "nested": Shape(
        1_000, _body("def f{i}(y): return y.item() + x.item()", after="    return f1(x)\n"), STEPS
    ),
    "lambdas": Shape(1_000, _body("f{i} = lambda y: y.item() + f{j}(x)", "    f0 = abs\n"), STEPS),
    "called": Shape(1_000, _body("y{i} = helper(x[{i}], {i}); z = x.item()", after=HELPER), STEPS),
    "kinds": Shape(900, _body("if isinstance(x, T{i}): x = x.to(n); y = x.item()"), STEPS),
    "kinds else": Shape(
        900,
        _body("elif isinstance(x, T{i}): y = x.item()", "    if n: pass\n"),
        STEPS,
    ),
    "nones": Shape(900, _body("if n.a{i} is not None: x = x + n.a{i} + x.item()"), STEPS),
    "loops in a row": Shape(900, _body("for r in x: x = x + r.item()"), STEPS),
    "comprehensions": Shape(900, _body("y{i} = [r.item() for r in x]"), STEPS),
    "sums": Shape(900, _body("total{i} += x.item(); losses.append(x)"), STEPS),
    "backwards": Shape(
        900, _body("loss{i} = x.sum(); loss{i}.backward(); y += loss{i}.item()"), STEPS
    ),
    "guards": Shape(900, _body("if n % {i} == 0: print(x.item())"), STEPS),
    "tries": Shape(900, _body("try: y = x.item()\n    except E{i}: y = x.cpu()"), STEPS),
    "withs": Shape(900, _body("with torch.no_grad(): y = x.item()"), STEPS),
    "returns": Shape(900, _body("if n == {i}: return x.item()"), STEPS),
    "dict": Shape(
        5_000, _body("    'k{i}': x[{i}].item(),", "    y = {\n", "    }\n    return y\n"), STEPS
    ),
    "list": Shape(
        5_000, _body("    x[{i}].item(),", "    y = [\n", "    ]\n    return y\n"), STEPS
    ),
    "arguments": Shape(
        5_000, _body("    a{i}=x[{i}].cpu(),", "    y = use(\n", "    )\n    return y\n"), STEPS
    ),
    "methods": Shape(1_000, _methods, "an attribute is looked up once for a class"),
    "inheritors": Shape(500, _inheritors, "a base's methods are summarised once"),
    "callers": Shape(
        2_000,
        _module("def step{i}(x):\n    return helper(x)\n\n\n", HELPED),
        "the calls of a function are listed once",
    ),
    "tensors called": Shape(
        2_000,
        _module("def step{i}(x: torch.Tensor):\n    return helper(x).item()\n\n\n", HELPED),
        "the calls of a function are listed once",
    ),
    "globals": Shape(
        2_000,
        _module("G{i} = torch.ones({i})\nprint(G{i}.item(), G{j}.cpu())\n"),
        "40,000 steps for the module's own statements",
    ),
    "constants": Shape(
        2_000,
        _module(
            "G{i} = G{j} + 1\ndef f{i}(x: torch.Tensor): return (x + G{i}).item()\n", "G = 1\n"
        ),
        "2,000 steps a constant",
    ),
    "chain of constants": Shape(
        2_000,
        _chain(
            "G{i} = G{k} + torch.ones(2)\n", "def f(x: torch.Tensor): return (x + G{i}).item()\n"
        ),
        "2,000 steps a constant",
    ),
    "chain of types": Shape(
        2_000,
        _chain("T{i} = Optional[T{k}]\n", "def f(x: T{i}): return x.item()\n"),
        "2,000 steps a constant",
    ),
    "chain of names": Shape(
        2_000,
        _chain("f{i} = f{k}\n", "def f(x: torch.Tensor): return f{i}(x).item()\n"),
        "2,000 steps a constant",
    ),
    "chain of functions": Shape(
        2_000,
        _chain("def f{i}(x: torch.Tensor):\n    return f{k}(x)\n", "print(f{i}(x).item())\n"),
        "calls are followed 5 deep",
    ),
    "chain of methods": Shape(
        2_000,
        _chain(
            "    def m{i}(self, x: torch.Tensor):\n        self.a{i} = self.m{k}(x)\n"
            "        return self.a{k}.item()\n",
            "    def forward(self, x):\n        return self.m{i}(x)\n",
            "class Net(nn.Module):\n",
        ),
        "calls are followed 5 deep",
    ),
    "chain of properties": Shape(
        2_000,
        _chain(
            "    @property\n    def p{i}(self): return self.p{k} + torch.ones(2)\n",
            "    def forward(self, x):\n        return self.p{i}.item()\n",
            "class Net(nn.Module):\n",
        ),
        "calls are followed 5 deep",
    ),
    "chain of attributes": Shape(
        2_000,
        _chain(
            "        self.a{i} = self.a{k}\n",
            "    def forward(self, x):\n        return self.a{i}.item()\n",
            "class Net(nn.Module):\n    def __init__(self):\n        self.a = torch.ones(2)\n",
        ),
        "each attribute of a class is looked up once",
    ),
    "layers": Shape(
        2_000, _layers, "what leads to a function is followed call by call, not way by way"
    ),
    "circles": Shape(
        2_000,
        _module(
            "def _f{i}(x):\n    for y in x: _f{j}(y)\n    return _g{i}(x)\n"
            "def _g{i}(x):\n    return _f{i}(x) + _g{j}(x).item()\n"
        ),
        "what leads to a function is followed call by call, not way by way",
    ),
    "chain of modules": Shape(
        2_000,
        _chain(
            "class M{i}(nn.Module):\n    def __init__(self):\n        self.a = M{k}()\n\n"
            "    def forward(self, x: torch.Tensor):\n        return self.a(x).item()\n",
            "",
        ),
        "calls are followed 5 deep",
    ),
    "chain of decorators": Shape(
        2_000,
        _chain("@f{k}\ndef f{i}(x: torch.Tensor):\n    return x.item()\n", ""),
        "calls are followed 5 deep",
    ),
    "chain of compilers": Shape(
        2_000,
        _chain(
            "def f{i}(g):\n    return f{k}(g)\n",
            "@f{i}\ndef f(x):\n    print(x)\n",
            "def f(g): return torch.compile(g)\n",
        ),
        "calls are followed 5 deep",
    ),
    "names of names": Shape(
        900, _body("y{i} = x.sum(); n = y{j} if n else y{i}; z{i} = n.item()"), STEPS
    ),
    "names in branches": Shape(1_500, _body("if n: y{i} = x.sum()"), STEPS),
    "one name": Shape(1_500, _module("g = g\n", "g = torch.compile\n", "g(g)\n"), STEPS),
    "matches": Shape(900, _body("match n:\n        case {i}: x = x + x.item()"), STEPS),
    "fields": Shape(
        2_000,
        _module("    a{i}: torch.Tensor\n", "@dataclass\nclass A:\n", FIELDS),
        "a class's fields are read once",
    ),
    "classes apart": Shape(
        1_000,
        _module("class A{i}:\n    def f(self, x: torch.Tensor): return x.item() + self.g(x)\n"),
        "functions are interpreted one by one",
    ),
    "documented": Shape(
        1_000,
        _body("n{i} (torch.Tensor): what", '    """Do.\n\n    Args:\n', DOCUMENTED),
        "a docstring is read once",
    ),
    "parameters": Shape(
        2_000,
        lambda count: (
            HEAD
            + f"def step({', '.join(f'a{i}: torch.Tensor' for i in range(count))}):\n"
            + "".join(f"    a{i}.item()\n" for i in range(count))
        ),
        STEPS,
    ),
    "imports": Shape(
        2_000,
        _module("from a.b{i} import c{i}\ndef f{i}(x: torch.Tensor): return c{i}(x).item()\n"),
        "each name is looked for once",
    ),
    "compiled": Shape(
        1_000,
        _module("@torch.compile\ndef f{i}(x):\n    print(x)\n    return f{j}(x).item()\n\n\n"),
        "the calls of a function are listed once",
    ),
    "compiled body": Shape(
        1_000,
        _compiled_body,
        STEPS,
    ),
}
