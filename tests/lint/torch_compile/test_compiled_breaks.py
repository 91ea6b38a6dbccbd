"""What ends the graph of compiled code or makes it compile again, and what does not."""

from __future__ import annotations

import pytest
import torch
from linting import ALL, COMPILED, COMPILING, check, table

BREAKS = {
    "text": """
        @torch.compile
        def f(x: Tensor):
            print(x.mean())  # TPF601
            logger.info("a")  # TPF601
            logging.warning("a %s", x)  # TPF601
            warnings.warn("a")  # TPF601
        """,
    "a branch that begins with a warning": """
        @torch.compile
        def f(x: Tensor):
            if x.shape[0] > 3:
                logger.warning("a long one")  # TPF601
                x = x * x.max().item()  # TPF602
            return x
        """,
    "reads": """
        @torch.compile
        def f(x: Tensor, layers: list):
            a = x.sum().item()  # TPF602
            b = float(x.sum())  # TPF602
            c = x.tolist()  # TPF602
            d = math.sqrt(x.sum())  # TPF602
            e = torch.equal(x, x)  # TPF602
            g = str(x)  # TPF602
            return x[: x.argmax()]  # TPF602
        """,
    "reads with fullgraph are captured": """
        @torch.compile(fullgraph=True)
        def f(x: Tensor):
            d = math.sqrt(x.sum())  # TPF602
            e = x.float().tolist()  # TPF602
            sizes = x.long().tolist()
            return x.nonzero() + float(x.sum()) + x.mean().item()
        """,
    "what the file switches on is captured": """
        torch._dynamo.config.capture_scalar_outputs = True
        torch._dynamo.config.capture_dynamic_output_shape_ops = True
        @torch.compile
        def f(x: Tensor):
            a = x.sum().item()
            return x[x > 0] * a
        """,
    "numpy round trips are traced": """
        @torch.compile
        def f(x: Tensor):
            y = x.numpy()
            return torch.from_numpy(np.exp(y))
        """,
    "branches": """
        @torch.compile
        def f(x: Tensor):
            if x.sum() > 0:  # TPF603
                x = -x
            y = 1 if x.any() else 2  # TPF603
            while x.sum() < 3:  # TPF603
                x = x + 1
            if x.shape[0] > 2 and x is not None:
                x = x + 1
            return x
        """,
    "assertions": """
        @torch.compile
        def f(x: Tensor):
            assert x.sum() > 0
            assert x.sum() > 0, "a literal"
            assert x.sum() > 0, f"of {x.shape}"  # TPF603
        """,
    "shapes": """
        @torch.compile
        def f(x: Tensor, labels: Tensor):
            a = x.nonzero()  # TPF604
            b = x[x > 0]  # TPF604
            c = torch.unique(x)  # TPF604
            d = nn.functional.one_hot(labels)  # TPF604
            x[x > 0] = 0
            return nn.functional.one_hot(labels, 10)
        """,
    "numpy": """
        @torch.compile
        def f(x: np.ndarray):
            a = x.astype(object)  # TPF604
            b = np.empty(3, dtype=str)  # TPF604
            c = np.isin(x, [1])  # TPF604
            return np.add(x, x, out=x)
        """,
    "the registry": """
        @torch.compile
        def f(x: Tensor, loss: Tensor):
            torch.manual_seed(0)  # TPF608
            y = copy.deepcopy(x)  # TPF608
            settings = copy.deepcopy({"a": 1})
            x.requires_grad_()  # TPF608
            y.requires_grad_()
            y.requires_grad_(False)
            y.requires_grad = True  # TPF608
            t = time.perf_counter()  # TPF608
            r = random.random()  # TPF608
            loss.backward()  # TPF608
            z = torch.ones(3, requires_grad=True)  # TPF608
        """,
    "a recurrent module": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.rnn = nn.LSTM(3, 3)
            def forward(self, x: Tensor):
                return self.rnn(x)  # TPF608
        net = torch.compile(Net())
        """,
}

AGAIN = {
    "in a loop": """
        def main(model, batches):
            for batch in batches:
                torch.compile(model)(batch)  # TPF605
        """,
    "layers by themselves": """
        def main(model):
            for i in range(3):
                model.layers[i] = torch.compile(model.layers[i])
            for layer in model.layers:
                layer.forward = torch.compile(layer.forward)
            for mode in ("default", "max-autotune"):
                fast = torch.compile(model, mode=mode)
        """,
    "at every step": """
        class Net(nn.Module):
            def forward(self, x: Tensor):
                fast = torch.compile(self.block)  # TPF605
                return fast(x)
        """,
    "on the first call only": """
        class Net(nn.Module):
            def forward(self, x: Tensor):
                if self.fast is None:
                    self.fast = torch.compile(self.block)
                return self.fast(x)
        """,
    "a counter that unrolls": """
        @torch.compile
        def steps(x, n):
            for _ in range(n):
                x = x + 1
            return x
        @torch.compile
        def scaled(x, n):
            return x * n
        def main(x: Tensor):
            for i in range(100):
                steps(x, i)  # TPF605
                scaled(x, i)
        """,
    "a counter that is static": """
        def scaled(x, n):
            return x * n
        fast = torch.compile(scaled, dynamic=False)
        def main(x: Tensor):
            for i in range(100):
                fast(x, i)  # TPF605
        """,
    "state outside": """
        seen = []
        count = 0
        @torch.compile
        def f(x: Tensor):
            global count
            count += 1  # TPF607
            seen.append(x)  # TPF607
            mine = []
            mine.append(x)
            return mine
        """,
    "a list that is cut": """
        seen = []
        @torch.compile
        def f(x: Tensor):
            seen.clear()
            seen.append(x)
        """,
    "a module's counter": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.calls = 0
                self.scale = 0.0
            def forward(self, x: Tensor):
                self.calls += 1  # TPF607
                self.scale += 0.5
                return x
        net = torch.compile(Net())
        """,
    "a closure's list": """
        def make():
            losses = []
            def f(x: Tensor):
                losses.append(x.sum())  # TPF607
            return torch.compile(f)
        """,
}

TRANSFORMS = {
    "over compiled code": """
        @torch.compile
        def f(x: Tensor):
            return x.sum()
        def g(x: Tensor):
            return grad(f)(x)  # TPF606
        """,
    "compiled outside": """
        def f(x: Tensor):
            return x.sum()
        @torch.compile
        def g(x: Tensor):
            return grad(f)(x)
        """,
    "rows that are read": """
        def f(row: Tensor):
            if row.sum() > 0:  # TPF606
                return row
            return row * row.max().item()  # TPF606
        def g(x: Tensor):
            return vmap(f)(x)
        """,
    "questions that are answered": """
        def f(row: Tensor):
            a = row.stride(), row.is_contiguous(), row.storage_offset()
            return row * row.data_ptr()  # TPF606
        def g(x: Tensor):
            return vmap(f)(x)
        """,
    "lambdas that are given rows": """
        def f(x: Tensor):
            a = vmap(lambda row: row.sum().item())(x)  # TPF606
            b = torch.vmap(lambda row: row[row > 0])(x)  # TPF606
            kept = torch.func.vmap(lambda row, other: row if row.any() else other)  # TPF606
            return a, b, kept(x, x), vmap(lambda row, other: row * other)(x, x)
        """,
    "what a transform leaks": """
        kept = []
        def f(row: Tensor):
            kept.append(row)  # TPF607
            return row
        def g(x: Tensor):
            return vmap(f)(x)
        """,
}

MOVED = """
    class Rotary(nn.Module):
        def __init__(self, n: int):
            super().__init__()
            self.freqs = torch.arange(n)
            self.register_buffer("angles", torch.arange(n))
        {compiled}
        def forward(self, x: Tensor):
            self.freqs = self.freqs.to(x.device)  # {code}
            self.angles = self.angles.to(x.device)
            return x * self.freqs * self.angles
    """


def test_what_is_kept_where_it_is_moved_is_moved_once_and_compiled_twice() -> None:
    check(MOVED.format(compiled="", code="of no cost by default"))
    check(MOVED.format(compiled="", code="TPF501"), ALL)
    check(MOVED.format(compiled="@torch.compile", code="TPF607"), prelude=COMPILING)


class Keeping(torch.nn.Module):
    """Holds a tensor that each call moves to where its input lies."""

    def __init__(self) -> None:
        super().__init__()
        self.freqs: torch.Tensor = torch.arange(4.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.freqs = self.freqs.to(x.device)
        return x * self.freqs


class Registering(Keeping):
    """Has it registered, and moved with the module."""

    def __init__(self) -> None:
        super().__init__()
        del self.freqs
        self.register_buffer("freqs", torch.arange(4.0))


@pytest.mark.parametrize(("made", "graphs"), [(Keeping, 2), (Registering, 1)])
def test_torch_compiles_again_for_what_was_moved(made: type[Keeping], graphs: int) -> None:
    from torch._dynamo.testing import CompileCounter  # seconds, in each worker that collects

    torch._dynamo.reset()
    counted = CompileCounter()
    net = torch.compile(made().to("meta"), backend=counted)
    for _ in range(4):
        net(torch.ones(4, device="meta"))
    assert counted.frame_count == graphs


@table({**BREAKS, **AGAIN, **TRANSFORMS})
def test_what_ends_a_graph(code: str) -> None:
    check(code, prelude=COMPILING, only=COMPILED)


@table({"reads": BREAKS["reads"], "branches": BREAKS["branches"], "shapes": BREAKS["shapes"]})
def test_one_cause_gives_one_finding(code: str) -> None:
    check(code, prelude=COMPILING)


def test_an_assertion_that_goes_into_the_graph_is_none_that_waits() -> None:
    code = """
        @torch.compile
        def f(x: Tensor):
            assert x.sum() > 0
            assert x.sum() > 0, "positive"
            assert x.sum() > 0, f"positive, not {x.shape}"  # TPF603
        def g(x: Tensor):
            assert x.sum() > 0  # TPF303
        """
    check(code, prelude=COMPILING)
