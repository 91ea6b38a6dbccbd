"""The parts of other files that an entry rests on, with their answers: as recorded, and on disk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flake8_torchperf.digest import digest_of
from flake8_torchperf.project.answers import ALL, FOLLOWED, GIVES, PART

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


@dataclass(slots=True)
class FollowedFunction:
    """A function that calls are followed into.

    ``text`` is the digest of its text. ``given`` holds by question the answers that only an
    analysis can give (`interpreter/engine/followed.py`): they count if the text has changed.
    """

    text: str
    given: dict[str, str]


@dataclass(slots=True)
class Read:
    """A file that an entry rests on, by its path.

    ``content`` is the digest of the file and ``packages`` the folders around it
    (`Memory._packages_above`). ``parts`` lists what was asked of it; empty if all of it counts.
    ``answer`` is the digest of the answers, and ``followed`` holds functions by name.
    """

    path: str
    content: str
    packages: str
    parts: list[str]
    answer: str
    followed: dict[str, FollowedFunction]

    def given(self) -> list[tuple[str, str]]:
        """Return the questions of what calls give, with the answers."""
        return [one for held in self.followed.values() for one in held.given.items()]

    def as_data(self, start: int) -> list[Any]:
        """Return the read as JSON can hold it, the path from a character on."""
        followed = [[name, one.text, one.given] for name, one in self.followed.items()]
        fields = (self.content, self.packages, self.parts, self.answer, followed)
        return [self.path[start:], *fields]


def reads_from(data: Any, prefix: str) -> list[Read] | None:
    """Return the reads of an entry; None if it holds something else."""
    if not isinstance(data, list):
        return None
    found = []
    for one in data:
        if not _is_read(one):
            return None
        name, content, packages, parts, answer, held = one
        followed = {function: FollowedFunction(text, given) for function, text, given in held}
        found.append(Read(prefix + name, content, packages, parts, answer, followed))
    return found


# The types of the fields of a read, and of a function in it.
_READ = [str, str, str, list, str, list]
_FOLLOWED = [str, str, dict]


def _is_read(read: Any) -> bool:
    """True for a list of what a read holds; an entry may hold thousands."""
    return (
        isinstance(read, list)
        and [*map(type, read)] == _READ
        and {*map(type, read[3])} <= {str}
        and all(map(_is_followed, read[5]))
    )


def _is_followed(one: Any) -> bool:
    return (
        isinstance(one, list)
        and [*map(type, one)] == _FOLLOWED
        and {*map(type, one[2].values())} <= {str}
    )


def parts_read(reads: Mapping[str, str]) -> dict[str, list[str]]:
    """Return by path, in order, the parts that were requested; empty if the whole file counts."""
    parts: dict[str, list[str]] = {path: [] for path in sorted(reads) if PART not in path}
    for question in sorted(reads):
        path, separator, part = question.partition(PART)
        if separator and not part.startswith(GIVES):
            parts[path].append(part)
    return {path: [] if ALL in asked else asked for path, asked in parts.items()}


def answer_read(reads: Mapping[str, str], path: str, parts: Sequence[str]) -> str:
    """Return the digest of the answers that were read of a path; "" where all of it counts."""
    return digest_of(reads[f"{path}{PART}{part}"] for part in parts) if parts else ""


def followed_in(
    reads: Mapping[str, str], path: str, parts: Iterable[str]
) -> dict[str, FollowedFunction]:
    """Return the functions of a path that calls are followed into, still without what they give."""
    followed = [part for part in parts if part.startswith(FOLLOWED)]
    return {
        part.removeprefix(FOLLOWED): FollowedFunction(answer_read(reads, path, [part]), {})
        for part in followed
    }


def given_in(reads: Mapping[str, str]) -> dict[tuple[str, str], dict[str, str]]:
    """Return by path and function the questions of what calls give, with the answers."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for question, answer in sorted(reads.items()):
        path, _, part = question.partition(PART)
        if part.startswith(GIVES):
            function, _, asked = part.removeprefix(GIVES).partition(" ")
            found.setdefault((path, function), {})[asked] = answer
    return found


def without_followed(parts: Iterable[str]) -> list[str]:
    """Return the parts whose answers count whatever calls give."""
    return [part for part in parts if not part.startswith(FOLLOWED)]
