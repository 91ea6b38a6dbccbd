"""A function is looked at however little it holds: one construct that a rule objects to is enough."""

import pytest
import test_interpreter_annotations
import test_interpreter_classes
import test_interpreter_containers
import test_interpreter_docstrings
import test_interpreter_flow
import test_interpreter_functions
import test_interpreter_host_values
import test_interpreter_methods
import test_interpreter_modules
import test_interpreter_narrowing
import test_interpreter_records
from linting import ALL, check, findings, program, table

from flake8_torchperf import linter
from flake8_torchperf.knowledge import call_waits
from flake8_torchperf.knowledge.table import load
from flake8_torchperf.suspects import words
from flake8_torchperf.suspects.nominate import Suspects

ALONE = {
    "a match": """
        def step(x: Tensor):
            match x.sum():  # TPF301
                case 0:
                    return 1
        """,
    "a guard": """
        def step(x: Tensor, n: int):
            match n:
                case 0 if x.sum() > 0:  # TPF301
                    return 1
        """,
    "a chained comparison": """
        def step(x: Tensor):
            return 0 < x.sum() < 1  # TPF304
        """,
    "not": """
        def step(x: Tensor):
            return not x  # TPF304
        """,
    "and": """
        def step(x: Tensor, y: Tensor):
            return x and y  # TPF304
        """,
    "membership": """
        def step(x: Tensor):
            return 3 in x  # TPF105
        """,
    "unpacking": """
        def step(xs: list[Tensor]):
            for x in xs:
                a, b = x.detach()  # TPF201
            return a
        """,
    "a starred argument": """
        def step(x: Tensor, f):
            return f(*x.detach())  # TPF201
        """,
    "a starred element": """
        def step(x: Tensor):
            return [*x.detach()]  # TPF201
        """,
    "yield from": """
        def step(x: Tensor):
            yield from x  # TPF201
        """,
    "the math module": """
        def step(x: Tensor):
            return math.sqrt(x.sum())  # TPF101
        """,
    "operator.index": """
        import operator

        def step(x: Tensor):
            return operator.index(x)  # TPF101
        """,
    "__complex__": """
        def step(x: Tensor):
            return x.__complex__()  # TPF101
        """,
    "a percent sign": """
        def step(x: Tensor):
            return "loss %s" % x  # TPF104
        """,
    "an f-string": """
        def step(x: Tensor):
            return f"loss {x}"  # TPF104
        """,
    "a slice bound": """
        def step(x: Tensor, n: Tensor):
            return x[:n]  # TPF107
        """,
    "an index into a list": """
        def step(xs: list[int], i: Tensor):
            return xs[i]  # TPF107
        """,
    "an index held in an attribute": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("i", torch.zeros((), dtype=torch.long))

            def forward(self, xs: list[int]):
                return xs[self.i]  # TPF107
        """,
    "a size": """
        def step(x: Tensor, n: Tensor):
            return torch.zeros(n, 3, device=x.device)  # TPF107
        """,
    "a size of a method": """
        def step(x: Tensor, n: Tensor):
            return x.new_zeros(n, 3)  # TPF107
        """,
    "arange": """
        def step(n: Tensor):
            return torch.arange(n)  # TPF107
        """,
    "alpha": """
        def step(x: Tensor, y: Tensor, lr: Tensor):
            return x.add_(y, alpha=lr)  # TPF107
        """,
    "value": """
        def step(x: Tensor, y: Tensor, lr: Tensor):
            return x.addcmul_(y, y, value=lr)  # TPF107
        """,
    "a conditional expression": """
        def step(x: Tensor):
            return 1 if x else 2  # TPF301
        """,
    "an assertion": """
        def step(x: Tensor):
            assert x.sum() > 0  # TPF303
        """,
    "a synchronisation": """
        def step():
            torch.cuda.synchronize()  # TPF106
        """,
    "an accelerator's synchronisation": """
        def step():
            torch.accelerator.synchronize()  # TPF106
        """,
    "an event": """
        def step(event: torch.cuda.Event):
            event.synchronize()  # TPF106
        """,
    "a barrier": """
        import torch.distributed as dist

        def step():
            dist.barrier()  # TPF106
        """,
    "a lambda in a default": """
        def step(x: Tensor):
            f = lambda y: y.item()  # TPF101
            return f(x)
        """,
    "a move of what a function makes": """
        def causal(n: int):
            return torch.tril(torch.ones(n, n))

        def step(x: Tensor):
            return x * causal(x.shape[1]).to(x.device)  # TPF501

        def same_step(x: Tensor):
            return x.masked_fill(causal(x.shape[1]).type_as(x) > 0, 0)  # TPF501
        """,
    "a move of what a method makes": """
        class Net(nn.Module):
            def causal(self, n: int):
                return torch.tril(torch.ones(n, n))

            def forward(self, x: Tensor):
                mask = self.causal(x.shape[1])
                return x * mask.to(x.device)  # TPF501
        """,
    "a move of what the module keeps": """
        TABLE = torch.linspace(0, 1, 1000)

        def step(x: Tensor):
            return x * TABLE.cuda()  # TPF501
        """,
    "a move of a part of what an object keeps": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.table = torch.linspace(0, 1, 1000)

            def forward(self, x: Tensor):
                return x + self.table[: x.shape[0]].to(x.device)  # TPF501
        """,
}


@table(ALONE)
def test_one_construct_is_enough(code: str) -> None:
    check(code, ALL)


MODULE_LEVEL = {
    "a statement": """
        x = torch.ones(3, device="cuda")
        print(x)  # TPF104
        """,
    "a loop": """
        x = torch.ones(3, device="cuda")
        for row in x:  # TPF201
            pass
        """,
    "under the main guard": """
        if __name__ == "__main__":
            x = torch.ones(3, device="cuda")
            x.item()  # TPF101
        """,
    "a class body": """
        class Settings:
            limit = torch.ones((), device="cuda").item()  # TPF101
        """,
}


@table(MODULE_LEVEL)
def test_module_level_is_cold_but_seen(code: str) -> None:
    check(code, ALL)


TABLES = [
    test_interpreter_annotations.ANNOTATIONS, test_interpreter_annotations.ALIASES,
    test_interpreter_annotations.EVIDENCE, test_interpreter_docstrings.DOCSTRINGS,
    test_interpreter_docstrings.RESULTS, test_interpreter_records.RECORDS,
    test_interpreter_modules.HOLDERS,
    test_interpreter_classes.ATTRIBUTES, test_interpreter_classes.SUBMODULES,
    test_interpreter_methods.METHODS, test_interpreter_methods.BASES,
    test_interpreter_containers.LISTS, test_interpreter_containers.DICTS,
    test_interpreter_containers.ITERATION, test_interpreter_containers.NAMED_TUPLES,
    test_interpreter_flow.NAMES, test_interpreter_functions.RETURNED,
    test_interpreter_functions.NESTED, test_interpreter_functions.MODULE_NAMES,
    test_interpreter_narrowing.ISINSTANCE, test_interpreter_narrowing.AND_OR,
    test_interpreter_host_values.MOVED,
]  # fmt: skip


@table({f"{i}, {name}": code for i, t in enumerate(TABLES) for name, code in t.items()})
def test_no_function_with_a_finding_is_left_out(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    nominated = findings(program(code), ALL)
    monkeypatch.setattr(
        linter,
        "nominate",
        lambda module, called: Suspects(tuple(module.defined), module_level=True),
    )
    assert nominated == findings(program(code), ALL)


def test_every_operation_that_waits_is_nominated_by_its_name() -> None:
    """A name that fails here belongs in `WAITING_CALLS`, in suspects/words.py."""
    known = load()
    nominating = {
        *call_waits.load().names, *words.WAITING_CALLS, *words.ARGUMENT_READERS,
        *words.NUMBER_TAKERS, *words.FILL_CALLS, *words.HOST_MADE, *words.MOVE_CALLS,
        *words.TRAINING,
    }  # fmt: skip
    functions = {name.rpartition(".")[2]: known.function(name) for name in known.function_names()}
    methods = {name: known.method(name) for name in known.method_names()}
    waiting = {
        name
        for name, op in [*functions.items(), *methods.items()]
        if op is not None and op.flags & {"h", "s"}
    }
    assert {"item", "nonzero", "bincount"} <= waiting
    # Operators and statements nominate by their syntax.
    assert {name for name in waiting - nominating if not name.startswith("__")} == set()
