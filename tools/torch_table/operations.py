"""The table's entry of one function or method: signatures, settled returns and flags."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch_table import reads, schemas
from torch_table.letters import settle
from torch_table.model import Entry, Parameter, Signature
from torch_table.probe import FAILURES, Probed, Prober, call

from flake8_torchperf.knowledge.returns import UNKNOWN, Return, TensorReturn

# Not called: they reach for files, threads, processes, hardware, or global state, or abort the process
# when the samples do not suit.
UNPROBED = frozenset(
    {
        "from_file",
        "embedding_bag",
        "save",
        "load",
        "compile",
        "manual_seed",
        "seed",
        "set_num_threads",
        "set_num_interop_threads",
        "init_num_threads",
        "share_memory_",
        "backward",
        "register_hook",
        "resize",
        "storage",
        "cuda",
        "pin_memory",
        "module_load",
        "set_default_dtype",
        "set_default_device",
        "set_default_tensor_type",
        "set_printoptions",
        "set_flush_denormal",
        "__setstate__",
        "__reduce_ex__",
        "__del__",
    }
)
_UNPROBED_PREFIXES = ("cudnn_", "miopen_", "mkldnn_", "fbgemm_", "quantize_", "q_", "set_", "sparse_", "_", "to_mkldnn")
_VIEW_NEUTRAL = {"detach", "alias", "_to_copy", "clone", "view", "expand", "unsqueeze", "reshape"}


def probeable(name: str) -> bool:
    """Whether the generator may call it."""
    if name.startswith("__") and name.endswith("__"):
        return name not in UNPROBED
    return name not in UNPROBED and not name.startswith(_UNPROBED_PREFIXES)


class Builder:
    """Builds entries; one per generator run."""

    def __init__(self, prober: Prober) -> None:
        self._prober = prober

    def build(
        self,
        name: str,
        function: Callable[..., Any],
        signatures: Sequence[Signature],
        operators: Sequence[str],
        *,
        bound: bool = False,
    ) -> Entry:
        """The entry of one operation.

        `operators` are the aten names that carry its tags; with `bound` the first parameter is the tensor that
        the method is called on, and the entry leaves it out.
        """
        entry = Entry()
        for operator in operators:
            entry.flags |= schemas.flags(operator)
        for signature in signatures:
            for single in signature.expanded():
                self._add(name, function, single, entry, bound)
        _finish_flags(name, entry)
        return entry

    def _add(self, name: str, function: Callable[..., Any], single: Signature, entry: Entry, bound: bool) -> None:
        probed = Probed()
        if probeable(name):
            probed = self._prober.probe(function, single)
        settled = replace(single, returns=settle(single.returns, probed.observations))
        entry.signatures.append(settled.without_first() if bound else settled)
        if probed.scenario is None:
            return
        if not entry.flags & set("pr"):
            entry.flags |= _dispatched_flags(probed.dispatched)
        if reads.reads_elements(function, single.parameters, probed.scenario):
            entry.flags.add("h")
        found, spared = reads.conditions(function, single.parameters, probed.scenario)
        if found:
            entry.flags.add(found)
            entry.unless |= spared
        if inspect.isfunction(function):
            for extra in self._flagged(function, single, settled, probed):
                entry.signatures.append(extra.without_first() if bound else extra)

    def _flagged(
        self, function: Callable[..., Any], single: Signature, settled: Signature, probed: Probed
    ) -> list[Signature]:
        """Further signatures where a boolean option changes the form of the result."""
        options = _boolean_options(function, single.parameters)
        changing: list[tuple[str, bool]] = []
        for option, default in options:
            seen = self._prober.probe(function, single, {option: not default})
            if seen.observations and _form(settle(UNKNOWN, seen.observations)) != _form(settled.returns):
                changing.append((option, not default))
        found: list[Signature] = []
        for count in range(1, min(len(changing), 2) + 1):
            for chosen in itertools.combinations(changing, count):
                seen = self._prober.probe(function, single, dict(chosen))
                if seen.observations:
                    parameters = _requiring(single.parameters, dict(chosen))
                    found.append(Signature(parameters, settle(UNKNOWN, seen.observations)))
        return found


def _boolean_options(
    function: Callable[..., Any], parameters: Sequence[Parameter]
) -> list[tuple[str, bool]]:
    from torch_table.stubs import undispatched

    try:
        defaults = inspect.signature(undispatched(function)).parameters
    except ValueError:  # a Python wrapper of a builtin, which has none of these options
        return []
    return [
        (p.name, bool(defaults[p.name].default))
        for p in parameters
        if p.optional and p.types == ("b",) and p.name in defaults and isinstance(defaults[p.name].default, (bool, type(None)))
    ]


def _requiring(parameters: Sequence[Parameter], chosen: Mapping[str, bool]) -> tuple[Parameter, ...]:
    return tuple(
        replace(p, optional=False, types=("1" if chosen[p.name] else "0",)) if p.name in chosen else p
        for p in parameters
    )


def _form(value: Return) -> object:
    """What distinguishes forms: how many values of which type, without letters."""
    items = getattr(value, "items", None)
    if items is not None:
        return tuple(_form(item) for item in items)
    return "T" if isinstance(value, TensorReturn) else type(value).__name__


def _dispatched_flags(ops: Sequence[Any]) -> set[str]:
    """Flags of the operators that a call was made of: any d or y; p where all are pointwise."""
    found = schemas.tag_flags(ops) & set("dy")
    working = [op for op in ops if op._schema.name.removeprefix("aten::") not in _VIEW_NEUTRAL]
    if working and all(torch.Tag.pointwise in op.tags for op in working):
        found.add("p")
    if working and torch.Tag.reduction in working[-1].tags:
        found.add("r")
    return found


def _finish_flags(name: str, entry: Entry) -> None:
    if name == "tolist":
        entry.flags.add("l")
    in_place = name.endswith("_") and not name.endswith("__")
    augmented = name.startswith("__i") and name not in {"__int__", "__index__", "__invert__", "__iter__", "__init__"}
    if in_place or augmented:
        entry.flags.add("m")


def attribute_return(
    name: str, annotated: Return, prober_describe: Callable[[Any], Return], samples: Sequence[torch.Tensor]
) -> Return:
    """The type of a Tensor attribute, from its annotation and from looking at samples."""
    from torch_table.probe import Observation, category

    seen: list[Observation] = []
    for tensor in samples:
        try:
            value = getattr(tensor, name)
        except FAILURES:
            continue
        seen.append(Observation((category(tensor.dtype),), (), (tensor.dim(),), prober_describe(value)))
    return settle(annotated, [o for o in seen if o.result != UNKNOWN])


__all__ = ["Builder", "attribute_return", "call", "probeable"]
