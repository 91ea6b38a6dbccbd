"""Compiled code: which code counts as compiled, and what the messages and the option say."""

from __future__ import annotations

import pytest
from linting import COMPILED, COMPILING, HOT, check, findings, program, table

from flake8_torchperf.options import Options

WAYS_TO_COMPILE = {
    "decorator": """
        @torch.compile
        def f(x: Tensor):
            print("a")  # TPF601
        """,
    "decorator with options": """
        @torch.compile(dynamic=True, mode="max-autotune")
        def f(x: Tensor):
            print("a")  # TPF601
        """,
    "partial as a decorator": """
        @functools.partial(torch.compile, dynamic=True)
        def f(x: Tensor):
            print("a")  # TPF601
        """,
    "a name for the options": """
        fast = functools.partial(torch.compile, fullgraph=True)
        @fast
        def f(x: Tensor):
            print("a")  # TPF601
        @fast(dynamic=True)
        def g(x: Tensor):
            print("a")  # TPF601
        """,
    "another name of compile": """
        from torch import compile as tc
        @tc
        def f(x: Tensor):
            print("a")  # TPF601
        """,
    "the older name": """
        import torch._dynamo
        def f(x: Tensor):
            print("a")  # TPF601
        g = torch._dynamo.optimize("inductor")(f)
        """,
    "a decorator of one's own": """
        def lazily(fun):
            compiled = None
            @functools.wraps(fun)
            def wrapped(*args):
                nonlocal compiled
                if compiled is None:
                    compiled = torch.compile(fullgraph=False)(fun)
                return compiled(*args)
            return wrapped
        @lazily
        def f(x: Tensor):
            print("a")  # TPF601
        """,
    "a decorator of one's own that is a lambda": """
        fuse = lambda fun: torch.compile(fun)
        @fuse
        def f(x: Tensor):
            print("a")  # TPF601
        """,
    "a decorator of one's own with options": """
        def fast(dynamic=True):
            def decorate(fun):
                return torch.compile(fun, dynamic=dynamic)
            return decorate
        @fast(dynamic=False)
        def f(x: Tensor):
            print("a")  # TPF601
        """,
    "passed to a function that compiles it": """
        def maybe(fun):
            if time.time() < 0:
                return fun
            return torch.compile(fun)
        def f(x: Tensor):
            print("a")  # TPF601
        g = maybe(f)
        """,
    "passed to a method that compiles it": """
        class Agent:
            def __init__(self):
                self.fast = self.compiled(self.act)
            def compiled(self, fun):
                return torch.compile(fun)
            def act(self, x: Tensor):
                print("a")  # TPF601
        """,
    "a function of the module, anew": """
        def f(x: Tensor):
            print("a")  # TPF601
        def main():
            global f
            f = torch.compile(f)
        """,
    "a model that an annotation states": """
        class Net(nn.Module):
            def forward(self, x: Tensor):
                print("a")  # TPF601
        def prepare(net: Net):
            net.compile()
        """,
    "a model that a function makes": """
        class Net(nn.Module):
            def forward(self, x: Tensor):
                print("a")  # TPF601
        def made():
            return Net().to("cuda")
        fast = torch.compile(made())
        """,
    "one of several names assigned at once": """
        class Net(nn.Module):
            def forward(self, x: Tensor):
                print("a")  # TPF601
        net, rate = Net(), 0.1
        net.compile()
        """,
    "each of several modules in a row": """
        class One(nn.Module):
            def forward(self, x: Tensor):
                print("a")  # TPF601
        class Other(nn.Module):
            def forward(self, x: Tensor):
                print("b")  # TPF601
        for net in nn.ModuleList([One(), Other()]):
            net.compile()
        """,
    "what its own block assigned": """
        class One(nn.Module):
            def forward(self, x: Tensor):
                print("a")
        class Other(nn.Module):
            def forward(self, x: Tensor):
                print("b")  # TPF601
        def make(fast):
            if not fast:
                net = One()
            else:
                net = Other()
                net.compile()
            return net
        """,
    "what either block assigned": """
        class Other(nn.Module):
            def forward(self, x: Tensor):
                print("b")  # TPF601
        def make(fast, given):
            if fast:
                net = given
            else:
                net = Other()
            return torch.compile(net)
        """,
    "a parameter that is asked as a tensor is": """
        @torch.compile
        def top(x):
            a = x.abs()
            a = a[a != 0]  # TPF604
            return a.max()
        """,
    "passed to it": """
        def f(x: Tensor):
            print("a")  # TPF601
        g = torch.compile(f)
        """,
    "passed by keyword": """
        def f(x: Tensor):
            print("a")  # TPF601
        g = torch.compile(model=f)
        """,
    "a lambda": """
        g = torch.compile(lambda x: print("a"))  # TPF601
        """,
    "a nested function": """
        def make():
            def f(x: Tensor):
                print("a")  # TPF601
            return torch.compile(f)
        """,
    "a module": """
        class Net(nn.Module):
            def forward(self, x: Tensor):
                print("a")  # TPF601
        net = torch.compile(Net().cuda())
        """,
    "a module by its own method": """
        class Net(nn.Module):
            def forward(self, x: Tensor):
                print("a")  # TPF601
        def main():
            net = Net()
            net.compile()
        """,
    "an attribute's module": """
        class Net(nn.Module):
            def forward(self, x: Tensor):
                print("a")  # TPF601
        class Trainer:
            def __init__(self):
                self.net = Net()
                self.net.compile(fullgraph=True)
        """,
    "a bound method": """
        class Trainer:
            def __init__(self):
                self.fast = torch.compile(self.update)
            def update(self, x: Tensor):
                print("a")  # TPF601
        """,
    "what it calls": """
        @torch.compile
        def f(x: Tensor):
            return helper(x)
        def helper(x):
            return deeper(x)
        def deeper(x):
            print("a")  # TPF601
        """,
    "what a compiled module calls": """
        class Block(nn.Module):
            def forward(self, x):
                print("a")  # TPF601
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.blocks = nn.ModuleList([Block() for _ in range(3)])
            def forward(self, x: Tensor):
                for block in self.blocks:
                    x = block(x)
                return self.head(x)
            def head(self, x):
                print("a")  # TPF601
        net = torch.compile(Net())
        """,
    "in a conditional": """
        def f(x: Tensor):
            print("a")  # TPF601
        g = torch.compile(f) if torch.cuda.is_available() else f
        """,
    "in a module that imports dynamo": """
        from torch._dynamo import config
        @torch.compile
        def f(x: Tensor):
            print("a")  # TPF601
        """,
}

NOT_COMPILED = {
    "a plain forward": """
        class Net(nn.Module):
            def forward(self, x: Tensor):
                print("a")
        """,
    "switched off": """
        @torch.compile(disable=True)
        def f(x: Tensor):
            print("a")
        """,
    "kept out": """
        @torch.compile
        def f(x: Tensor):
            return shown(x)
        @torch.compiler.disable
        def shown(x):
            print("a")
            return x
        """,
    "kept out by the older name": """
        import torch._dynamo
        @torch.compile
        def f(x: Tensor):
            return shown(x)
        @torch._dynamo.disable()
        def shown(x):
            print("a")
            return x
        """,
    "a warning of misuse": """
        @torch.compile
        def f(x: Tensor, scale=None):
            if scale is not None:
                warnings.warn("scale is ignored")
            return x
        """,
    "a warning of a wrong type": """
        @torch.compile
        def f(x: Tensor, mask=None):
            if mask is not None and mask.dtype == torch.uint8:
                warnings.warn("bytes are deprecated", stacklevel=3)
                mask = mask.to(torch.bool)
            if isinstance(x, list):
                warnings.warn("a list is stacked")
                x = torch.stack(x)
            return x
        """,
    "after a guard": """
        @torch.compile
        def f(x: Tensor):
            if not torch.compiler.is_compiling() and x.sum() > 0:
                x = x + 1
            return x
        """,
    "under a guard": """
        @torch.compile
        def f(x: Tensor):
            if not torch.compiler.is_compiling():
                print("a")
                shown(x)
            return x
        def shown(x):
            print("a")
        """,
    "parameters that are asked as other things are": """
        @torch.compile
        def f(data, net, opt, n=1):
            if data["x"]:
                return data.sum()
            net.float()
            opt.zero_grad()
            if net or opt.abs() or n.abs():
                return 1
        def g(x):
            return x.abs()[x.abs() > 0]
        """,
    "a decorator that is switched off": """
        MODE = None
        def lazily(fun):
            def wrapped(*args):
                if MODE is None:
                    return fun(*args)
                return torch.compile(fun, mode=MODE)(*args)
            return wrapped
        @lazily
        def f(x: Tensor):
            print("a")
        """,
    "a decorator that compiles something else": """
        def logged(fun):
            other = torch.compile(torch.sin)
            return lambda x: fun(other(x))
        @logged
        def f(x: Tensor):
            print("a")
        """,
    "a local name that is compiled": """
        def f(x: Tensor):
            print("a")
        def main(f):
            f = torch.compile(f)
        """,
    "re.compile": """
        import re
        WORD = re.compile("a")
        def f(x: Tensor):
            print("a")
        """,
    "an unknown compile": """
        def f(x: Tensor, engine):
            engine.compile(f)
            print("a")
        """,
    "a class's constructor": """
        class State:
            def __init__(self):
                print("a")
        @torch.compile
        def f(x: Tensor):
            return x
        """,
}


@table({**WAYS_TO_COMPILE, **NOT_COMPILED})
def test_what_counts_as_compiled(code: str) -> None:
    check(code, prelude=COMPILING, only=COMPILED)


def test_option_counts_every_forward_as_compiled() -> None:
    source = program(NOT_COMPILED["a plain forward"], COMPILING)
    assert findings(source) == []
    (found,) = findings(source, Options(assume_compiled=True))
    assert "TPF601" in found


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("@torch.compile(fullgraph=True)\ndef f(x):\n    print(1)\n", "an error under fullgraph"),
        ("@torch.compile\ndef f(x):\n    print(1)\n", "breaks the graph of the compiled f;"),
        (
            "@torch.compile\ndef f(x):\n    g()\ndef g():\n    print(1)\n",
            "of g, called by the compiled f",
        ),
    ],
)
def test_message_says_what_is_compiled(code: str, words: str) -> None:
    (found,) = findings(program(code, COMPILING), HOT)
    assert words in found


@pytest.mark.parametrize("filename", ["conversion.py", "debug_report.py"])
def test_what_is_compiled_is_hot_whatever_its_place_is_for(filename: str) -> None:
    code = program(
        """
        @torch.compile
        def f(x: Tensor):
            return helper(x)
        def helper(x: Tensor):
            return x.sum().item()
        """,
        COMPILING,
    )
    assert [f.split()[1] for f in findings(code, filename=filename)] == ["TPF602"]
