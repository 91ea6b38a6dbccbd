"""Statements: loops, match, try, with, del, unpacking, async; what a name holds after each."""

import sys

import pytest
from linting import check, table

LOOPS = {
    "a value that changes kind on the way round": """
        def step(x: Tensor, n: int):
            total = 0.0
            for _ in range(n):
                if total > 3:  # TPF301
                    pass
                total = total + x.sum()
            return total
        """,
    "two turns away": """
        def step(x: Tensor, n: int):
            a = b = 0.0
            for _ in range(n):
                float(b)  # TPF101
                b = a
                a = x.sum()
        """,
    "a number stays a number": """
        def step(x: Tensor, n: int):
            total = 0
            for i in range(n):
                total += i
                if total > 3:
                    break
            return float(total)
        """,
    "the value that break leaves behind": """
        def step(x: Tensor, n: int):
            y = 0.0
            for i in range(n):
                y = x[:, i].sum()
                if i > 3:
                    break
                y = 0.0
            return float(y)  # TPF101
        """,
    "the value that continue takes to the next turn": """
        def step(x: Tensor, n: int):
            y = 0.0
            for i in range(n):
                if y > 1:  # TPF301
                    return y
                y = x[:, i].sum()
                if i > 3:
                    continue
                y = 0.0
        """,
    "else runs when the loop was not broken off": """
        def step(x: Tensor, names: list[str]):
            for name in names:
                if name == "loss":
                    break
            else:
                return x.item()  # TPF101
            return 0.0
        """,
    "while over a counter": """
        def step(x: Tensor, n: int):
            i = 0
            while i < n:
                x = x * 2
                i += 1
            return x
        """,
    "while on a tensor": """
        def step(x: Tensor):
            while x.norm() > 1:  # TPF302
                x = x / 2
            return x
        """,
    "while True with a test inside": """
        def step(x: Tensor):
            while True:
                x = x / 2
                if x.norm() < 1:  # TPF301
                    break
            return x
        """,
    "while with a walrus": """
        def step(x: Tensor):
            while (norm := x.norm()) > 1:  # TPF302
                x = x / norm
            return x
        """,
    "a loop within a loop": """
        def step(batches: list[list[Tensor]]):
            for batch in batches:
                for x in batch:
                    x.item()  # TPF101
        """,
    "the loop variable after the loop": """
        def step(xs: list[Tensor]):
            for x in xs:
                pass
            return x.item()  # TPF101
        """,
    "an infinite nest of growing containers comes to an end": """
        def step(x: Tensor, n: int):
            out = x
            for _ in range(n):
                out = [out]
            return out
        """,
    "attributes change on the way round": """
        class Runner:
            def step(self, x: Tensor, n: int):
                self.best = None
                for i in range(n):
                    if self.best is None or float(self.best) < i:  # TPF101
                        self.best = x[:, i].mean()
        """,
}


@table(LOOPS)
def test_loops(code: str) -> None:
    check(code)


MATCH = {
    "on a tensor": """
        def step(x: Tensor):
            match x.sum():  # TPF301
                case 0:
                    return 1
                case _:
                    return 2
        """,
    "on a string": """
        def step(x: Tensor, mode: str):
            match mode:
                case "sum":
                    y = x.sum()
                case _:
                    y = x.mean()
            return y.item()  # TPF101
        """,
    "a class pattern proves a tensor": """
        def step(x):
            match x:
                case torch.Tensor():
                    return x.item()  # TPF101
                case float():
                    return float(x)
        """,
    "a class pattern with a name": """
        def step(x):
            match x:
                case torch.Tensor() as t:
                    return t.item()  # TPF101
                case other:
                    return float(other)
        """,
    "a sequence pattern": """
        def step(x: Tensor, y: Tensor):
            match (x, y):
                case (a, b):
                    return a.item() + b.item()  # TPF101, TPF101
        """,
    "a mapping pattern": """
        def step(x: Tensor):
            match {"loss": x, "name": "a"}:
                case {"loss": loss, "name": name}:
                    return float(loss), float(name)  # TPF101
        """,
    "a guard on a tensor": """
        def step(x: Tensor, n: int):
            match n:
                case 0 if x.sum() > 0:  # TPF301
                    return 1
            return 0
        """,
    "attributes by a class pattern": """
        from dataclasses import dataclass

        @dataclass
        class Out:
            loss: Tensor
            n: int

        def step(out: Out, other: Out, number: int | Tensor):
            match out:
                case Out(loss=loss, n=n) if n > 3:
                    return loss.item()  # TPF101
            match other:
                case Out(loss, n) if n > 3:
                    return loss.item()  # TPF101
            match number:
                case int(n) if n > 3:
                    return n
        """,
    "a starred part": """
        def step(xs: list[Tensor], pair: tuple[int, Tensor, Tensor]):
            match pair:
                case [n, *rest] if n > 3:
                    return rest[0].item()  # TPF101
            match xs:
                case [first, *_]:
                    return first.item()  # TPF101
        """,
    "on a shape": """
        def step(x: Tensor):
            match x.shape:
                case (n, 1):
                    return n
                case (n, m):
                    return n * m
        """,
    "on the number of dimensions": """
        def step(x: Tensor):
            match x.dim():
                case 2 | 3:
                    return x.sum()
            return x
        """,
}


@table(MATCH)
def test_match(code: str) -> None:
    check(code)


TRY = {
    "what the body gave": """
        def step(x: Tensor):
            try:
                y = x.sum()
            except RuntimeError:
                y = None
            return y.item()  # TPF101
        """,
    "finally runs either way": """
        def step(x: Tensor, f):
            try:
                f()
            finally:
                x.item()  # TPF101
        """,
    "else runs after the body": """
        def step(x, f):
            try:
                y = torch.ones(3, device="cuda")
            except RuntimeError:
                raise
            else:
                y = y.sum()
            return float(y)  # TPF101
        """,
    "the body may stop anywhere": """
        def step(x: Tensor, f):
            y = 0.0
            try:
                y = x.sum()
                f()
                y = 1.0
            except ValueError:
                pass
            return float(y)  # TPF101
        """,
    "an exception is no tensor": """
        def step(x: Tensor):
            try:
                x = x + 1
            except ValueError as x:
                return str(x)
            return x
        """,
    "the message of an error that is raised": """
        def step(x: Tensor, n: int):
            if n > 3:
                raise ValueError(f"bad input {x}")
            return x
        """,
    "the test that raises still waits": """
        def step(x: Tensor):
            if (x < 0).any():  # TPF301
                raise ValueError(f"negative values, the least {x.min().item()}")
            return x
        """,
}


@table(TRY)
def test_try(code: str) -> None:
    check(code)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="except* came with Python 3.11")
def test_except_star() -> None:
    check(
        """
        def step(x: Tensor):
            try:
                y = x.sum()
            except* ValueError:
                raise
            return y.item()  # TPF101
        """
    )


WITH = {
    "no_grad": """
        def step(x: Tensor):
            with torch.no_grad():
                y = x.sum()
            return y.item()  # TPF101
        """,
    "what a file gives is text": """
        def step(x: Tensor, path: str):
            with open(path) as f:
                x = f.read()
            return float(x)
        """,
    "several, in parentheses": """
        def step(x: Tensor, stream):
            with (torch.cuda.stream(stream), torch.autocast("cuda")):
                y = x @ x
            return y.tolist()  # TPF102
        """,
    "async with": """
        async def step(x: Tensor, lock):
            async with lock:
                return x.item()  # TPF101
        """,
}


@table(WITH)
def test_with(code: str) -> None:
    check(code)


NAMES = {
    "del forgets": """
        def step(x: Tensor, load):
            del x
            x = load()
            return float(x)
        """,
    "del of an element and an attribute": """
        def step(xs: dict[str, Tensor], obj):
            del xs["a"], obj.x
            return xs["b"].item()  # TPF101
        """,
    "chained assignment": """
        def step(x: Tensor):
            a = b = x.sum()
            return float(a) + float(b)  # TPF101, TPF101
        """,
    "an augmented assignment keeps the tensor": """
        def step(x: Tensor):
            x += 1
            x *= 2.0
            return float(x)  # TPF101
        """,
    "a number grows into a tensor": """
        def step(x: Tensor):
            total = 0
            total += x
            return float(total)  # TPF101
        """,
    "an annotated assignment": """
        def step(load):
            x: Tensor = load()
            y: float = load()
            return float(x) + float(y)  # TPF101
        """,
    "a bare annotation": """
        def step(load, flag: bool):
            x: Tensor
            if flag:
                x = load()
            else:
                x = load(1)
            return float(x)  # TPF101
        """,
    "swapping": """
        def step(x: Tensor, n: int):
            a, b = x, n
            a, b = b, a
            return float(a) + float(b)  # TPF101
        """,
    "starred unpacking of a list": """
        def step(xs: list[Tensor]):
            first, *rest = xs
            return first.item() + rest[0].item()  # TPF101, TPF101
        """,
    "starred unpacking of a mixed tuple": """
        def step(x: Tensor):
            name, *values, n = "loss", x, x, 3
            float(n)
            return float(values[0])  # TPF101
        """,
    "what is unpacked is made of rows": """
        def step(xs: list[Tensor]):
            for x in xs:
                a, b = x.detach()
                (c,) = x.view(1)
                if c > 0:  # TPF301
                    return a + b
        """,
    "unpacking what is only declared a tensor does not: it is a pair": """
        def step(x: Tensor, rotary: Tensor, f):
            cos, sin = rotary
            g = f(x, *rotary)
            return x * cos + sin
        """,
    "unpacking a shape does not": """
        def step(x: Tensor):
            n, m = x.shape
            h, w = x.size()
            if n > m and h > w:
                return x
            return float(n)
        """,
    "nested targets": """
        def step(pairs: list[tuple[str, tuple[int, Tensor]]]):
            for name, (n, x) in pairs:
                float(n)
                x.item()  # TPF101
        """,
    "a starred argument iterates": """
        def step(x: Tensor, f):
            return f(*x.detach())  # TPF201
        """,
    "a starred list of tensors does not": """
        def step(xs: list[Tensor], f):
            return f(*xs), [*xs]
        """,
    "the walrus": """
        def step(x: Tensor):
            if (s := x.sum()) > 0:  # TPF301
                return s.item()  # TPF101
            return 0.0
        """,
    "a walrus in a comprehension is seen outside": """
        def step(xs: list[Tensor]):
            if any([(last := x).numel() > 3 for x in xs]):
                return last.item()  # TPF101
            return 0.0
        """,
}


@table(NAMES)
def test_names(code: str) -> None:
    check(code)


ASYNC = {
    "an async function": """
        async def forward(self, x: Tensor):
            return x.item()  # TPF101
        """,
    "await of an annotated coroutine": """
        async def fetch(n: int) -> Tensor: ...

        async def step(n: int):
            x = await fetch(n)
            return x.item()  # TPF101
        """,
    "async for over an annotated stream": """
        from collections.abc import AsyncIterator

        async def step(stream: AsyncIterator[Tensor]):
            async for x in stream:
                x.item()  # TPF101
        """,
    "an async comprehension": """
        from collections.abc import AsyncIterator

        async def step(stream: AsyncIterator[Tensor]):
            return [x.item() async for x in stream]  # TPF101
        """,
    "yield": """
        def step(xs: list[Tensor]):
            for x in xs:
                yield x.item()  # TPF101
        """,
    "what is sent into a generator is unknown": """
        def step(x: Tensor):
            x = yield x
            return float(x)
        """,
}


@table(ASYNC)
def test_async_and_generators(code: str) -> None:
    check(code)
