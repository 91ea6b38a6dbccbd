"""One overload of a torch call, and the choice among several by the kinds of the arguments.

Kinds of arguments, as far as the caller knows them:

`T` tensor, `Tl` list or tuple of tensors, `i` int, `b` bool, `1` the literal True, `0` the literal
False, `-` the literal None, `f` float, `n` some number, `s` str, `Y` dtype, `D` device, `Z` Size or
list of ints, `x` unknown. Parameters have the same types; a parameter of type `1` or `0` marks an
overload that applies only where the flag is given that value.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from flake8_torchperf.knowledge.returns import Return, TensorReturn, common_return, parse_return

# How well an argument's kind fits a parameter's type: 3 exactly, 2 by a conversion that torch
# makes, 1 because one of the two is unknown. Pairs that are not listed do not fit.
_FITS: dict[tuple[str, str], int] = {
    ("b", "1"): 3,
    ("b", "0"): 3,
    ("1", "b"): 3,
    ("0", "b"): 3,
    ("1", "1"): 4,
    ("0", "0"): 4,
    ("i", "n"): 3,
    ("f", "n"): 3,
    ("n", "i"): 2,
    ("n", "f"): 2,
    ("b", "n"): 2,
    ("1", "n"): 2,
    ("0", "n"): 2,
    ("b", "i"): 2,
    ("1", "i"): 2,
    ("0", "i"): 2,
    ("i", "f"): 2,
    ("i", "Z"): 3,  # an int is accepted where a list of ints is, as in `sum(dim=1)`
    ("n", "Z"): 2,
    ("i", "b"): 2,
    ("s", "D"): 2,
    ("i", "D"): 2,
    ("D", "s"): 1,
    # torch reads a zero-dimensional tensor where a number is expected; a better fit is preferred.
    ("T", "i"): 1,
    ("T", "n"): 1,
    ("T", "f"): 1,
    ("Tl", "T"): 0,  # a function that takes a tensor or a sequence of them declares only the tensor
    ("T", "Tl"): 1,
    ("Z", "Tl"): 0,
}


# Types of which several may be given one after the other: `x.view(2, -1)` for `x.view((2, -1))`.
SIZE_KINDS = frozenset(("Z", "Tl", "x"))


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter. `form` is `positional`, `keyword`, `variadic` (`*sizes`) or `keywords`
    (`**options`).
    """

    name: str
    type: str
    optional: bool
    form: str


@dataclass(frozen=True, slots=True)
class Overload:
    """One way to call an operation, and what it then returns."""

    params: tuple[Param, ...]
    returns: Return
    flags: frozenset[str] = frozenset()  # flags of this overload, besides those of all overloads

    def fit(self, positional: Sequence[str], keywords: Mapping[str, str]) -> int | None:
        """Return how well the arguments suit (higher is better), or None if they do not suit."""
        bound = self._bind(positional, keywords)
        if bound is None:
            return None
        total = 0
        given = set()
        for param, kind in bound:
            if kind == "-" and param.optional:
                continue
            fit = _fit(kind, param.type)
            if fit is None:
                return None
            given.add(param.name)
            # An overload that requires the argument is more specific than one that only allows it.
            total += 2 * fit + (not param.optional and param.type not in {"0", "1"})
        for param in self.params:
            if (
                param.form in {"positional", "keyword"}
                and not param.optional
                and param.name not in given
            ):
                return None
        return total

    def given(
        self, positional: Sequence[str], keywords: Collection[str] | Mapping[str, str] = ()
    ) -> dict[str, str]:
        """Return the kinds of the arguments by parameter name; empty where they do not suit."""
        named = keywords if isinstance(keywords, Mapping) else dict.fromkeys(keywords, "x")
        bound = self._bind(positional, named) or []
        return {param.name: kind for param, kind in bound if not (kind == "-" and param.optional)}

    def is_given(self, type_: str, positional: Sequence[str], keywords: Mapping[str, str]) -> bool:
        """True if an argument is bound to a parameter of that type."""
        names = self.given(positional, keywords)
        return any(param.type == type_ and param.name in names for param in self.params)

    def takes(self, count: int) -> bool:
        """True if ``count`` arguments can be given by position."""
        open_ended = any(p.form == "variadic" or p.type in SIZE_KINDS for p in self.params)
        return open_ended or sum(p.form == "positional" for p in self.params) >= count

    def _bind(
        self, positional: Sequence[str], keywords: Mapping[str, str]
    ) -> list[tuple[Param, str]] | None:
        bound: list[tuple[Param, str]] = []
        slots = [param for param in self.params if param.form in {"positional", "variadic"}]
        for kind in positional:
            if not slots:
                return None
            param = slots[0] if slots[0].form == "variadic" else slots.pop(0)
            bound.append((param, kind))
        open_names = {p.name: p for p in self.params if p.form in {"positional", "keyword"}}
        for param, _ in bound:
            open_names.pop(param.name, None)
        rest = next((param for param in self.params if param.form == "keywords"), None)
        for name, kind in keywords.items():
            param_or_none = open_names.get(name, rest)
            if param_or_none is None:
                return None
            bound.append((param_or_none, kind))
        return bound


def _fit(kind: str, type_: str) -> int | None:
    if kind == type_ and kind != "x":
        return 3 if kind not in {"1", "0"} else 4
    if type_ == "-":
        return None
    if (kind, type_) in _FITS:
        return _FITS[kind, type_]
    if kind == type_:
        return 0  # unknown to unknown: an overload that declares a type is the likelier one
    if "x" in (kind, type_):
        return 1
    return None


@cache
def parse_overload(text: str) -> Overload:
    """Return the overload of its compact text form, `PARAMS->RETURN`.

    Raises ValueError if the text is malformed.
    """
    params, arrow, rest = text.rpartition("->")
    if not arrow:
        raise ValueError(f"no arrow in overload {text!r}")
    returned, _, flags = rest.partition("!")
    return Overload(_parse_params(params), parse_return(returned), frozenset(flags))


def _parse_params(text: str) -> tuple[Param, ...]:
    params: list[Param] = []
    form = "positional"
    for part in text.split(",") if text else ():
        if part == "*":
            form = "keyword"
            continue
        name, _, type_ = part.partition(":")
        optional = type_.endswith("=")
        type_ = type_.removesuffix("=") or "x"
        if name.startswith("**"):
            params.append(Param(name[2:], type_, True, "keywords"))
        elif name.startswith("*"):
            params.append(Param(name[1:], type_, True, "variadic"))
            form = "keyword"
        else:
            params.append(Param(name, type_, optional, form))
    return tuple(params)


def best_fitting(
    overloads: Sequence[Overload],
    positional: Sequence[str],
    keywords: Collection[str] | Mapping[str, str] = (),
) -> tuple[Overload, ...]:
    """Return the overloads that suit the arguments best: several if equally well, or none."""
    named = keywords if isinstance(keywords, Mapping) else dict.fromkeys(keywords, "x")
    scored = [(overload.fit(positional, named), overload) for overload in overloads]
    best = max((score for score, _ in scored if score is not None), default=None)
    return () if best is None else tuple(overload for score, overload in scored if score == best)


def resolve(
    overloads: Sequence[Overload],
    positional: Sequence[str],
    keywords: Collection[str] | Mapping[str, str] = (),
) -> Return:
    """Return what the best matching overload returns.

    If several match equally well, the result is what they have in common; if none matches, it is
    Unknown. If a dtype is passed, the dtype of a returned tensor is unknown here: only the caller
    knows the argument.
    """
    named = keywords if isinstance(keywords, Mapping) else dict.fromkeys(keywords, "x")
    best = best_fitting(overloads, positional, named)
    result = common_return(overload.returns for overload in best)
    if isinstance(result, TensorReturn) and any(o.is_given("Y", positional, named) for o in best):
        return TensorReturn("?", result.rank)
    return result
