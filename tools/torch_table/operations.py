"""The table's entry of one function or method: signatures, settled returns and flags."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from flake8_torchperf.knowledge.returns import (
    UNKNOWN,
    HostReturn,
    ListReturn,
    Return,
    ScalarReturn,
    TensorReturn,
)
from torch_table import reads, schemas, stubs
from torch_table.letters import changed, settle
from torch_table.model import Entry, Parameter, Signature
from torch_table.probe import Observation, Probed, Prober, category
from torch_table.samples import FAILURES

# Not called: they reach for files, threads, processes, hardware, or global state, or abort the
# process when the samples do not suit.
UNPROBED = frozenset(
    {
        "from_file",
        "index",  # torchdim, which compiles
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
_UNPROBED_PREFIXES = (
    "cudnn_",
    "miopen_",
    "mkldnn_",
    "fbgemm_",
    "quantize_",
    "q_",
    "set_",
    "sparse_",
    "_",
    "to_mkldnn",
    "sym_",
)
_DIM_NAMES = {"dim", "dims", "axis"}
_SIZE_NAMES = {"num_classes", "p", "ord"}
_VIEW_NEUTRAL = {"detach", "alias", "_to_copy", "clone", "view", "expand", "unsqueeze", "reshape"}


def probeable(name: str) -> bool:
    """True if the generator may call the operation of that name."""
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
        """Return the entry of one operation.

        `operators` are the aten names that carry its tags; with `bound` the first parameter is the
        tensor that the method is called on, and the entry leaves it out.
        """
        entry = Entry()
        for operator in operators:
            entry.flags |= schemas.flags(operator)
        for signature in signatures:
            for single in signature.expanded():
                self._add(name, function, single, entry, bound)
        _finish_flags(name, entry)
        _place_costs(entry)
        return entry

    def _add(
        self, name: str, function: Callable[..., Any], single: Signature, entry: Entry, bound: bool
    ) -> None:
        probed = self._probe(function, single) if probeable(name) else Probed()
        if single.returns == UNKNOWN and any(p.form == "variadic" for p in single.parameters):
            single = replace(single, returns=ListReturn(UNKNOWN))  # as many results as arguments
        settled = replace(single, returns=settle(single.returns, probed.observations))
        if settled.returns == ListReturn(UNKNOWN):
            settled = replace(settled, returns=UNKNOWN)
        found = [settled]
        if probed.scenario is not None:
            dispatched = _dispatched_flags(probed.dispatched)
            if not entry.flags & set("pr"):
                entry.flags |= dispatched - set("dy")
            if reads.reads_elements(function, single.parameters, probed.scenario):
                entry.flags.add("h")
            costs, spared = reads.conditions(function, single.parameters, probed.scenario)
            entry.unless |= spared
            if (
                costs != "-"
            ):  # where a fake CUDA tensor needs nothing, the CPU's own checks do not count
                costs += "".join(dispatched & set("dy"))
            found[0] = replace(settled, costs=frozenset(costs))
            found += self._with_options(function, single, settled, probed)
        found += self._alone(function, single, settled)
        entry.signatures += [s.without_first() if bound else s for s in found]

    def _probe(self, function: Callable[..., Any], single: Signature) -> Probed:
        """Return the observations without options or, if that never works, with one of them."""
        probed = self._prober.probe(function, single)
        if probed.observations:
            return probed
        options = [
            index
            for index, param in enumerate(single.parameters)
            if param.optional and param.types[0] in {"T", "n", "i", "Z", "f"}
        ]
        for index in options[:2]:
            param = single.parameters[index]
            parameters = list(single.parameters)
            parameters[index] = replace(param, optional=False)
            with_one = replace(single, parameters=tuple(parameters))
            found = self._prober.probe(function, with_one)
            if found.observations:
                return Probed(found.observations)
        return probed

    def _alone(
        self, function: Callable[..., Any], single: Signature, settled: Signature
    ) -> list[Signature]:
        """Return a signature for one tensor where that gives a tensor and several give a list.

        `atleast_1d(x)` returns a tensor, with several tensors it returns a tuple of them.
        """
        first = single.parameters[0] if single.parameters else None
        if first is None or first.form != "variadic" or not isinstance(settled.returns, ListReturn):
            return []
        one = Signature((replace(first, form="positional", optional=False),))
        returns = settle(UNKNOWN, self._prober.probe(function, one).observations)
        return [replace(one, returns=returns)] if isinstance(returns, TensorReturn) else []

    def _with_options(
        self, function: Callable[..., Any], single: Signature, settled: Signature, probed: Probed
    ) -> list[Signature]:
        """Return further signatures, for one or two options that change the return."""
        changing: list[_Option] = []
        found: list[Signature] = []
        plain = self._observe(function, single, probed, ())
        if plain is None:
            return found
        for option in _options(function, single.parameters):
            seen = self._observe(function, single, probed, [option])
            if seen is not None and seen != plain:
                changing.append(option)
                returns = changed(settled.returns, plain, seen)
                found.append(Signature(_requiring(single.parameters, [option]), returns))
        for pair in itertools.combinations(changing, 2):
            seen = self._observe(function, single, probed, pair)
            if seen is not None:
                returns = changed(settled.returns, plain, seen)
                found.append(Signature(_requiring(single.parameters, pair), returns))
        return found

    def _observe(
        self,
        function: Callable[..., Any],
        single: Signature,
        probed: Probed,
        chosen: Sequence[_Option],
    ) -> Return | None:
        observations: list[Observation] = []
        for values in itertools.product(*(option.values for option in chosen)):
            given = {option.name: value for option, value in zip(chosen, values, strict=True)}
            observations += self._prober.again(function, single, probed, given)
        return settle(single.returns, observations) if observations else None


@dataclass(frozen=True)
class _Option:
    """An optional parameter, the type its overload asks for, and values to try that differ from its
    default.
    """

    name: str
    type: str
    values: tuple[Any, ...]


def _options(function: Callable[..., Any], parameters: Sequence[Parameter]) -> list[_Option]:
    """Return the options that can change the return of a call.

    Options that only a Python signature shows are included.
    """
    defaults = _defaults(function)
    found: list[_Option] = []
    for p in parameters:
        if not p.optional or p.form in {"variadic", "keywords"} or p.types == ("-",):
            continue
        kind = p.types[0]
        if kind == "b":
            flag = not defaults.get(p.name, False)
            found.append(_Option(p.name, str(int(flag)), (flag,)))
        elif p.name == "reduction":
            found.append(_Option(p.name, kind, ("none", "sum", "mean")))
        elif p.name in _DIM_NAMES:
            found.append(_Option(p.name, kind, ([0], [0, 1]) if kind == "Z" else (0, -1)))
        elif p.name in _SIZE_NAMES and kind in {"i", "n"}:
            found.append(_Option(p.name, kind, (2,)))
    return found


def _defaults(function: Callable[..., Any]) -> dict[str, bool]:
    try:
        parameters = inspect.signature(stubs.undispatched(function)).parameters
    except (
        ValueError
    ):  # a builtin, whose flags are false by default except for `sorted` and the like
        return {
            "sorted": True,
            "largest": True,
            "unbiased": True,
            "upper": True,
            "hermitian": False,
        }
    return {name: p.default for name, p in parameters.items() if isinstance(p.default, bool)}


def _requiring(parameters: Sequence[Parameter], chosen: Sequence[_Option]) -> tuple[Parameter, ...]:
    types = {option.name: option.type for option in chosen}
    return tuple(
        replace(p, optional=False, types=(types[p.name],)) if p.name in types else p
        for p in parameters
    )


def _dispatched_flags(ops: Sequence[Any]) -> set[str]:
    """Return the flags of the operators that a call dispatched.

    d or y if any has it; p if all are pointwise; r if the last one is a reduction.
    """
    found = schemas.tag_flags(ops) & set("dy")
    working = [op for op in ops if op._schema.name.removeprefix("aten::") not in _VIEW_NEUTRAL]
    if working and all(torch.Tag.pointwise in op.tags for op in working):
        found.add("p")
    if working and torch.Tag.reduction in working[-1].tags:
        found.add("r")
    return found


def _place_costs(entry: Entry) -> None:
    """Moves d, h and y from the operation to those overloads that have them, where only some do."""
    found = set().union(*(signature.costs for signature in entry.signatures))
    letters = frozenset(found & {"d", "h", "y"})
    if not letters:
        return
    if "-" in found:
        entry.flags -= letters
        keeps = [frozenset({"-"}) if s.costs == {"-"} else letters for s in entry.signatures]
    else:
        entry.flags |= letters
        keeps = [frozenset()] * len(entry.signatures)
    entry.signatures = [replace(s, costs=k) for s, k in zip(entry.signatures, keeps, strict=True)]


def _finish_flags(name: str, entry: Entry) -> None:
    if all(isinstance(s.returns, (ScalarReturn, HostReturn)) for s in entry.signatures):
        entry.flags -= set("pr")  # torch tags `equal` as pointwise
    if name == "tolist":
        entry.flags.add("l")
    in_place = name.endswith("_") and not name.endswith("__")
    augmented = name.startswith("__i") and name not in {
        "__int__",
        "__index__",
        "__invert__",
        "__iter__",
        "__init__",
    }
    if in_place or augmented:
        entry.flags.add("m")


def attribute_return(
    name: str,
    annotated: Return,
    prober_describe: Callable[[Any], Return],
    samples: Sequence[torch.Tensor],
) -> Return:
    """Return the type of a Tensor attribute, from its annotation and from looking at samples."""
    seen: list[Observation] = []
    for tensor in samples:
        try:
            value = getattr(tensor, name)
        except FAILURES:
            continue
        seen.append(
            Observation((category(tensor.dtype),), (), (tensor.dim(),), prober_describe(value))
        )
    return settle(annotated, [o for o in seen if o.result not in {UNKNOWN, HostReturn("N")}])
