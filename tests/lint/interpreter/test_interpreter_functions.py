"""Functions of the same file: what they return, closures, lambdas, decorators, scopes of names."""

from linting import check, table

RETURNED = {
    "a tensor": """
        def norm(x: Tensor):
            return x.norm()

        def step(x: Tensor):
            return norm(x).item()  # TPF101
        """,
    "a number": """
        def width(x: Tensor):
            return x.shape[-1]

        def step(x: Tensor):
            if width(x) > 3:
                return x
            return float(width(x))
        """,
    "what it was given": """
        def double(x):
            return x * 2

        def step(x: Tensor):
            return double(x).item() + float(double(2))  # TPF101
        """,
    "a tuple": """
        def both(x: Tensor):
            return x.sum(), x.numel()

        def step(x: Tensor):
            s, n = both(x)
            return float(s) / float(n)  # TPF101
        """,
    "a dict": """
        def outputs(x: Tensor):
            return {"loss": x.sum(), "n": x.numel()}

        def step(x: Tensor):
            out = outputs(x)
            return out["loss"].item() / float(out["n"])  # TPF101
        """,
    "an annotation": """
        def load(n) -> Tensor: ...
        def width(n) -> int: ...

        def step(n):
            if width(n) > 3:
                return load(n).item()  # TPF101
            return 0
        """,
    "a host value after a copy": """
        def fetch(x: Tensor):
            return x.cpu()  # TPF102

        def step(x: Tensor):
            return fetch(x).item()
        """,
    "a recursion": """
        def halve(x: Tensor, n: int):
            return x if n == 0 else halve(x / 2, n - 1)

        def step(x: Tensor):
            return halve(x, 3).item()  # TPF101
        """,
    "a mutual recursion": """
        def ping(x: Tensor, n: int):
            return pong(x, n - 1) if n else x

        def pong(x: Tensor, n: int):
            return ping(x, n - 1) if n else x

        def step(x: Tensor):
            return ping(x, 3).item()  # TPF101
        """,
    "keywords, defaults and stars": """
        def pick(a, b=None, *rest, scale=1.0, **more):
            return b

        def step(x: Tensor):
            float(pick(x, 2))
            return float(pick(1, b=x))  # TPF101
        """,
    "defined later": """
        def step(x: Tensor):
            return later(x).item()  # TPF101

        def later(x: Tensor):
            return x.sum()
        """,
    "redefined": """
        def head(x: Tensor):
            return x.sum()

        def head(x: Tensor):
            return x.numel()

        def step(x: Tensor):
            return float(head(x))
        """,
    "a generator": """
        def rows(xs: list[Tensor]):
            for x in xs:
                yield x.sum()

        def step(xs: list[Tensor]):
            for row in rows(xs):
                row.item()  # TPF101
        """,
    "a function that is given a mask": """
        def _select(x: Tensor, which: Tensor):
            return x[which]  # TPF402

        def select(x: Tensor, which: Tensor):
            return x[which]  # TPF402

        def picked(x: Tensor, which: Tensor):
            return x[which]

        def step(x: Tensor):
            return _select(x, x > 0) + select(x, x > 0) + picked(x, x.argmax(0))
        """,
}


@table(RETURNED)
def test_returned(code: str) -> None:
    check(code)


NESTED = {
    "a closure over a tensor": """
        def step(x: Tensor):
            def inner():
                return x.item()  # TPF101
            return inner()
        """,
    "a closure over a number": """
        def step(x: Tensor):
            n = x.numel()

            def inner():
                return float(n)
            return inner()
        """,
    "a closure's result": """
        def step(x: Tensor):
            def scaled(n: int):
                return x * n
            return scaled(3).item()  # TPF101
        """,
    "a closure called in a loop": """
        def step(x: Tensor, n: int):
            def inner(i):
                return x[:, i].sum()
            return [inner(i).item() for i in range(n)]  # TPF101
        """,
    "a lambda": """
        def step(x: Tensor):
            f = lambda y: y.sum()
            return f(x).item()  # TPF101
        """,
    "a closure's defaults": """
        def step(x: Tensor, n: int):
            def loss(scale=1.0, of=x):
                return (of * scale).mean() if scale > 0.5 else of.mean()

            return loss().item(), loss(of=n)  # TPF101
        """,
    "a lambda's default": """
        def step(x: Tensor):
            f = lambda y=x: y.item()  # TPF101
            return f()
        """,
    "a lambda over a number": """
        def step(x: Tensor):
            f = lambda n: float(n) + 1
            return f(x.numel())
        """,
    "a list that a closure fills": """
        def step(xs: list[Tensor]):
            seen = []

            def note(x):
                seen.append(x.mean())

            for x in xs:
                note(x)
            return [x.item() for x in seen]  # TPF101
        """,
    "a class in a function": """
        def make(n: int, scale: Tensor):
            class Inner(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.fc = nn.Linear(n, n)

                def forward(self, x):
                    y = self.fc(x) * scale
                    if n > 3 and self.training:
                        return y
                    return y.sum().item()  # TPF101

            return Inner()
        """,
    "a read under another name": """
        def step(x: Tensor):
            read, number, largest = x.item, float, max
            return read(), number(x), largest(1, x)  # TPF101, TPF101, TPF103
        """,
    "nonlocal": """
        def step(x: Tensor):
            total = 0.0

            def add():
                nonlocal total
                total = total + x.sum()
            add()
            return float(total)  # TPF101
        """,
    "a function passed on": """
        def norm(x: Tensor):
            return x.norm()

        def apply(f, x: Tensor):
            return f(x)

        def step(x: Tensor):
            return apply(norm, x).item()  # TPF101
        """,
    "functools.partial": """
        import functools

        def scaled(n: int, x: Tensor):
            return x * n

        def step(x: Tensor):
            double = functools.partial(scaled, 2)
            return double(x).item()  # TPF101
        """,
    "an inner function's parameter hides the outer name": """
        def step(x: Tensor):
            def inner(x: float):
                return float(x)
            return inner(3.0)
        """,
    "an optimizer's closure": """
        def step(model: nn.Module, x: Tensor, optimizer: torch.optim.Optimizer):
            def closure():
                loss = model(x).sum()
                loss.backward()
                return loss.item()  # TPF101
            optimizer.step(closure)
        """,
}


@table(NESTED)
def test_nested(code: str) -> None:
    check(code)


# What a nested function names may be worth something else when it is called again.
CALLED_AGAIN = {
    "a name bound anew": """
        def step(x: Tensor):
            scale = 1.0

            def scaled(n: int):
                return scale * n
            before = float(scaled(2))
            scale = x.sum()
            return before + float(scaled(2))  # TPF101
        """,
    "a name that another nested function names": """
        def step(x: Tensor):
            scale = 1.0

            def factor():
                return scale

            def scaled(n: int):
                return factor() * n
            before = float(scaled(2))
            scale = x.sum()
            return before + float(scaled(2))  # TPF101
        """,
    "an attribute": """
        def step(x: Tensor, box):
            box.scale = 1.0

            def scaled(n: int):
                return box.scale * n
            before = float(scaled(2))
            box.scale = x.sum()
            return before + float(scaled(2))  # TPF101
        """,
    "an argument": """
        def step(x: Tensor):
            def doubled(value):
                return value * 2
            return float(doubled(2.0)) + float(doubled(x))  # TPF101
        """,
    "a name of the outer function bound by a call": """
        def step(x: Tensor):
            total = 0.0

            def add(value):
                nonlocal total
                total = value
                return total
            add(1.0)
            before = float(total)
            add(x.sum())
            add(x.sum())
            return before + float(total)  # TPF101
        """,
    "a list filled by each call": """
        def step(x: Tensor):
            first, second = [], []

            def note(where, value):
                where.append(value)
            note(first, 1.0)
            note(first, 1.0)
            note(second, x.sum())
            return [float(one) for one in first]
        """,
    "data in data": """
        def step(batch: dict):
            def mapped(data):
                if isinstance(data, Tensor):
                    return data.item()  # TPF101
                if isinstance(data, dict):
                    return {key: mapped(value) for key, value in data.items()}
                if isinstance(data, (list, tuple)):
                    return [mapped(value) for value in data]
                return data
            return mapped(batch)
        """,
}


@table(CALLED_AGAIN)
def test_nested_functions_called_again(code: str) -> None:
    check(code)


MODULE_NAMES = {
    "a constant number": """
        LIMIT = 3.0

        def step(x: Tensor):
            if LIMIT > 2:
                return x
            return float(LIMIT)
        """,
    "a constant tensor": """
        TABLE = torch.ones(3, device="cuda")

        def step(i: int):
            return TABLE.tolist()  # TPF102
        """,
    "global": """
        total = 0.0

        def step(x: Tensor):
            global total
            total = total + x.sum()
            return float(total)  # TPF101
        """,
    "a local name hides a global tensor": """
        x = torch.ones(3, device="cuda")

        def step(names: list[str]):
            x = len(names)
            return float(x)
        """,
    "a module-level lambda": """
        norm = lambda x: x.norm()

        def step(x: Tensor):
            return norm(x).item()  # TPF101
        """,
}


@table(MODULE_NAMES)
def test_module_names(code: str) -> None:
    check(code)


DECORATORS = {
    "no_grad keeps the result": """
        @torch.no_grad()
        def norm(x: Tensor):
            return x.norm()

        def step(x: Tensor):
            return norm(x).item()  # TPF101
        """,
    "inference_mode on the step itself": """
        @torch.inference_mode()
        def step(x: Tensor):
            return x.item()  # TPF101
        """,
    "compiled code is hot": """
        @torch.compile
        def work(x: Tensor):
            return x.item()  # TPF602
        """,
    "compiled with arguments": """
        @torch.compile(fullgraph=True)
        def work(x: Tensor):
            return x.item()  # TPF101
        """,
    "a decorator nobody knows": """
        from somewhere import cached

        @cached
        def norm(x: Tensor):
            return x.norm()

        def step(x: Tensor):
            y = norm(x)
            return y
        """,
    "functools.wraps": """
        import functools

        def logged(f):
            @functools.wraps(f)
            def wrapper(*args, **kwargs):
                return f(*args, **kwargs)
            return wrapper

        @logged
        def step(x: Tensor):
            return x.item()  # TPF101
        """,
    "a test's parametrisation is data": """
        @table([torch.ones(1), 3])
        def step(x: Tensor):
            return x.item()  # TPF101
        """,
}


@table(DECORATORS)
def test_decorators(code: str) -> None:
    check(code)


def test_a_lambda_of_the_module_waits_where_it_is_called() -> None:
    """As NM512/dreamerv3-torch names its copies (tools.py, to_np)."""
    check("""
        to_np = lambda x: x.detach().cpu().numpy()

        def train(model: nn.Module, optimizer, loader):
            metrics = []
            for x in loader:
                loss = model(x.cuda(non_blocking=True)).sum()
                loss.backward()
                optimizer.step()
                metrics.append(to_np(loss))  # TPF102
            return metrics
        """)
