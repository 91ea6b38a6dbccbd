"""The cost of one statement, spread over the ranks of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Shares:
    """The share of each rank at one statement: its counts, and the seconds it spent."""

    counts: Mapping[int, int]
    seconds: Mapping[int, float]

    @property
    def slowest(self) -> int:
        """The rank that spent most; where nothing is timed, the one that counted most."""
        return max(self.counts, key=lambda rank: (self.seconds[rank], self.counts[rank], -rank))

    @property
    def spread(self) -> float:
        """Seconds between the slowest rank and the fastest."""
        return max(self.seconds.values()) - min(self.seconds.values())

    @property
    def count_spread(self) -> int:
        """The highest count of a rank minus the lowest."""
        return max(self.counts.values()) - min(self.counts.values())

    def part(self, place: int, parts: int) -> Shares:
        """Return one of so many equal parts of these shares."""
        return Shares(
            {rank: part_of(count, place, parts) for rank, count in self.counts.items()},
            {rank: spent / parts for rank, spent in self.seconds.items()},
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the same as plain values, for JSON."""
        return {
            "counts": {str(rank): count for rank, count in self.counts.items()},
            "seconds": {str(rank): spent for rank, spent in self.seconds.items()},
            "slowest": self.slowest,
            "spread": {"count": self.count_spread, "seconds": self.spread},
        }


def part_of(count: int, place: int, parts: int) -> int:
    """Return one of so many parts of a count; together they are the count."""
    return count // parts + (place < count % parts)
