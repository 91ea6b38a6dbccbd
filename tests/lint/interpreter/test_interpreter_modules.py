"""What modules hold: torch's lists and dicts of them, buffers, and attributes set on the way."""

from linting import ALL, check, table

HOLDERS = {
    "a ModuleDict": """
        class Net(nn.Module):
            def __init__(self, names):
                super().__init__()
                self.heads = nn.ModuleDict({"a": nn.Linear(3, 1)})
                self.named = nn.ModuleDict({n: nn.Linear(3, 1) for n in names})
                self.later = nn.ModuleDict()
                for n in names:
                    self.later[n] = nn.Linear(3, 1)

            def step(self, x, name):
                if name in self.heads:
                    self.heads["a"](x).item()  # TPF101
                for head in self.later.values():
                    head(x).item()  # TPF101
                return self.named[name](x).item()  # TPF101
        """,
    "a ParameterDict": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.scales = nn.ParameterDict({"a": nn.Parameter(torch.ones(()))})

            def step(self, other: nn.ParameterDict):
                for name, scale in other.items():
                    scale.item()  # TPF101
                return self.scales["a"].item()  # TPF101
        """,
    "modules in a row": """
        from collections import OrderedDict

        class Net(nn.Module):
            def __init__(self, d):
                super().__init__()
                self.row = nn.Sequential(*[nn.Linear(d, d) for _ in range(3)])
                self.named = nn.Sequential(OrderedDict([("a", nn.Linear(d, d)), ("b", nn.ReLU())]))

            def step(self, x):
                for layer in self.row:
                    x = layer(x)
                if len(self.row) > 3:
                    x.sum().item()  # TPF101
                return self.named(x).sum().item(), self.row[0].weight.sum().item()  # TPF101, TPF101
        """,
    "parameters of a list of modules": """
        class Net(nn.Module):
            def __init__(self, d):
                super().__init__()
                self.layers = nn.ModuleList(nn.Linear(d, d) for _ in range(3))

            def step(self):
                return [p.sum().item() for p in self.layers.parameters()]  # TPF101
        """,
    "add_module": """
        class Net(nn.Module):
            def __init__(self, d):
                super().__init__()
                self.add_module("fc", nn.Linear(d, d))

            def step(self, x):
                return self.fc(x).sum().item()  # TPF101
        """,
    "buffers of torch's own modules": """
        class Net(nn.Module):
            def __init__(self, d):
                super().__init__()
                self.norm = nn.BatchNorm2d(d)

            def step(self):
                if self.norm.eps > 1 or self.norm.num_features > 3:
                    return self.norm.num_batches_tracked.item()  # TPF101

        class Norm(nn.BatchNorm1d):
            def step(self):
                return self.running_mean.tolist()  # TPF102
        """,
}


@table(HOLDERS)
def test_what_holds_modules(code: str) -> None:
    check(code)


ORDER = """
    class Metric:
        def __init__(self):
            self.state = torch.zeros(3)
            self.seen = []
            self.by_name = {}

        def update(self, x: Tensor, name):
            self.seen.append(x.mean())
            self.by_name.setdefault(name, []).append(x)
            self.state = self.state + x
            %s
    """
ASKED = {
    "the total first": """
        def compute(self, name):
            if self.state.sum() > 3:  # TPF301
                pass
            for x in self.seen:
                x.item()  # TPF101
            return self.by_name[name][0].item()  # TPF101
    """,
    "the lists first": """
        def compute(self, name):
            self.by_name[name][0].item()  # TPF101
            for x in self.seen:
                x.item()  # TPF101
            if self.state.sum() > 3:  # TPF301
                pass
    """,
}


@table(ASKED)
def test_what_a_method_writes_does_not_depend_on_what_is_asked_first(code: str) -> None:
    check(ORDER.replace("%s", "self.done = True") + code, ALL)
