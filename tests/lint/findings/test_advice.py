"""What a message offers instead has to fit the place: it works there, and means the same."""

from __future__ import annotations

import math
from typing import Any

import pytest
from linting import ALL, findings, program

from flake8_torchperf.findings.catalogue import load_catalogue
from flake8_torchperf.linter import lint


def advice(line: str, given: str = "x: Tensor, ts: list[Tensor], n: int, eps") -> list[str]:
    """The messages of one line, cut to what comes after why it is hot."""
    source = program(f"def f({given}):\n    {line}\n")
    return [found.partition("; ")[2] for found in findings(source, ALL)]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("return max(x.abs().max(), eps)", "t.clamp(min=bound)"),
        ("return max(x.sum(), 1)", "t.clamp(min=bound)"),
        ("return max(n, x.sum(), x.mean())", "t.clamp(min=bound)"),
        ("return max([x.mean(), 1.0])", "t.clamp(min=bound)"),
        ("return min(1.0, x.norm())", "t.clamp(max=bound)"),
        ("return max(x.mean(), x.sum())", "torch.stack(...).max()"),
        ("return min(ts)", "torch.stack(...).min()"),
        ("return max(ts, key=None)", "torch.stack(...).max()"),
        ("return max(ts, key=lambda t: t.norm())", "torch.stack(keys).argmax()"),
        ("return min(ts, key=torch.sum)", "torch.stack(keys).argmin()"),
        ("return max(x, ts[0], key=lambda t: t.norm())", "torch.stack(keys).argmax()"),
        ("return sorted(ts, key=lambda t: t.mean())", "torch.stack(keys).argsort()"),
        ("ts.sort(key=lambda t: t.mean())", "torch.stack(keys).argsort()"),
        ("return sorted(ts)", "torch.stack(...).sort()"),
    ],
)
def test_reductions(line: str, offered: str) -> None:
    """``torch.stack`` takes no numbers, and of keys the largest is not what was asked for."""
    (found,) = advice(line)
    assert offered in found


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("return not (x > 0).sum()", "write a == 0"),
        ("return not (x > 0).any()", "write ~a, or"),
        ("return not x", "~a of a bool tensor, a == 0 of another"),
        ("return x.mean() or 1.0", "write torch.where(a != 0, a, b)"),
        ("return x.mean() and 1.0", "write torch.where(a != 0, b, a)"),
        ("return (x > 0).any() or (x < 1).all()", "write a | b, or"),
        ("return (x > 0).any() and n > 3", "write a & b, or"),
        ("return (x > 0).any() and n", "write torch.where(a != 0, b, a)"),
        ("return (x > 0).any() or x.mean()", "write torch.where(a != 0, a, b)"),
        ("return x or eps", "a | b of bools, else torch.where(a != 0, a, b)"),
        ("return (x > 0).any() and eps", "a & b of bools, else torch.where"),
    ],
)
def test_operators(line: str, offered: str) -> None:
    """``&``, ``|`` and ``~`` work on bits: of numbers they give something else, or fail."""
    (found,) = advice(line)
    assert offered in found


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("return torch.tensor([t.mean() for t in ts])", "torch.stack([...])"),
        ("return torch.tensor([x.sum(), x.mean()])", "torch.stack([...])"),
        ("return torch.full((3,), x.mean(), device=x.device)", "x.expand(size)"),
        ("return torch.full((3,), fill_value=x.mean(), device=x.device)", "x.expand(size)"),
        ("return torch.full_like(ts[0], x.mean())", "x.expand(size)"),
        ("return x.new_full((3,), x.mean())", "x.expand(size)"),
        ("return torch.full((x.max(), 2), 0.0)", "take sizes from t.shape"),
        ("return torch.zeros(3, x.max())", "take sizes from t.shape"),
    ],
)
def test_numbers(line: str, offered: str) -> None:
    """What fills a tensor is no size, and a list of tensors no number."""
    (found,) = advice(line)
    assert offered in found


@pytest.mark.parametrize(
    ("call", "named"),
    [
        ("torch.zeros((n, b))", "b"),
        ("torch.zeros([b, 3])", "b"),
        ("x.view((b.max(), -1))", "b.max()"),
        ("F.pad(x, (0, b))", "b"),
        ("torch.zeros(size=(b, 3))", "b"),
        ("torch.zeros(3, b)", "b"),
        ("torch.tensor([n, b.sum()])", "b.sum()"),
        ("torch.tensor([t.sum() for t in (x, b)])", "t.sum()"),
        ("torch.tensor([[b.sum(), 2]])", "torch.tensor([[b.sum(), 2]])"),
    ],
)
def test_what_stands_in_a_tuple_or_list_is_named_itself(call: str, named: str) -> None:
    source = program(f"def f(x: Tensor, b: Tensor, n: int):\n    return {call}\n")
    (found,) = lint(source, "model.py", ALL)
    assert found.message.startswith(f"`{named}` waits to be a number")
    assert source.splitlines()[found.line - 1][found.column :].startswith(named)


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("return math.sqrt(x.sum())", "torch's function of the same name"),
        ("return math.log(x.sum())", "torch's function of the same name"),
        ("return math.log(x.sum(), 2)", "torch.log(t) / math.log(base)"),
        ("return math.fabs(x.sum())", "torch.abs"),
        ("return math.degrees(x.sum())", "torch.rad2deg"),
        ("return math.radians(x.sum())", "torch.deg2rad"),
        ("return math.remainder(x.sum(), 3)", "t - y * torch.round(t / y)"),
        ("return math.atan2(x.sum(), 1.0)", "on tensors alone"),
        ("return math.factorial(x.sum())", "compute it with torch operations"),
    ],
)
def test_functions_of_math(line: str, offered: str) -> None:
    (found,) = advice(line)
    assert offered in found


SAME = "use torch's function of the same name"


@pytest.mark.parametrize("code", ["TPF101", "TPF602"])
@pytest.mark.parametrize("name", [n for n in dir(math) if callable(getattr(math, n))])
def test_what_math_and_torch_share_is_the_same(code: str, name: str) -> None:
    torch = pytest.importorskip("torch")
    rule = load_catalogue().rule(code)
    assert rule is not None
    words = rule.advice(f"math.{name}")
    if not words.startswith(SAME):
        return
    many = {"pow": 2, "fmod": 2, "copysign": 2, "ldexp": 2, "nextafter": 2, "isclose": 2}
    count = many.get(name, 2 if name in ("atan2", "hypot", "gcd", "lcm", "dist") else 1)
    given: list[Any] = [{"acosh": 1.5}.get(name, 0.5), 2.0][:count]
    tensors = [torch.tensor(value, dtype=torch.float64) for value in given]
    if name in ("gcd", "lcm", "ldexp", "dist"):
        given = {"ldexp": [0.5, 2], "dist": [[0.5], [2.0]]}.get(name, [4, 6])
        tensors = [torch.tensor(value) for value in given]
    if count == 2 and "tensors alone" not in words:
        tensors[1] = given[1]
    result = getattr(torch, name)(*tensors)
    expected = getattr(math, name)(*given)
    if name == "frexp":
        result = (result[0].item(), result[1].item())
    assert result == expected or result.item() == pytest.approx(expected)


def test_replacements_of_math_compute_the_same() -> None:
    torch = pytest.importorskip("torch")
    t, y = torch.tensor(5.5, dtype=torch.float64), 2.0
    for result, expected in (
        (torch.log(t) / math.log(2), math.log(5.5, 2)),
        (torch.abs(-t), math.fabs(-5.5)),
        (torch.rad2deg(t), math.degrees(5.5)),
        (torch.deg2rad(t), math.radians(5.5)),
        (torch.lgamma(t).exp(), math.gamma(5.5)),
        (t.sign() * t.abs() ** (1 / 3), 5.5 ** (1 / 3)),
        (t - y * torch.round(t / y), math.remainder(5.5, 2.0)),
        (torch.frac(t), math.modf(5.5)[0]),
    ):
        assert result.item() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("body", "offered"),
    [
        ("return x[x > 0]", "keep the mask"),
        ("y = x[x > 0].abs() * 2\n    return {'y': y}", "keep the mask"),
        ("y = x[x > 0]\n    print(y.shape)", "keep the mask"),
        ("y = x[x > 0]\n    return len(y)", "keep the mask"),
        ("y = torch.masked_select(x, x > 0)\n    ts.append(y)", "keep the mask"),
        ("y = x[x > 0]\n    for one in y: print(n)", "keep the mask"),
        ("return x[x > 0].max(dim=1)", "keep the mask"),
        ("return x[x > 0].sum()", "torch.where"),
        ("y = x[x > 0]\n    return (y * 2).mean()", "torch.where"),
        ("x[x > 0] = x[x > 0] * 2", "torch.where"),
        ("return torch.nn.functional.mse_loss(x[x > 0], eps)", "torch.where"),
    ],
)
def test_selections_whose_size_is_needed(body: str, offered: str) -> None:
    source = program(f"def f(x: Tensor, ts: list[Tensor], n: int, eps):\n    {body}\n")
    (told,) = [found for found in findings(source, ALL) if "TPF402" in found]
    assert offered in told.partition("; ")[2]
