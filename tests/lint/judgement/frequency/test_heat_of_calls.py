"""How often a function runs, by who calls it in its module."""

from __future__ import annotations

from linting import HOT, check, findings, program, table

CALLED_HOT = {
    "from a hot function": """
        def read(n: int):
            return torch.ones(n, device="cuda").sum().item()  # TPF101

        class Net(nn.Module):
            def forward(self, n: int):
                return read(n)
        """,
    "a method": """
        class Net(nn.Module):
            def forward(self, x: Tensor):
                return self.offsets(4) + x

            def offsets(self, n: int):
                return torch.ones(n, device="cuda").max().item()  # TPF101
        """,
    "a method of a base, by an override": """
        class Base(nn.Module):
            def forward(self, x: Tensor):
                return self.offsets(4) + x

            def offsets(self, n: int):
                return n

        class Net(Base):
            def offsets(self, n: int):
                return torch.ones(n, device="cuda").max().item()  # TPF101
        """,
    "from a loop": """
        def read(n: int):
            return torch.ones(n, device="cuda").sum().item()  # TPF101

        def main():
            for n in range(9):
                read(n)
        """,
    "from a loop at module level": """
        def read(n: int):
            return torch.ones(n, device="cuda").sum().item()  # TPF101

        found = [read(n) for n in range(9)]
        """,
    "from the loop of a pipeline": """
        class TextPipeline:
            def __call__(self, x: Tensor, steps: int):
                for i in range(steps):
                    x = self._next(i)
                return x

            def _next(self, n: int):
                return torch.ones(n, device="cuda").max().item()  # TPF101
        """,
    "through another helper": """
        def read(n: int):
            return torch.ones(n, device="cuda").sum().item()  # TPF101

        def twice(n: int):
            return read(n) + read(n + 1)

        def train_step(n: int):
            return twice(n)
        """,
    "from a step, whatever its name says": """
        def save_all(n: int):
            return torch.ones(n, device="cuda").sum().item()  # TPF101

        def train_step(n: int):
            save_all(n)
        """,
}


@table(CALLED_HOT)
def test_a_helper_is_as_hot_as_its_calls(code: str) -> None:
    check(code, HOT)


COLD = {
    "called once": """
        def read(n: int):
            return torch.ones(n, device="cuda").sum().item()

        def main():
            return read(3)
        """,
    "called from set-up code, in its loops too": """
        class Net(nn.Module):
            def __init__(self, weights: list[Tensor]):
                super().__init__()
                self.limits = [self._limit(w) for w in weights]

            def _limit(self, w: Tensor):
                return w.max().item()

            def __repr__(self):
                return f"{self._limit(self.w)}"
        """,
    "called before the loop of a program": """
        def _scale(x: Tensor):
            return x.max().item()

        def _deeper(x: Tensor):
            return _scale(x)

        def main(x: Tensor):
            limit = _deeper(x)
            for step in range(10):
                x = x * limit
        """,
    "called from a function of which only its tensors are known": """
        def read(n: int):
            return torch.ones(n, device="cuda").sum().item()

        def scaled(x: Tensor):
            return x * read(3)
        """,
    "every so many steps": """
        def read(n: int):
            return torch.ones(n, device="cuda").sum().item()

        def main():
            for step in range(100):
                if step % 10 == 0:
                    read(step)
        """,
    "on the way to an error": """
        def read(n: int):
            return torch.ones(n, device="cuda").sum().item()

        def train_step(n: int):
            if n < 0:
                raise ValueError(read(n))
        """,
    "called before the loop of a pipeline that calls a model": """
        class TextPipeline:
            def __call__(self, x: Tensor, steps: int):
                limit = self._limit(x)
                for i in range(steps):
                    x = self.model(x, i) * limit
                return x

            def _limit(self, x: Tensor):
                return x.max().item()
        """,
}


@table(COLD)
def test_what_only_set_up_code_calls_is_cold(code: str) -> None:
    check(code, HOT)


STILL_HOT = {
    "called from a step as well": """
        class Net(nn.Module):
            def __init__(self, w: Tensor):
                super().__init__()
                self.limit = self._limit(w)

            def _limit(self, w: Tensor):
                return w / w.max().item()  # TPF101

            def forward(self, x: Tensor):
                return x * self._limit(x)
        """,
    "handed on as a value": """
        class Net(nn.Module):
            def __init__(self, w: Tensor):
                super().__init__()
                self.limit = self._limit(w)
                self.hook = self._limit

            def _limit(self, w: Tensor):
                return w / w.max().item()  # TPF101
        """,
    "public: other modules may call it": """
        class Net(nn.Module):
            def __init__(self, w: Tensor):
                super().__init__()
                self.limit = self.largest(w)

            def largest(self, w: Tensor):
                return w / w.max().item()  # TPF101
        """,
    "called from what may be hot": """
        def _limit(w: Tensor):
            return w / w.max().item()  # TPF101

        def compute(state):
            return _limit(state.weight)
        """,
    "recursive": """
        def _limit(w: Tensor, depth: int):
            if depth:
                return _limit(w, depth - 1)
            return w / w.max().item()  # TPF101
        """,
    "called before a loop that calls no model": """
        class TextPipeline:
            def __call__(self, x: Tensor, steps: int):
                limit = self._limit(x)
                for i in range(steps):
                    x = x * limit
                return x

            def _limit(self, x: Tensor):
                return x.max().item()  # TPF101
        """,
    "called from a function that is cold by its name alone": """
        class Net(nn.Module):
            def load_weights(self, w: Tensor):
                return self._limit(w)

            def _limit(self, w: Tensor):
                return w.max().item()  # TPF101
        """,
}


@table(STILL_HOT)
def test_what_may_be_called_in_a_step_stays_hot(code: str) -> None:
    check(code, HOT)


def test_the_message_names_the_call() -> None:
    (found,) = findings(program(CALLED_HOT["from a loop"]))
    assert "(called by `main` at line 12); " in found
    (found,) = findings(program(CALLED_HOT["through another helper"]))
    assert "(called by `twice` at line 11); " in found
    (found,) = findings(program(CALLED_HOT["from a loop at module level"]))
    assert "(called in a loop at line 10); " in found


MADE_IN_A_STEP = {
    "what a step calls makes it in each step": """
        class Net(nn.Module):
            def forward(self, x: Tensor):
                return self._build_mask(x), create_block_mask(x)

            def _build_mask(self, x: Tensor):
                if x.any():  # TPF301
                    return x

        def create_block_mask(x: Tensor):
            return x[x > 0]  # TPF402
        """,
    "on the first call alone, or for whoever asks": """
        class Net(nn.Module):
            def forward(self, x: Tensor):
                if self.table is None:
                    self.table = make_table(x)
                return self.table

        def make_table(x: Tensor):
            return x[x > 0]

        def make_mask(x: Tensor):
            return x[x > 0]
        """,
}


@table(MADE_IN_A_STEP)
def test_what_a_step_makes(code: str) -> None:
    check(code, HOT)
