"""The calls that wait, by the names under which torch hands them to a function mode, with kinds.

Derived from the table that linting uses. `sync_kinds.toml` names the kinds, and the calls that a
recorder has to treat otherwise, each with the reason.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from flake8_torchperf.knowledge.table import Op, TorchTable
from flake8_torchperf.knowledge.table import load as load_table
from flake8_torchperf.knowledge.toml_file import read_toml

DATA: Final = Path(__file__).with_name("sync_kinds.toml")
# The namespaces whose functions torch passes to a function mode, with the prefix of their names.
_NAMESPACES: Final = {"torch": "", "torch.linalg": "linalg_", "torch.nn.functional": ""}
_WAITS: Final = frozenset("hsy")
# How the recorder takes a call that it does not take from the table (see `sync_kinds.toml`).
WAIT, LOOK, ELSEWHERE = AS = ("wait", "look", "elsewhere")


@dataclass(frozen=True)
class WaitingCall:
    """A call that waits, at least with some arguments; ``op`` is None if it does with any."""

    kind: str
    op: Op | None

    @property
    def always(self) -> bool:
        """True if it waits with any arguments."""
        return self.op is None or self.op.always_waits

    def waits(self, positional: Sequence[str], keywords: Mapping[str, str]) -> bool:
        """True if the call waits with arguments of these kinds (see `overloads.py`).

        A method's tensor is the first of them.
        """
        return self.op is None or bool(self.op.flags_for(positional, keywords) & _WAITS)


@dataclass(frozen=True)
class SyncKinds:
    """The calls that wait by name, and the kinds of waits that are inside a kernel."""

    calls: Mapping[str, WaitingCall]
    in_kernel: frozenset[str]

    def direct(self) -> dict[str, str]:
        """Return the kinds of the calls that wait for their own operand, with any arguments."""
        return {
            name: call.kind
            for name, call in self.calls.items()
            if call.kind not in self.in_kernel and call.always
        }


def read() -> dict[str, Any]:
    """Return the content of `sync_kinds.toml`."""
    return read_toml(DATA)


def waiting(table: TorchTable) -> dict[str, Op]:
    """Return the operations that wait by the table, at least with some arguments."""
    return {name: op for name, op in _handed(table) if op.flags & _WAITS}


def _handed(table: TorchTable) -> Iterator[tuple[str, Op]]:
    """Yield methods, then functions, which have the same overloads where both exist."""
    for method in table.method_names():
        op = table.function(f"torch.Tensor.{method}")
        if op is not None:
            yield method, op
    for qualified in table.function_names():
        namespace, _, name = qualified.rpartition(".")
        op = table.function(qualified)
        if namespace in _NAMESPACES and op is not None:
            yield f"{_NAMESPACES[namespace]}{name}", op


def derived(table: TorchTable, data: Mapping[str, Any]) -> SyncKinds:
    """Return the calls that wait by the table, named and changed as `sync_kinds.toml` says."""
    ops: dict[str, Op | None] = dict(waiting(table))
    for row in data["otherwise"]:
        for name in row["calls"]:
            ops.pop(name, None)
            if row["as"] == WAIT:
                ops[name] = _op(name, row.get("overloads", ()))
    kinds = data["kind"]
    return SyncKinds(
        {name: WaitingCall(_kind(name, kinds), op) for name, op in ops.items()},
        frozenset(row["name"] for row in kinds if row.get("in_kernel")),
    )


def _op(name: str, overloads: Collection[str]) -> Op | None:
    return Op(name, tuple(overloads), frozenset()) if overloads else None


def _kind(name: str, kinds: Sequence[Mapping[str, Any]]) -> str:
    for row in kinds:
        begins = row.get("begins")
        if name in row["calls"] or (begins and name.startswith(begins)):
            return str(row["name"])
    return str(kinds[-1]["name"])


@cache
def load() -> SyncKinds:
    """Return the calls that wait, by the table of the installed package."""
    return derived(load_table(), read())
