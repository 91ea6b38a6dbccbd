"""Cached findings: a key in, the records of an earlier run out; or lines in, records out.

The second is for ``--torchperf-cache`` under flake8 itself, where each editor's keystroke may be a
new process.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from flake8_torchperf.cache.entries import SWEEP_EVERY, Store
from flake8_torchperf.cache.folder import cache_folder
from flake8_torchperf.cache.key import conditions
from flake8_torchperf.cache.memory import Memory
from flake8_torchperf.digest import digest
from flake8_torchperf.history.finding_record import FindingRecord, restored
from flake8_torchperf.project.stores.shelf import keep_on

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from flake8_torchperf.cache.memory import Again
    from flake8_torchperf.options import Options

# Below flake8's logger: `flake8 -v` shows it.
LOG = logging.getLogger("flake8.torchperf")


def remembered(
    lines: Sequence[str],
    filename: str,
    memory: Memory,
    analyse: Callable[[dict[str, str]], list[FindingRecord]],
    again: Again,
) -> list[FindingRecord]:
    """Return the findings in ``lines``: recalled, or those of ``analyse``, which gets ``reads``.

    ``again`` asks the questions that only an analysis can answer.

    If the cache can't be written, the log says so and linting continues.
    """
    key = memory.key(filename, digest("".join(lines).encode("utf-8", "surrogatepass")))
    known = recalled(memory, key, again)
    if known is not None:
        return known
    reads: dict[str, str] = {}
    found = analyse(reads)
    try:
        memory.store.prepare()
        memory.keep(key, found, reads)
        memory.store.sweep(SWEEP_EVERY)
    except OSError as error:
        LOG.warning("findings can't be remembered: %s", error)
    return found


def memory_of(options: Options, more: Sequence[str] = ("findings",)) -> Memory:
    """Return the memory of one run with these options; files are taken not to change during it.

    ``more`` lists what else the records depend on.
    """
    store = Store(cache_folder(options.cache_folder))
    keep_on(store)
    return Memory(store, conditions(options, more))


def recalled(memory: Memory, key: str, again: Again | None = None) -> list[FindingRecord] | None:
    """Return the findings under a key; an entry that holds something else is a miss."""
    rows = memory.recall(key, again)
    if rows is None:
        return None
    found = [told for row in rows if (told := restored(row)) is not None]
    return found if len(found) == len(rows) else None
