"""Loops over the tensors of a model, and over tensors beside lists of tensors."""

import pytest
from linting import ALL, HOT, check, findings, program, table

AVERAGES = {
    "two operations in place": """
        class Average:
            def __init__(self, model, decay):
                self.shadow = {n: p.detach().clone() for n, p in model.named_parameters()}
                self.decay = decay

            @torch.no_grad()
            def update(self, model):
                d = self.decay
                for n, p in model.named_parameters():
                    self.shadow[n].mul_(d).add_(p, alpha=1 - d)  # TPF204
        """,
    "one operation": """
        class Average:
            def __init__(self, model: nn.Module, decay):
                self.shadow = {n: p.detach().clone() for n, p in model.named_parameters()}
                self.decay = decay

            @torch.no_grad()
            def update(self, model: nn.Module):
                for n, p in model.named_parameters():
                    if p.requires_grad:
                        self.shadow[n].lerp_(p, 1 - self.decay)  # TPF204
        """,
    "a sum under a name of its own": """
        class Average:
            def __init__(self, model, decay):
                self.model, self.decay, self.shadow = model, decay, {}

            def update(self):
                for n, p in self.model.named_parameters():
                    new = (1.0 - self.decay) * p.data + self.decay * self.shadow[n]  # TPF204
                    self.shadow[n] = new.clone()
        """,
    "a list beside parameters": """
        from collections.abc import Iterable

        class Average:
            def __init__(self, parameters: Iterable[nn.Parameter], decay):
                self.shadow = [p.clone().detach() for p in parameters]
                self.decay = decay

            @torch.no_grad()
            def step(self, parameters: Iterable[nn.Parameter]):
                for s, p in zip(self.shadow, list(parameters)):
                    s.sub_((1 - self.decay) * (s - p))  # TPF204
        """,
    "two models": """
        @torch.no_grad()
        def update(target, model, d):
            for t, p in zip(target.parameters(), model.parameters()):
                t.mul_(d).add_(p, alpha=1 - d)  # TPF204
        """,
    "their data": """
        def update(target, model, d):
            for t, p in zip(target.parameters(), model.parameters()):
                t.data = d * t.data + (1 - d) * p.data  # TPF204
        """,
    "copied into them": """
        def update(target, model, tau):
            for t, p in zip(target.parameters(), model.parameters()):
                t.data.copy_(t.data * (1.0 - tau) + p.data * tau)  # TPF204
        """,
    "dicts of parameters": """
        from collections import OrderedDict

        @torch.no_grad()
        def update(target, model, decay=0.9999):
            averages = OrderedDict(target.named_parameters())
            for name, p in OrderedDict(model.named_parameters()).items():
                averages[name].mul_(decay).add_(p.data, alpha=1 - decay)  # TPF204
        """,
    "what a model's state holds": """
        def update(target: nn.Module, model: nn.Module, d):
            with torch.no_grad():
                held = model.state_dict()
                for k, v in target.state_dict().items():
                    if v.dtype.is_floating_point:
                        v *= d  # TPF204
                        v += (1 - d) * held[k].detach()  # TPF204
        """,
    "an optimizer's step": """
        class Descent(torch.optim.Optimizer):
            @torch.no_grad()
            def step(self, closure=None):
                for group in self.param_groups:
                    for p in group["params"]:
                        p.add_(p.grad, alpha=-group["lr"])  # TPF204
        """,
    "norms that are added up, which are told by the norms": """
        class Convs(nn.Module):
            def forward(self, x: Tensor):
                total = 0
                for name, one in self.named_parameters():
                    if name.endswith("weight"):
                        total += torch.norm(one, 2)  # TPF204
                        one.data += 1  # TPF204
                return x * total
        """,
}
NO_AVERAGES = {
    "weights that are copied once": """
        def load(target, model):
            with torch.no_grad():
                for t, p in zip(target.parameters(), model.parameters()):
                    t.copy_(p)
        """,
    "weights that are made once": """
        def scale(model: nn.Module):
            for p in model.parameters():
                p.data.mul_(0.02)
        """,
    "a few tensors of a list": """
        def add(left: list[Tensor], right: list[Tensor]):
            for a, b in zip(left, right):
                a.add_(b)
        """,
    "numbers": """
        class Meter:
            def update(self, values: dict[str, float]):
                for k, v in values.items():
                    self.avg[k] = self.d * self.avg[k] + (1 - self.d) * v
        """,
    "what is called with each": """
        def step(model, other, blend):
            for t, p in zip(model.parameters(), other.parameters()):
                t.data.copy_(blend(t, p))
        """,
}
BESIDE_LISTS = {
    "added up by sum": """
        def f(w: Tensor, d: dict[str, Tensor]):
            return sum(a * b for a, b in zip(w, d.values()))  # TPF201
        """,
    "added up in a loop": """
        def f(w: Tensor, parts):
            total = 0
            for a, b in zip(w, parts):  # TPF201
                total = total + a * b
            for a, b in zip(parts, w):  # TPF201
                total += b * a
            return total
        """,
    "stacked": """
        class Mix(nn.Module):
            def __init__(self, n):
                super().__init__()
                self.w = nn.Parameter(torch.zeros(n))

            def forward(self, parts: list[Tensor]):
                return torch.stack([a * b for a, b in zip(self.w.softmax(0), parts)])  # TPF201
        """,
    "of any size, or of some alone": """
        def f(w: Tensor, parts: list[Tensor], layer):
            kept = [a * b for a, b in zip(w, parts)]
            some = sum(a * b for a, b in zip(w, parts) if b is not None)
            return kept, some, sum(a * layer(b) for a, b in zip(w, parts))
        """,
    "numbers and arrays": """
        def f(numbers: list[float], parts: list[float], array: np.ndarray):
            return sum(a * b for a, b in zip(numbers, parts)), sum(a * b for a, b in zip(array, parts))
        """,
}
ONLY = frozenset(("TPF201", "TPF202", "TPF204"))


@table(AVERAGES)
def test_a_running_average_of_weights_is_taken_layer_by_layer(code: str) -> None:
    check(code, only=ONLY)


@table(NO_AVERAGES)
def test_what_is_done_once_or_to_few_is_none(code: str) -> None:
    check(code, ALL, only=ONLY)


@table(BESIDE_LISTS)
def test_a_tensor_beside_a_list_of_what_has_one_shape(code: str) -> None:
    check(code, ALL, only=ONLY)


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (
            AVERAGES["one operation"],
            "one lerp_ per element (loop at line 14); use torch._foreach_l",
        ),
        (AVERAGES["copied into them"], "one lerp_ per element"),
        (BESIDE_LISTS["stacked"], "stack the others, then multiply and sum once"),
    ],
)
def test_what_to_write_instead(code: str, advice: str) -> None:
    assert any(advice in told for told in findings(program(code), HOT))
