"""Modules and other classes: what their attributes, buffers, submodules and methods are."""

from linting import check, table

ATTRIBUTES = {
    "a parameter": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = nn.Parameter(torch.ones(1))

            def forward(self, x):
                return x * self.scale.item()  # TPF101
        """,
    "a buffer": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("steps", torch.zeros(()))

            def forward(self, x):
                if self.steps > 3:  # TPF301
                    return x
                return x * self.steps.item()  # TPF101
        """,
    "a registered parameter": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_parameter("bias", nn.Parameter(torch.zeros(3)))

            def forward(self, x):
                return self.bias.tolist()  # TPF102
        """,
    "a buffer that may be None": """
        class Net(nn.Module):
            def __init__(self, masked: bool):
                super().__init__()
                self.register_buffer("mask", torch.ones(3) if masked else None)

            def forward(self, x):
                if self.mask is not None:
                    return self.mask.tolist()  # TPF102
                return x
        """,
    "numbers from __init__": """
        class Net(nn.Module):
            def __init__(self, p: float, depth: int = 3):
                super().__init__()
                self.p = p
                self.depth = depth
                self.name = "net"

            def forward(self, x):
                if self.p > 0.5 and self.depth > 1 and self.training:
                    return x * float(self.p)
                return x
        """,
    "written by a method that __init__ calls": """
        class Net(nn.Module):
            def __init__(self, device: str):
                super().__init__()
                self.total = None
                self.count = 0
                self.reset(device)

            def reset(self, device):
                self._clear(torch.zeros((), device=device))

            def _clear(self, value):
                self.total = value

            def forward(self, x):
                if self.count > 3:
                    return x
                return x * self.total.item()  # TPF101
        """,
    "kept under a name that is handed on": """
        class Stateful(nn.Module):
            def keep(self, name, value):
                setattr(self, name, value)

        class Net(Stateful):
            def __init__(self):
                super().__init__()
                self.keep("total", torch.zeros(()))
                self.keep("count", 0)

            def forward(self, x):
                if self.count > 3:
                    return x
                return x * self.total.item()  # TPF101
        """,
    "written by what super calls": """
        class Base(nn.Module):
            def __init__(self, device: str):
                super().__init__()
                self.build(device)

            def build(self, device):
                self.total = torch.zeros((), device=device)

        class Net(Base):
            def __init__(self, device: str):
                self.total = None
                super().__init__(device)

            def forward(self, x):
                return x * self.total.item()  # TPF101
        """,
    "written between two reads": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.total = None

            def start(self, x: torch.Tensor):
                self.total = x.sum()

            def forward(self, x):
                self.total = 0
                if self.total > 3:
                    return x
                self.start(x)
                return x * self.total.item()  # TPF101
        """,
    "an annotation of the class": """
        class Net(nn.Module):
            running_mean: Tensor
            momentum: float

            def forward(self, x):
                if self.momentum > 0:
                    return self.running_mean.item()  # TPF101
                return x
        """,
    "a tensor set in another method": """
        class Meter:
            def update(self, x: Tensor):
                self.last = x.detach()

            def step(self):
                return self.last.item()  # TPF101
        """,
    "None first, a tensor later": """
        class Meter:
            def __init__(self):
                self.best = None

            def update(self, x: Tensor):
                self.best = x.max()

            def step(self):
                if self.best is not None:
                    return self.best.item()  # TPF101
        """,
    "a number first, a tensor later": """
        class Meter:
            def __init__(self):
                self.total = 0.0

            def update(self, x: Tensor):
                self.total += x.detach()

            def step(self):
                return float(self.total)  # TPF101
        """,
    "a number for good": """
        class Meter:
            def __init__(self):
                self.total = 0.0
                self.count = 0

            def update(self, x: float, n: int = 1):
                self.total += x * n
                self.count += n

            def step(self, x: Tensor):
                return float(self.total) / max(self.count, 1)
        """,
    "a list filled elsewhere": """
        class Meter:
            def __init__(self):
                self.losses = []

            def update(self, x: Tensor):
                self.losses.append(x.detach())

            def step(self):
                return sum(loss.item() for loss in self.losses)  # TPF101
        """,
    "a class attribute": """
        class Net(nn.Module):
            eps = 1e-6
            table = torch.ones(3, device="cuda")

            def forward(self, x):
                if self.eps > 0:
                    return self.table.tolist()  # TPF102
                return x
        """,
    "__slots__ and a plain class": """
        class Pair:
            __slots__ = ("x", "n")

            def __init__(self, x: Tensor, n: int):
                self.x = x
                self.n = n

            def step(self):
                return self.x.item() + float(self.n)  # TPF101
        """,
    "written by a method that asks for it through others": """
        class Cache(nn.Module):
            def __init__(self, rows: Tensor):
                super().__init__()
                self.limit = torch.tensor(3, device=rows.device)
                self.last = None
                self.fill(rows)

            def fill(self, rows: Tensor):
                self.last = self.larger(rows)

            def larger(self, rows: Tensor):
                if self.last is not None and rows.shape[0] > 3:
                    return torch.maximum(self.last, self.limit * rows)
                return self.limit * rows

            def forward(self, x: Tensor):
                return x * self.last.mean().item() + int(self.limit)  # TPF101, TPF101
        """,
    "a buffer of a mixin": """
        class Limited:
            def __init__(self, limit: int):
                super().__init__()
                self.register_buffer("limit", torch.tensor(limit))

            def step(self, n: int):
                if n > self.limit:  # TPF301
                    return 0
        """,
    "asked elsewhere in the class for what no tensor has": """
        class Repeated(nn.Module):
            def __init__(self, base, plain):
                self.base = base.unsqueeze(0)
                self.plain = plain.unsqueeze(0)

            def forward(self, n: int):
                self.lower(n)

            def lower(self, n: int):
                for _ in range(n):
                    self.base.cholesky()
                    self.plain.cholesky()  # TPF404

            def rows(self):
                return self.base.to_lazy()
        """,
}


@table(ATTRIBUTES)
def test_attributes(code: str) -> None:
    check(code)


SUBMODULES = {
    "what a torch module returns": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.head = nn.Linear(3, 1)

            def forward(self, x):
                if self.head(x).sum() > 0:  # TPF301
                    return x
                return self.head(x).item()  # TPF101
        """,
    "Sequential and ModuleList": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])
                self.head = nn.Sequential(nn.ReLU(), nn.Linear(3, 1))

            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)
                    print(x)  # TPF104
                return self.head(x).item()  # TPF101
        """,
    "a module of this file": """
        class Block(nn.Module):
            def forward(self, x) -> Tensor:
                return x * 2

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.block = Block()

            def forward(self, x):
                return self.block(x).item()  # TPF101
        """,
    "a module of this file without annotations": """
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(3, 3)

            def forward(self, x):
                return self.linear(x), 3

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.block = Block()

            def forward(self, x):
                y, n = self.block(x)
                if n > 2:
                    return y.item()  # TPF101
                return y
        """,
    "a loss": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.criterion = nn.CrossEntropyLoss()

            def training_step(self, x, y):
                loss = self.criterion(x, y)
                return loss.item()  # TPF101
        """,
    "a submodule's weight": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.head = nn.Linear(3, 1)

            def forward(self, x):
                return self.head.weight.norm().item() + self.head.in_features  # TPF101
        """,
    "a submodule made by a parameter": """
        class Net(nn.Module):
            def __init__(self, block: nn.Module):
                super().__init__()
                self.block = block

            def forward(self, x):
                return self.block(x)
        """,
    "dropout's probability is a number": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.drop = nn.Dropout(0.1)

            def forward(self, x):
                if self.drop.p > 0:
                    return self.drop(x)
                return x
        """,
}


@table(SUBMODULES)
def test_submodules(code: str) -> None:
    check(code)
