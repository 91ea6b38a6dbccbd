"""Where code stands: hot, in a loop or cold, what guards it, and one finding for one cause."""

import textwrap
from pathlib import Path

import pytest
from linting import ALL, HOT, LOOP, check, program, table

from flake8_torchperf.linter import lint
from flake8_torchperf.options import Options

HOT_PLACES = {
    "forward": """
        class Net(nn.Module):
            def forward(self, x: Tensor):
                return x.item()  # TPF101
        """,
    "steps and losses": """
        def training_step(self, batch: Tensor):
            return batch.item()  # TPF101

        def dice_loss(x: Tensor, y: Tensor):
            return (x - y).sum().item()  # TPF101
        """,
    "what a trainer of transformers or trl calls for each batch": """
        from trl import DPOTrainer

        class Preferences(DPOTrainer):
            def get_batch_loss_metrics(self, model, batch, train_eval="train"):
                rewards, _ = self.concatenated_forward(model, batch)
                return {"rewards": rewards.mean().item()}  # TPF101

            def concatenated_forward(self, model, batch: dict[str, Tensor]):
                out = model(**batch).logits.log_softmax(-1)
                return out, out[batch["labels"] > 0]  # TPF402
        """,
    "a helper that computes on what it is given": """
        def normalise(x: Tensor):
            return x / x.max().item()  # TPF101
        """,
    "compiled": """
        @torch.compile
        def work(n: int):
            return torch.ones(n, device="cuda").item()  # TPF602
        """,
    "a loop in a cold function": """
        def main():
            x = torch.ones(3, device="cuda")
            for i in range(3):
                x = x + 1
                print(x)  # TPF104
        """,
}


@table(HOT_PLACES)
def test_hot(code: str) -> None:
    check(code, HOT)
    check(code, ALL)


COLD_PLACES = {
    "__init__": """
        class Net(nn.Module):
            def __init__(self, w: Tensor):
                super().__init__()
                self.limit = w.max().item()  # TPF101
        """,
    "repr and checkpointing": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = nn.Parameter(torch.ones(1))

            def extra_repr(self) -> str:
                return f"{self.scale}"  # TPF104

            def __repr__(self):
                return str(self.scale.sum())  # TPF104

        def save_checkpoint(x: Tensor):
            return x.cpu()  # TPF102
        """,
    "module level": """
        x = torch.ones(3, device="cuda")
        print(x.sum())  # TPF104
        """,
    "main": """
        def main():
            x = torch.ones(3, device="cuda")
            print(x.sum().item())  # TPF101
        """,
    "a test": """
        def test_sum():
            x = torch.ones(3, device="cuda")
            assert x.sum() == 3  # TPF303
        """,
    "an error's message": """
        def step(x: Tensor, n: int):
            if n > x.dim():
                raise ValueError(f"no dimension {n} in {x}")  # TPF104
            return x
        """,
    "an except clause": """
        def step(x: Tensor):
            try:
                return x @ x
            except RuntimeError:
                print(x)  # TPF104
                raise
        """,
}


@table(COLD_PLACES)
def test_cold_is_reported_on_request(code: str) -> None:
    check(code, ALL)
    assert lint(program(code), "model.py", HOT) == []
    assert lint(program(code), "model.py", LOOP) == []


LOOPS_ONLY = {
    "in a loop and outside": """
        def step(xs: list[Tensor], y: Tensor):
            for x in xs:
                x.item()  # TPF101
            return y.item()
        """,
    "a while loop": """
        def step(x: Tensor, n: int):
            while n > 0:
                n -= 1
                if x.sum() > n:  # TPF301
                    break
        """,
    "what the loop runs over is read once": """
        def step(x: Tensor):
            for v in x.tolist():
                print(v)
        """,
    "else of a loop runs once": """
        def step(x: Tensor, n: int):
            for i in range(n):
                pass
            else:
                x.item()
        """,
    "a comprehension is a loop": """
        def step(xs: list[Tensor]):
            return [x.item() for x in xs]  # TPF101
        """,
    "a function defined in a loop": """
        def step(xs: list[Tensor]):
            for x in xs:
                def read(y: Tensor):
                    return y.item()  # TPF101
                read(x)
        """,
}


@table(LOOPS_ONLY)
def test_scope_loop(code: str) -> None:
    check(code, LOOP)


GUARDS = {
    "every so many steps": """
        def step(x: Tensor, i: int, every: int):
            if i % every == 0:
                print(x.item())
            if (i + 1) % 100 == 0 and every:
                print(x)
            if not i % every:
                print(f"{x}")
        """,
    "in a training loop": """
        def train(batches: list[Tensor], log_every: int):
            for i, x in enumerate(batches):
                if i % log_every == 0:
                    print(f"loss {x.sum().item()}")
        """,
    "not while compiling": """
        def step(x: Tensor):
            if not torch.compiler.is_compiling():
                assert x.sum() > 0
            if torch.jit.is_scripting() or torch.jit.is_tracing():
                return x.item()
            return x
        """,
    "where there is no device": """
        def step(x: Tensor, device: torch.device, n: int):
            if device.type == "cuda":
                y = x.item()  # TPF101
            else:
                y = x.item()
            if device.type != "cpu":
                y = x.item()  # TPF101
            if x.is_cuda:
                y = x.item()  # TPF101
            else:
                y = x.item()
            if device.type == "mps":
                y = x.item()  # TPF101
            else:
                y = x.item()  # TPF101
            if torch.cuda.is_available() and n:
                y = x.item()  # TPF101
            else:
                y = x.item()  # TPF101
            return y
        """,
    "debugging": """
        DEBUG = False

        def step(x: Tensor, debug: bool = False):
            if DEBUG:
                print(x)
            if __debug__ and debug:
                assert x.sum() > 0
        """,
    "a modulus of something else is no guard": """
        def step(x: Tensor, n: int):
            if x.shape[0] % 2 == 0:
                return x.item()  # TPF101
        """,
    "the other side of a guard": """
        def step(x: Tensor, i: int, every: int):
            if i % every == 0:
                print(x)
            else:
                print(x.sum())  # TPF104
        """,
    "a log level": """
        import logging

        log = logging.getLogger(__name__)

        def step(x: Tensor):
            if log.isEnabledFor(logging.DEBUG):
                log.debug("x is %s", x)
            log.info("x is %s", x)  # TPF104
        """,
    "never true": """
        def step(x: Tensor):
            if False:
                x.item()
            if 0:
                print(x)
        """,
    "after a return": """
        def step(x: Tensor):
            return x
            x.item()
        """,
    "typing only": """
        from typing import TYPE_CHECKING

        def step(x: Tensor):
            if TYPE_CHECKING:
                print(x)
            return x
        """,
}


@table(GUARDS)
def test_guards(code: str) -> None:
    check(code)


ONE_CAUSE = {
    "a test on what was read": """
        def step(x: Tensor):
            if x.any().item():  # TPF101
                return 1
        """,
    "a read within a read": """
        def step(x: Tensor):
            return float(x.item()) + int(x.sum().cpu().item())  # TPF101, TPF102
        """,
    "a printed read": """
        def step(x: Tensor):
            print(f"loss {x.item():.3f}")  # TPF101
        """,
    "a formatted and printed tensor": """
        def step(x: Tensor):
            print(f"loss {x}")  # TPF104
            print("loss {}".format(x))  # TPF104
            print(str(x))  # TPF104
        """,
    "a chain to the host": """
        def step(x: Tensor):
            return x.detach().cpu().float().tolist()  # TPF102
        """,
    "not in a test": """
        def step(x: Tensor):
            if not x.any():  # TPF301
                return 1
            while not (x > 0).all():  # TPF302
                x = x + 1
            assert not x.isnan().any()  # TPF303
        """,
    "and within a test": """
        def step(x: Tensor, flag: bool):
            if flag and x.any():  # TPF301
                return 1
        """,
    "a comparison within bool": """
        def step(x: Tensor):
            if bool((x > 0).all()):  # TPF101
                return 1
        """,
    "a non-finite check in a loop": """
        def step(xs: list[Tensor]):
            for x in xs:
                if torch.isnan(x).any():  # TPF203
                    return True
                if x.isinf().any().item():  # TPF203
                    return True
        """,
    "a non-finite check outside one": """
        def step(x: Tensor):
            if torch.isnan(x).any():  # TPF301
                return True
        """,
    "a running total": """
        def step(xs: list[Tensor]):
            total = 0.0
            for x in xs:
                total += x.item()  # TPF206
            return total
        """,
    "a running total of floats": """
        def step(xs: list[Tensor]):
            total = 0.0
            for x in xs:
                total = total + float(x) * len(xs)  # TPF206
            return total
        """,
    "sum over a tensor": """
        def step(x: Tensor):
            return sum(x)  # TPF201
        """,
    "a tensor grown": """
        def step(xs: list[Tensor]):
            out = xs[0]
            for x in xs:
                out = torch.cat([out, x])  # TPF205
            return out
        """,
    "a tensor joined once": """
        def step(xs: list[Tensor]):
            rows = []
            for x in xs:
                rows.append(x * 2)
            return torch.cat(rows)
        """,
    "an index loop with reads": """
        def step(x: Tensor):
            for i in range(x.shape[0]):  # TPF202
                if x[i] > 0:  # TPF301
                    return i
        """,
    "comparisons of sizes in an index loop": """
        def step(x: Tensor, y: Tensor):
            for i in range(x.shape[0]):  # TPF202
                y = y + x[i] * (i + 1 < x.shape[0])
            return y
        """,
}


@table(ONE_CAUSE)
def test_one_finding_for_one_cause(code: str) -> None:
    check(code)


def test_names_that_the_user_calls_hot_or_cold() -> None:
    code = """
        def execute_model():
            return torch.ones(3, device="cuda").item()  # TPF101

        def other():
            return torch.ones(3, device="cuda").item()
        """
    check(code, Options(hot=("execute_model",)))
    check(code.replace("  # TPF101", ""), Options())
    forward = """
        def forward(x: Tensor):
            return x.item()
        """
    check(forward, Options(cold=("forward",)))


METHODS = """
    class Engine:
        def decode_one(self):
            def inner():
                return torch.ones(3, device="cuda").item()  # TPF101
            return torch.ones(3, device="cuda").item()  # TPF101

    class Other:
        def decode_one(self):
            return torch.ones(3, device="cuda").item()

    def decode_one():
        return torch.ones(3, device="cuda").item()

    class Trainer:
        def train_step(self, x: Tensor):
            return x.item()

    class Tuner:
        def train_step(self, x: Tensor):
            return x.item()  # TPF101
    """


@pytest.mark.parametrize("glob", ["Engine.decode_*", "Engine.decode_one", "Eng*.d*_one"])
def test_methods_that_the_user_names_with_their_class(glob: str) -> None:
    check(METHODS, Options(hot=(glob,), cold=("Trainer.*",)))


def test_a_class_that_the_user_calls_hot_in_a_cold_module(tmp_path: Path) -> None:
    path = tmp_path / "test_engine.py"
    code = f"import torch\nfrom torch import Tensor\n{textwrap.dedent(METHODS)}"
    path.write_text(code)
    assert not lint(code, str(path), Options())
    (found,) = lint(code, str(path), Options(hot=("Tuner.*",)))
    assert code.splitlines()[found.line - 1].endswith("return x.item()  # TPF101")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("def step(x: Tensor):\n    return x.item()\n", "annotation of parameter `x`, line 7"),
        (
            "def step(x):\n    if torch.is_tensor(x):\n        return x.item()\n",
            "isinstance test of `x`, line 8",
        ),
    ],
)
def test_the_reason_is_told_on_request(code: str, words: str) -> None:
    (finding,) = lint(program("\n" + code), "model.py", Options(explain=True))
    assert words in finding.message
    (silent,) = lint(program("\n" + code), "model.py", Options())
    assert words not in silent.message


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("def step(x: Tensor):\n    x.item()\n", "per step (a step by name)"),
        (
            "def f(xs: list[Tensor]):\n    for x in xs:\n        x.item()\n",
            "per step (loop at line 8)",
        ),
        (
            "def f(x: Tensor):\n    return x.item()\n",
            "per call (in a helper)",
        ),
    ],
)
def test_the_message_says_what_makes_it_hot(code: str, words: str) -> None:
    (finding,) = lint(program("\n" + code), "model.py", Options())
    assert words in finding.message
    assert "\n" not in finding.message
    assert "x.item()" in finding.message
