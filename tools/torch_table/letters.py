"""Find the dtype and rank letters of the table that explain all observations.

Pure functions: the observations of `probe` and the annotation in, one `Return` out.
"""

from __future__ import annotations

from collections.abc import Sequence

from flake8_torchperf.knowledge.returns import (
    UNKNOWN,
    HostReturn,
    ListReturn,
    Return,
    ScalarReturn,
    TensorReturn,
    TupleReturn,
    common_return,
)
from torch_table.probe import Observation

_ORDER = "bifc"


def settle(annotated: Return, observations: Sequence[Observation]) -> Return:
    """Return the `Return` that fits both; if they contradict each other, the observations win."""
    if not observations:
        return annotated
    return _settle(annotated, [(seen, seen.result) for seen in observations])


def changed(settled: Return, plain: Return, seen: Return) -> Return:
    """Return the settled return of a call with an option added.

    `plain` and `seen` come from the same few samples without and with the option: a letter that is
    the same in both keeps the letter that all samples settled.
    """
    if plain == seen:
        return settled
    match settled, plain, seen:
        case TensorReturn(), TensorReturn(), TensorReturn():
            return TensorReturn(
                settled.dtype if plain.dtype == seen.dtype else seen.dtype,
                settled.rank if plain.rank == seen.rank else seen.rank,
            )
        case TupleReturn(), TupleReturn(), TupleReturn() if (
            len(settled.items) == len(plain.items) == len(seen.items)
        ):
            triples = zip(settled.items, plain.items, seen.items, strict=True)
            return TupleReturn(tuple(changed(*triple) for triple in triples), settled.names)
        case ListReturn(), ListReturn(), ListReturn():
            return ListReturn(changed(settled.item, plain.item, seen.item))
    return seen


def _settle(annotated: Return, seen: Sequence[tuple[Observation, Return]]) -> Return:
    found = [(o, result) for o, result in seen if result != HostReturn("N")]
    seen = (
        found or seen
    )  # None means an absent result: a caller that uses the result has the other form
    results = [result for _, result in seen]
    if all(isinstance(result, TensorReturn) for result in results):
        return _tensor(seen)
    if all(isinstance(result, (TupleReturn, ListReturn)) for result in results):
        return _sequence(annotated, seen)
    kinds = set(results)
    if len(kinds) == 1:
        only = results[0]
        return annotated if only == UNKNOWN else only
    if HostReturn("L") in kinds and all(
        isinstance(r, ScalarReturn) or r == HostReturn("L") for r in kinds
    ):
        return HostReturn("L")
    if all(isinstance(result, ScalarReturn) for result in results):
        return annotated if isinstance(annotated, ScalarReturn) else common_return(results)
    return UNKNOWN if annotated == UNKNOWN else annotated


def _sequence(annotated: Return, seen: Sequence[tuple[Observation, Return]]) -> Return:
    lengths = {len(result.items) for _, result in seen if isinstance(result, TupleReturn)}
    fixed = len(lengths) == 1 and all(isinstance(result, TupleReturn) for _, result in seen)
    if isinstance(annotated, ListReturn) or not fixed:
        hint = annotated.item if isinstance(annotated, ListReturn) else UNKNOWN
        items = [(o, item) for o, result in seen for item in _items(result)]
        return ListReturn(_settle(hint, items)) if items else annotated
    hints: tuple[Return, ...] = (UNKNOWN,) * next(iter(lengths))
    names = seen[0][1].names if isinstance(seen[0][1], TupleReturn) else None
    if isinstance(annotated, TupleReturn) and len(annotated.items) == len(hints):
        hints, names = annotated.items, annotated.names or names
    columns = zip(*(_items(result) for _, result in seen), strict=True)
    observations = [o for o, _ in seen]
    return TupleReturn(
        tuple(
            _settle(hint, list(zip(observations, column, strict=True)))
            for hint, column in zip(hints, columns, strict=True)
        ),
        names,
    )


def _items(value: Return) -> tuple[Return, ...]:
    if isinstance(value, TupleReturn):
        return value.items
    return (value.item,) if isinstance(value, ListReturn) else ()


def _tensor(seen: Sequence[tuple[Observation, Return]]) -> TensorReturn:
    pairs = [(o, result) for o, result in seen if isinstance(result, TensorReturn)]
    dtypes = [(o, result.dtype) for o, result in pairs]
    ranks = [(o, int(result.rank)) for o, result in pairs]
    return TensorReturn(_dtype_letter(dtypes), _rank_letter(ranks))


def _dtype_letter(seen: Sequence[tuple[Observation, str]]) -> str:
    for considered in (seen, [(o, letter) for o, letter in seen if "c" not in o.dtypes]):
        letters = {letter for _, letter in considered}
        if not considered:
            continue
        if len(letters) == 1:
            return next(iter(letters))
        with_tensor = all(o.dtypes for o, _ in considered)
        if with_tensor and all(letter == o.dtypes[0] for o, letter in considered):
            return "="
        if with_tensor and all(letter == _numeric(o.dtypes[0]) for o, letter in considered):
            return "n"
        if not all(o.dtypes or o.numbers for o, _ in considered):
            continue
        if not with_tensor and all(
            letter == _numeric(max(o.numbers, key=_ORDER.index)) for o, letter in considered
        ):
            return "n"
        if all(
            letter == max((*o.dtypes, *o.numbers), key=_ORDER.index) for o, letter in considered
        ):
            return "^"
    return "?"


def _numeric(letter: str) -> str:
    return "i" if letter == "b" else letter


def _rank_letter(seen: Sequence[tuple[Observation, int]]) -> str:
    ranks = {rank for _, rank in seen}
    inputs = {o.ranks for o, _ in seen}
    if ranks == {0} and any(not o.ranks or max(o.ranks) > 0 for o, _ in seen):
        return "0"
    if any(not o.ranks for o, _ in seen) or len({ranks_in[0] for ranks_in in inputs}) < 2:
        return "?"
    if all(rank == o.ranks[0] for o, rank in seen):
        return "="
    if all(rank == max(o.ranks) for o, rank in seen):
        return "^"
    return "?"
