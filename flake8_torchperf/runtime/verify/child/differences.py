"""In the child: finds the first difference between two snapshots and describes it.

A safe fix must give the same bits, aliasing and errors. Any other fix must give close numbers of
the same types, except for what its page allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from flake8_torchperf.findings.rule import SAFE
from flake8_torchperf.runtime.verify.child.snapshot import Node

# Tolerances for float32 sums in another order (the defaults of torch.testing for it), for float16
# and bfloat16, and for float64: there, a number that was rounded to float32 must not pass.
_CLOSE = {"float32": (1.3e-6, 1e-5), "half": (1.6e-2, 1e-2), "double": (1e-9, 1e-12)}
# Dtypes whose numbers `torch.isclose` compares as they are.
_PLAIN = frozenset({torch.float16, torch.bfloat16, torch.float32, torch.float64})
_SHOWN = 60


@dataclass(frozen=True)
class Rules:
    """The strictness of a comparison: the fix's safety, what its page allows, and the inputs.

    ``half`` says that some have 16 bits, ``double`` that all are float64, and ``finite`` that none
    is NaN or infinite. With ``lenient``, an error before the fix may become another, or none.
    """

    safety: str
    allows: frozenset[str] = frozenset()
    half: bool = False
    finite: bool = True
    double: bool = False
    lenient: bool = False

    @property
    def exact(self) -> bool:
        """True if everything must be the same, to the last bit."""
        return self.safety == SAFE


def difference(before: dict[str, Any], after: dict[str, Any], rules: Rules) -> str:
    """Return the first difference between the results and changes of two calls; "" if none."""
    if not rules.finite and "other-if-not-finite" in rules.allows:
        return ""
    found = _errors(before["error"], after["error"], rules)
    if found is not None:
        return found
    parts = ["result", "given", "globals", "gradients"]
    if "other-gradients" in rules.allows:
        parts.remove("gradients")
    for part in parts:
        found = _nodes(before[part], after[part], part, rules)
        if found:
            return found
    for part in ("printed", "random"):
        wanted = rules.exact or part == "printed"
        if before[part] != after[part] and wanted:
            return f"{part}: {_short(before[part])} before, {_short(after[part])} after"
    if "other-gradients" in rules.allows:
        return _spoiled(before["gradients"], after["gradients"], rules)
    return _backward(before["backward"], after["backward"], rules)


def _errors(before: Sequence[str], after: Sequence[str], rules: Rules) -> str | None:
    """Return how errors differ: "" if that is allowed and ends the comparison, None to go on.

    No page allows an error where there was none.
    """
    if not before and not after:
        return None
    if not before:
        return f"it raises {': '.join(after)} after the fix alone"
    if "other-error" in rules.allows or (rules.lenient and not rules.exact):
        return ""
    if not after:
        return f"it raises {': '.join(before)} before the fix alone"
    if before[0] != after[0] or (rules.exact and before[1] != after[1]):
        return f"it raises {': '.join(before)} before, {': '.join(after)} after"
    return None if rules.exact else ""


def _spoiled(before: Node, after: Node, rules: Rules) -> str:
    """Return the first gradient that only the fix makes NaN or infinite, in any element.

    No page allows that, except where a number became a tensor: nothing had gradients before.
    """
    if "tensor-for-number" in rules.allows:
        return ""
    for index, (one, other) in enumerate(zip(before[2], after[2], strict=False)):
        ours, theirs = _data_of(one), _data_of(other)
        if theirs is None:
            continue
        finite = torch.ones_like(theirs, dtype=torch.bool) if ours is None else ours.isfinite()
        if bool((finite & ~theirs.isfinite()).any()):  # noqa: TPF101 - compares results
            return f"gradients[{index}]: finite or none before, NaN or infinite after"
    return ""


def _data_of(node: Node) -> Any:
    """Return the numbers of a node's tensor, or None."""
    return node[1].get("data") if node[0] == "tensor" else None


def _backward(before: str, after: str, rules: Rules) -> str:
    if before == after or (not rules.exact and bool(before) == bool(after)):
        return ""
    return f"backward: {before or 'it runs'} before, {after or 'it runs'} after"


def _nodes(before: Node, after: Node, at: str, rules: Rules) -> str:
    if before[0] != after[0]:
        return _kinds(before, after, at, rules)
    match before[0]:
        case "tensor":
            return _tensors(before[1], after[1], at, rules)
        case "number":
            return _numbers(before, after, at, rules)
        case "sequence":
            return _sequences(before, after, at, rules)
        case "mapping":
            return _mappings(before, after, at, rules)
        case "object":
            return _objects(before, after, at, rules)
        case "same" if not rules.exact:
            return ""
    return "" if before == after else _both(before, after, at)


def _kinds(before: Node, after: Node, at: str, rules: Rules) -> str:
    """Compare nodes of different kinds: the page may allow it, or only sharing may differ."""
    if "same" in (before[0], after[0]) and not rules.exact:
        return ""
    if before[0] == "number" and after[0] == "tensor" and "tensor-for-number" in rules.allows:
        return _number_for(before, after, at, rules)
    return _both(before, after, at)


def _number_for(before: Node, after: Node, at: str, rules: Rules) -> str:
    data = after[1].get("data")
    if data is None or data.numel() != 1 or before[2] is None:
        return _both(before, after, at)
    return _close(torch.tensor(float(before[2])), data.reshape(()).float(), at, rules)


def _numbers(before: Node, after: Node, at: str, rules: Rules) -> str:
    if repr(before) == repr(after):  # distinguishes NaN from numbers, and -0.0 from 0.0
        return ""
    float_like = {before[1], after[1]} == {"float"}
    if rules.exact or not float_like:
        return _both(before, after, at)
    return _close(torch.tensor(before[2]), torch.tensor(after[2]), at, rules)


def _sequences(before: Node, after: Node, at: str, rules: Rules) -> str:
    if before[1] != after[1] or len(before[2]) != len(after[2]):
        return _both(before, after, at)
    for index, (one, other) in enumerate(zip(before[2], after[2], strict=True)):
        found = _nodes(one, other, f"{at}[{index}]", rules)
        if found:
            return found
    return ""


def _mappings(before: Node, after: Node, at: str, rules: Rules) -> str:
    keys = [[key for key, _ in node[2]] for node in (before, after)]
    if before[1] != after[1] or keys[0] != keys[1]:
        return _both(before, after, at)
    for (key, one), (_, other) in zip(before[2], after[2], strict=True):
        found = _nodes(one, other, f"{at}[{key}]", rules)
        if found:
            return found
    return ""


def _objects(before: Node, after: Node, at: str, rules: Rules) -> str:
    if before[1] != after[1]:
        return _both(before, after, at)
    ours, theirs = before[2], after[2]
    # Attributes made on demand need not be read by both.
    if not before[3] and ours.keys() != theirs.keys():
        names = sorted(ours.keys() ^ theirs.keys())
        return f"{at}: only one of the two sets {', '.join(names)}"
    for name in ours.keys() & theirs.keys() if before[3] else ours:
        found = _nodes(ours[name], theirs[name], f"{at}.{name}", rules)
        if found:
            return found
    return ""


def _tensors(before: dict[str, Any], after: dict[str, Any], at: str, rules: Rules) -> str:
    for name in ("type", "dtype", "shape", "device", "layout"):
        if before[name] != after[name] and not (name == "dtype" and "dtype" in rules.allows):
            return f"{at}: {name} {_short(before[name])} before, {_short(after[name])} after"
    if before["requires_grad"] != after["requires_grad"] and "other-gradients" not in rules.allows:
        wanted = before["requires_grad"]
        return f"{at}: requires_grad {wanted} before, {not wanted} after"
    if rules.exact:
        for name, words in (("stride", "strides"), ("storage", "memory and offset")):
            if before.get(name) != after.get(name) and 0 not in before["shape"]:
                return f"{at}: {words} {before.get(name)} before, {after.get(name)} after"
    found = _data(before.get("data"), after.get("data"), at, rules)
    if found or "other-gradients" in rules.allows:
        return found
    missing = ["number", "NoneType", None]
    grads = (before.get("grad", missing), after.get("grad", missing))
    return _nodes(*grads, f"{at}.grad", rules)


def _data(before: Any, after: Any, at: str, rules: Rules) -> str:
    if before is None or after is None or "other-random-numbers" in rules.allows:
        return ""
    if rules.exact:
        same = bool(
            torch.equal(before.reshape(-1).view(torch.uint8), after.reshape(-1).view(torch.uint8))  # noqa: TPF105 - compares results
        )
        return "" if same else f"{at}: {_apart(before, after)}"
    kinds = {before.dtype, after.dtype}
    double = rules.double and kinds == {torch.float64}
    return _close(before, after.to(before.dtype), at, rules, double)


def _close(before: Any, after: Any, at: str, rules: Rules, double: bool = False) -> str:
    kind = "half" if rules.half else "float32"
    relative, absolute = _CLOSE["double" if double else kind]
    if _is_plain(before) and _is_plain(after) and _alike(before, after):
        # As `assert_close` does, which imports all of torch's distributed tensors first.
        close = torch.isclose(after, before, rtol=relative, atol=absolute, equal_nan=True)
        return "" if bool(close.all()) else f"{at}: {_apart(before, after)}"
    try:
        torch.testing.assert_close(
            after, before, rtol=relative, atol=absolute, equal_nan=True, check_device=False
        )
    except AssertionError:
        return f"{at}: {_apart(before, after)}"
    return ""


def _is_plain(tensor: Any) -> bool:
    return tensor.layout == torch.strided and tensor.dtype in _PLAIN


def _alike(one: Any, other: Any) -> bool:
    return (one.dtype, one.device, one.shape) == (other.dtype, other.device, other.shape)


def _apart(before: Any, after: Any) -> str:
    """Describe how two tensors of one shape differ."""
    flat, other = before.reshape(-1), after.reshape(-1)
    apart = (flat != other) & ~((flat != flat) & (other != other))
    count = int(apart.sum())
    if not count:
        return "the bits differ: the sign of a zero, or which NaN it is"
    first = int(apart.nonzero()[0])
    values = f"{flat[first].item()!r} before, {other[first].item()!r} after"  # noqa: TPF101 - once, for the report
    return f"{count} of {flat.numel()} numbers differ, the first at {first}: {values}"


def _both(before: Node, after: Node, at: str) -> str:
    return f"{at}: {told(before)} before, {told(after)} after"


def told(node: Node) -> str:
    """Describe a node in a few words."""
    match node:
        case ["number", _, value]:
            return repr(value)
        case ["text", text]:
            return _short(text)
        case ["tensor", about]:
            return f"a tensor {tuple(about['shape'])} of {about['dtype'].removeprefix('torch.')}"
        case ["sequence" | "mapping", name, items]:
            return f"a {name} of {len(items)}"
        case ["object", name, *_]:
            return f"an object of {name}"
        case ["same", number]:
            return f"object {number} of the snapshot again"
    return f"a {node[-1]}"


def _short(value: object) -> str:
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
