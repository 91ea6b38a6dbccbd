"""What a test on a value's type tells the interpreter, on both sides, and where paths meet again."""

from linting import ALL, check, table

ISINSTANCE = {
    "true side is a tensor, false side is not": """
        def step(x):
            if isinstance(x, torch.Tensor):
                return x.item()  # TPF101
            else:
                return x.item()
        """,
    "a tensor by its place alone is surely one behind the test": """
        class Net(nn.Module):
            def forward(self, x, y):
                if isinstance(x, torch.Tensor):
                    print(x.max().item())  # TPF101
                return y

        class Other(nn.Module):
            def forward(self, x, y):
                if isinstance(x, (float, torch.Tensor)):
                    print(x.min().item())
                return y
        """,
    "what a function makes of float | Tensor is no surer": """
        def plain(x: float | Tensor):
            if isinstance(x, torch.Tensor) and x.dim() != 0:
                return x.squeeze()
            return x

        def step(lr: float | Tensor, rate: Tensor, n: int):
            lr = plain(lr)
            return min(lr, 1 / n), min(plain(rate), 1 / n)  # TPF103
        """,
    "after the if it may be either, as float | Tensor may": """
        def step(x):
            if isinstance(x, torch.Tensor):
                y = 1
            return float(x)
        """,
    "a negated test swaps the sides": """
        def step(x):
            if not isinstance(x, Tensor):
                return float(x)
            return float(x)  # TPF101
        """,
    "a union without the tensor is a number": """
        def step(x: float | Tensor):
            if isinstance(x, float):
                return float(x)
            return float(x)  # TPF101
        """,
    "several number types at once": """
        def step(x: Tensor | float | int):
            if isinstance(x, (int, float)):
                return float(x)
            return float(x)  # TPF101
        """,
    "several number types one after the other": """
        def step(x: Tensor | float | int, y: Tensor):
            if isinstance(x, float) or isinstance(x, int):
                return float(x)
            elif isinstance(x, Tensor) and x.size() == y.size():
                return 1
            else:
                print(f"{x}")  # TPF104
        """,
    "one of several number types": """
        def step(x: Tensor | float | int):
            if isinstance(x, float):
                return float(x)
            return float(x)
        """,
    "a tuple of types that may be a tensor proves none": """
        def step(x):
            if isinstance(x, (int, torch.Tensor)):
                return float(x)
            return 0.0
        """,
    "a tuple of tensor types only": """
        def step(x):
            if isinstance(x, (torch.Tensor, nn.Parameter)):
                return float(x)  # TPF101
            return 0.0
        """,
    "the annotation decides what a tuple of types leaves": """
        def step(x: Tensor | float | None):
            if isinstance(x, (float, type(None))):
                return 0.0
            return float(x)  # TPF101
        """,
    "an annotated tensor stays one in the true branch": """
        def step(x: Tensor):
            if isinstance(x, nn.Parameter):
                return x.item()  # TPF101
            return x.item()  # TPF101
        """,
    "types joined by a bar": """
        def step(x):
            if isinstance(x, int | float):
                return 0.0
            if isinstance(x, torch.Tensor | nn.Parameter):
                return float(x)  # TPF101
            return float(x)
        """,
    "an attribute": """
        class Meter:
            def step(self):
                if isinstance(self.total, torch.Tensor):
                    return self.total.item()  # TPF101
                return float(self.total)
        """,
    "an element of a container": """
        def step(outputs):
            if isinstance(outputs["loss"], torch.Tensor):
                return float(outputs["loss"])  # TPF101
            return float(outputs["loss"])
        """,
    "an array is no tensor": """
        def step(x: Tensor | np.ndarray):
            if isinstance(x, np.ndarray):
                return float(x)
            return float(x)  # TPF101
        """,
    "a list of tensors in the true branch": """
        def step(x: Tensor | list[Tensor]):
            if isinstance(x, (list, tuple)):
                return x[0].item()  # TPF101
            return x.item()  # TPF101
        """,
    "a test whose outcome has a name": """
        def step(x):
            several = isinstance(x, (tuple, list))
            missing = x is None
            if not missing and several:
                return [part.detach() for part in x]
            return x.detach().item()  # TPF101
        """,
    "such a name after what it was about has changed": """
        def step(x: Tensor | list[float]):
            several = not isinstance(x, Tensor)
            if several:
                return [float(part) for part in x]
            y = x.item()  # TPF101
            x = torch.stack([x, x])
            if several:
                return y
            return x.item()  # TPF101
        """,
    "a test that leaves the type open": """
        def step(x: Tensor | float):
            if isinstance(x, Tensor) and x.ndim > 0:
                return x.mean()
            return math.sqrt(x)
        """,
}


@table(ISINSTANCE)
def test_isinstance(code: str) -> None:
    check(code)


IS_TENSOR = {
    "torch.is_tensor": """
        def step(x):
            if torch.is_tensor(x):
                return float(x)  # TPF101
            return float(x)
        """,
    "an early return leaves the other kind": """
        def step(x):
            if not torch.is_tensor(x):
                return x
            return float(x)  # TPF101
        """,
    "a conditional expression": """
        def step(x):
            return x.max().item() if torch.is_tensor(x) else float(x)  # TPF101
        """,
    "the other way round": """
        def step(x):
            return float(x) if not torch.is_tensor(x) else x.tolist()  # TPF102
        """,
    "an assertion": """
        def step(x):
            assert isinstance(x, torch.Tensor), "a tensor, please"
            return float(x)  # TPF101
        """,
    "a comprehension's filter": """
        def step(values):
            return [v.item() for v in values if torch.is_tensor(v)]  # TPF101
        """,
    "is_floating_point and is_complex ask the dtype, not the values": """
        def step(x: Tensor):
            if torch.is_floating_point(x) and not x.is_complex():
                return x
            return x.float()
        """,
}


@table(IS_TENSOR)
def test_is_tensor(code: str) -> None:
    check(code)


NONE = {
    "is None asks nothing of the device": """
        def step(x: Tensor | None):
            if x is None:
                return 0.0
            return float(x)  # TPF101
        """,
    "is not None": """
        def step(x: Tensor | None = None):
            if x is not None:
                return float(x)  # TPF101
            return 0.0
        """,
    "equality with None compares no values": """
        def step(x: Tensor | None):
            if x == None:
                return 0
            return 1
        """,
    "or, then a read": """
        def step(x: Tensor | None, y: Tensor):
            if x is None or y is None:
                return 0.0
            return float(x)  # TPF101
        """,
    "and on the way": """
        def step(x: Tensor | None):
            return x is not None and x.item()  # TPF101
        """,
    "the truth of an optional tensor is a read": """
        def step(mask: Tensor | None):
            if mask:  # TPF301
                return 1
            return 0
        """,
    "None is the default and nothing else is known": """
        def step(x=None):
            if x is not None:
                return float(x)
            return 0.0
        """,
}


@table(NONE)
def test_none(code: str) -> None:
    check(code)


AND_OR = {
    "and narrows its right side": """
        def step(x):
            if isinstance(x, torch.Tensor) and x.item() > 0:  # TPF101
                return x
            return None
        """,
    "or narrows its right side to what failed": """
        def step(x):
            if not isinstance(x, torch.Tensor) or x.item() > 0:  # TPF101
                return x
            return None
        """,
    "both sides of or prove a tensor": """
        def step(x):
            if torch.is_tensor(x) or isinstance(x, nn.Parameter):
                return float(x)  # TPF101
            return 0.0
        """,
    "one side of or proves nothing": """
        def step(x, flag):
            if torch.is_tensor(x) or flag:
                return float(x)
            return 0.0
        """,
    "both sides of and prove their own": """
        def step(x, y):
            if torch.is_tensor(x) and torch.is_tensor(y):
                return float(x), float(y)  # TPF101, TPF101
            return 0.0
        """,
    "a negated and leaves nothing known": """
        def step(x, flag: bool):
            if not (torch.is_tensor(x) and flag):
                return float(x)
            return float(x)  # TPF101
        """,
    "the test kept in a name by a walrus": """
        def step(d):
            if isinstance(x := d.get("loss"), torch.Tensor):
                return x.item()  # TPF101
            return x
        """,
    "a walrus bound to None or a tensor": """
        def step(p: nn.Parameter):
            if (g := p.grad) is not None:
                return g.item()  # TPF101
            return 0.0
        """,
    "a walrus takes the value's kind": """
        def step(x: Tensor):
            if (n := x.numel()) > 3 and (s := x.sum()) is not None:
                return float(n) + float(s)  # TPF101
            return 0.0
        """,
}


@table(AND_OR)
def test_and_or_walrus(code: str) -> None:
    check(code)


JOINS = {
    "a tensor on both paths": """
        def step(x: Tensor, flag: bool):
            if flag:
                y = x + 1
            else:
                y = x - 1
            return y.item()  # TPF101
        """,
    "a tensor on one path, a number on the other": """
        def step(x: Tensor, flag: bool):
            y = 0.0
            if flag:
                y = x.sum()
            return float(y)  # TPF101
        """,
    "None on one path": """
        def step(x: Tensor, flag: bool):
            y = None
            if flag:
                y = x.sum()
            return y.item()  # TPF101
        """,
    "unknown on one path: names seldom change their type": """
        def step(x: Tensor, other, flag: bool):
            y = other()
            if flag:
                y = x.sum()
            return float(y)  # TPF101
        """,
    "a path that returns does not count": """
        def step(x, flag: bool):
            if flag:
                y = torch.zeros(3, device="cuda")
            else:
                return 0
            return y.tolist()  # TPF102
        """,
    "a path that raises does not count": """
        def step(x):
            if not isinstance(x, torch.Tensor):
                raise TypeError("a tensor, please")
            return x.tolist()  # TPF102
        """,
    "on the host on both paths": """
        def step(x: Tensor, flag: bool):
            if flag:
                y = x.cpu()  # TPF102
            else:
                y = torch.zeros(3, device="cpu")
            return y.tolist()
        """,
    "converted where it is no tensor": """
        def step(x, device):
            if not torch.is_tensor(x):
                x = torch.tensor(x, device="cuda")
            return x.item()  # TPF101
        """,
    "overwritten by a number": """
        def step(x: Tensor):
            x = x.shape[0]
            if x > 3:
                return float(x)
            return 0.0
        """,
    "overwritten by what nobody knows": """
        def step(x: Tensor, convert):
            x = convert(x)
            return float(x)
        """,
    "elif chains": """
        def step(x, mode: str):
            if mode == "mean":
                y = torch.ones(3, device="cuda").mean()
            elif mode == "sum":
                y = torch.ones(3, device="cuda").sum()
            else:
                raise ValueError(mode)
            return float(y)  # TPF101
        """,
}


@table(JOINS)
def test_joins(code: str) -> None:
    check(code)


@table({
    "what is compared with a dtype has it": """
        def step(x: Tensor, m: Tensor):
            if not (m.dtype == torch.bool and x.dtype == torch.float32):
                raise ValueError("no mask")
            return x[m]  # TPF402
        """,
    "made a mask where it was none": """
        def step(x: Tensor, m: Tensor):
            if m.dtype != torch.bool:
                m = m > 0
            return x[m]  # TPF402
        """,
    "elsewhere nothing is known of it": """
        def step(x: Tensor, m: Tensor):
            if m.dtype == torch.bool:
                m = m.long()
            return x[m]
        """,
    "a mask where it was asked for one, and not after it": """
        def step(x, m: Tensor):
            if isinstance(x, list) and m.dtype == torch.bool:
                return 1
            return x[m]
        """,
    "what would be a float already is converted for the tensors": """
        def step(low: float | Tensor, high: float | Tensor | None, n: int | Tensor):
            if high is not None:
                low = float(high) - float(low)  # TPF101, TPF101
            return float(n)
        """,
    "a slice is no list": """
        def step(x: Tensor, m: Tensor, whole: bool):
            where = slice(None) if whole else [slice(None)] * x.dim()
            if isinstance(where, list):
                where[0] = m > 0
                where = tuple(where)
            return x[where]  # TPF402
        """,
})  # fmt: skip
def test_types_that_a_test_tells(code):
    check(code, ALL)


def test_what_class_is_asked_for_decides_what_is_made():
    check(
        """
        def convert(data, kind: type | None = None):
            kind = kind or type(data)
            if issubclass(kind, torch.Tensor):
                return torch.as_tensor(data, device="cuda")
            if issubclass(kind, np.ndarray):
                return np.asarray(data)
            return data

        def f(a, b, c, kind):
            if convert(a, torch.Tensor).max() > 1:  # TPF301
                return 1
            if convert(b, np.ndarray).max() > 1:
                return 2
            if convert(c, kind).max() > 1:
                return 3
        """,
        ALL,
    )


@table(
    {
        "at the start of a function": """
        def score(x: Tensor):
            assert False, "call the other one"
            return x.sum().item()
        """,
        "in the last of all branches": """
        def score(x: Tensor, kind: str):
            if kind == "sum":
                y = 3.0
            elif kind == "mean":
                y = 4.0
            else:
                assert False, kind
                y = x.sum()
            return float(y)
        """,
        "another constant, and a test": """
        def score(x: Tensor, kind: str):
            assert True
            assert kind
            return x.sum().item()  # TPF101
        """,
    }
)
def test_nothing_runs_behind_what_is_never_true(code: str) -> None:
    check(code, ALL)
