"""Reports that `torchperf run --json` wrote: what each statement cost, and how it was counted.

A report is data: read whole or not at all. This module knows nothing about torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard, TypeVar

from flake8_torchperf.history.data_files import DataFileError, FileKind, parse_document, read_text

VERSION = 1
MARK = "torchperf-run"
MAX_BYTES = 256 * 1024 * 1024

_T = TypeVar("_T")

# The file, the function, the digest of the text, and the number of equal statements before it.
StatementKey: TypeAlias = "tuple[str, str, str, int]"


class RunRecordError(DataFileError):
    """A report that can't be used. The text is one line: what, where, what to do."""


KIND = FileKind(
    "report of a run", MARK, VERSION, MAX_BYTES, "torchperf run --json FILE", RunRecordError
)

COSTS = (
    "waits",
    "on_host",
    "waiting_transfers",
    "non_blocking_transfers",
    "seeming_transfers",
)
"""The costs of a statement: waits, reads of tensors that are on the host everywhere, and copies
that wait, that do not, and that only look asynchronous."""


@dataclass(frozen=True)
class StatementCost:
    """The costs of a statement in a run, by the names in `COSTS`; ``line`` and ``text`` are shown.

    ``counted`` is the part after the warm-up, None where the run counted no steps.
    """

    key: StatementKey
    line: int
    text: str
    whole: Mapping[str, int]
    counted: Mapping[str, int] | None = None


@dataclass(frozen=True)
class RunRecord:
    """A report. ``steps`` is how many steps were counted after the warm-up, None without steps.

    ``files`` are the names of all files in which something ran, whether or not it cost anything.
    """

    path: Path
    command: tuple[str, ...]
    device: str
    level: str
    torch: str
    ended: str
    processes: int
    files: frozenset[str]
    costs: tuple[StatementCost, ...]
    steps: int | None = None
    warmup: int = 0

    @property
    def is_cut_short(self) -> bool:
        """True if the program ended by an error or a signal, so that its counts are of a part."""
        return self.ended not in ("returned", "SystemExit")

    @property
    def has_steps(self) -> bool:
        """True if all costs are known per step, after the warm-up."""
        return bool(self.steps) and all(one.counted is not None for one in self.costs)


def read_record(path: Path) -> RunRecord:
    """Read a report. Raises `RunRecordError`."""
    data = parse_document(read_text(path, KIND), path, KIND)
    texts = {name: data.get(name) for name in ("device", "level", "torch", "ended")}
    command, files, ranks = data.get("command"), data.get("files"), data.get("ranks")
    if not all(isinstance(one, str) for one in texts.values()):
        raise KIND.wrong(path, "device, level, torch or ended is missing")
    if not _is_list(command, str) or not _is_list(files, dict) or not isinstance(ranks, list):
        raise KIND.wrong(path, "command, files or ranks is missing")
    steps, warmup = _steps(data.get("steps"), path)
    return RunRecord(
        path=path,
        command=tuple(command),
        processes=max(1, len(ranks)),
        files=frozenset(str(one.get("path")) for one in files),
        costs=tuple(_costs(files, path)),
        steps=steps,
        warmup=warmup,
        **{name: str(text) for name, text in texts.items()},
    )


def _is_list(value: Any, of: type[_T]) -> TypeGuard[list[_T]]:
    return isinstance(value, list) and all(isinstance(one, of) for one in value)


def _steps(data: Any, path: Path) -> tuple[int | None, int]:
    if data is None:
        return None, 0
    if not isinstance(data, dict) or not all(_is_count(data.get(n)) for n in ("warmup", "counted")):
        raise KIND.wrong(path, '"steps" holds no counts')
    return data["counted"] or None, data["warmup"]


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _costs(files: list[dict[str, Any]], path: Path) -> Iterator[StatementCost]:
    for file in files:
        name, rows = file.get("path"), file.get("statements")
        if not isinstance(name, str) or not _is_list(rows, dict):
            raise KIND.wrong(path, f"the statements of {name!r} are missing")
        for row in rows:
            cost = _cost(name, row)
            if cost is None:
                raise KIND.wrong(path, f"a statement of {name!r} is wrong")
            yield cost


def _cost(name: str, row: Mapping[str, Any]) -> StatementCost | None:
    function, digest, text = row.get("function"), row.get("digest"), row.get("text")
    if not (isinstance(function, str) and isinstance(digest, str) and isinstance(text, str)):
        return None
    counted = row.get("counted")
    numbers = [row.get(one) for one in ("line", "nth", *COSTS)]
    if counted is not None:
        if not isinstance(counted, dict):
            return None
        numbers += [counted.get(one) for one in COSTS]
    if not all(map(_is_count, numbers)):
        return None
    return StatementCost(
        key=(name, function, digest, row["nth"]),
        line=row["line"],
        text=text,
        whole={one: row[one] for one in COSTS},
        counted=None if counted is None else {one: counted[one] for one in COSTS},
    )
