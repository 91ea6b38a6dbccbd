"""Methods of classes, inherited ones too: what a call on an object returns, and `super()`."""

from linting import check, table

METHODS = {
    "item with an argument, which numpy's takes and torch's does not": """
        def forward(self, x: Tensor, y: Tensor):
            for _ in range(3):
                a = x.item(0)
                b = x.item(*y.shape)
                c = x.item()  # TPF101
            return a, b, c
        """,
    "a method's result": """
        class Net(nn.Module):
            def norm(self, x: Tensor):
                return x.norm()

            def forward(self, x):
                return self.norm(x).item()  # TPF101
        """,
    "a method that returns a number": """
        class Net(nn.Module):
            def width(self, x: Tensor):
                return x.shape[-1]

            def forward(self, x: Tensor):
                if self.width(x) > 3:
                    return x
                return float(self.width(x))
        """,
    "a method that takes what it is given": """
        class Net(nn.Module):
            def scaled(self, x):
                return x * 2

            def forward(self, x: Tensor):
                return self.scaled(x).item() + float(self.scaled(3))  # TPF101
        """,
    "a property": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.w = nn.Parameter(torch.ones(3))

            @property
            def norm(self):
                return self.w.norm()

            @property
            def width(self) -> int:
                return self.w.shape[0]

            def forward(self, x):
                if self.width > 3:
                    return self.norm.item()  # TPF101
                return x
        """,
    "a static method and a class method": """
        class Net(nn.Module):
            @staticmethod
            def double(x: Tensor):
                return x * 2

            @classmethod
            def zero(cls):
                return torch.zeros((), device="cuda")

            def forward(self, x: Tensor):
                return self.double(x).item() + self.zero().item()  # TPF101, TPF101
        """,
    "a method that calls itself": """
        class Net(nn.Module):
            def down(self, x: Tensor, n: int):
                if n == 0:
                    return x
                return self.down(x / 2, n - 1)

            def forward(self, x: Tensor):
                return self.down(x, 3).item()  # TPF101
        """,
    "a module that is called": """
        class Net(nn.Module):
            def forward(self, x: Tensor):
                return x * 2

        def step(x: Tensor):
            net = Net()
            return net(x).item()  # TPF101
        """,
}


@table(METHODS)
def test_methods(code: str) -> None:
    check(code)


BASES = {
    "a buffer of the base class": """
        class Base(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("steps", torch.zeros(()))

        class Net(Base):
            def forward(self, x):
                return self.steps.item()  # TPF101
        """,
    "a method of the base class": """
        class Base(nn.Module):
            def norm(self, x: Tensor):
                return x.norm()

        class Net(Base):
            def forward(self, x: Tensor):
                return self.norm(x).item()  # TPF101
        """,
    "super().forward": """
        class Base(nn.Module):
            def forward(self, x: Tensor):
                return x * 2

        class Net(Base):
            def forward(self, x: Tensor):
                return super().forward(x).item()  # TPF101
        """,
    "super().forward of a torch module": """
        class Net(nn.Linear):
            def forward(self, x):
                y = super().forward(x)
                return y.item()  # TPF101
        """,
    "a weight of a torch base class": """
        class Net(nn.Linear):
            def forward(self, x):
                if self.in_features > 3:
                    return self.weight.norm().item()  # TPF101
                return x
        """,
    "an overridden method": """
        class Base(nn.Module):
            def head(self, x: Tensor):
                return x.sum()

        class Net(Base):
            def head(self, x: Tensor):
                return x.numel()

            def forward(self, x: Tensor):
                return float(self.head(x))
        """,
    "a base class nobody knows": """
        from somewhere import Base

        class Net(Base):
            def forward(self, x):
                if self.threshold > 3:
                    return x
                return float(self.limit)
        """,
    "a module's forward computes on tensors": """
        class Net(nn.Module):
            def forward(self, x):
                return x.mean().item()  # TPF101
        """,
    "an autograd function": """
        class Scale(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x: Tensor, n: int):
                ctx.save_for_backward(x)
                return x * n

            @staticmethod
            def backward(ctx, grad: Tensor):
                (x,) = ctx.saved_tensors
                return grad * x.item(), None  # TPF101
        """,
    "an optimizer": """
        class Mine(torch.optim.Optimizer):
            def step(self):
                for group in self.param_groups:
                    for p in group["params"]:
                        if p.grad is None:
                            continue
                        state = self.state[p]
                        if group["lr"] > 0 and p.grad.sum() > 1:  # TPF301
                            state["step"] = state.get("step", 0) + 1
        """,
}


@table(BASES)
def test_base_classes(code: str) -> None:
    check(code)
