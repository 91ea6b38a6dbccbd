"""The lines that changed since a commit, as git says it."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Iterator

# A part of a change: the first line of the new text, and how many lines it has.
_PART = re.compile(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@")
_FILE = "+++ "
# Options that make the output the same under every configuration of git.
_PLAIN = (
    "--unified=0", "--no-color", "--no-ext-diff", "--no-renames", "--src-prefix=a/",
    "--dst-prefix=b/", "--diff-filter=d",
)  # fmt: skip


class ChangeError(ValueError):
    """Git cannot say what changed. The text is one line: why."""


class ChangedLines:
    """The lines of each file that differ from a commit in the working tree."""

    def __init__(self, base: str) -> None:
        self._top = _git("rev-parse", "--show-toplevel").rstrip("\n")
        commit = _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{base}^{{commit}}")
        self._parts = dict(_parts(_git("diff", *_PLAIN, commit.strip(), "--", where=self._top)))
        untracked = _git("ls-files", "--others", "--exclude-standard", "-z", where=self._top)
        self._new = {name for name in untracked.split("\0") if name}

    def touch(self, path: str, first: int, last: int) -> bool:
        """True if one of these lines of a file changed, or the file is not tracked yet."""
        name = self._name(path)
        if name in self._new:
            return True
        return any(start <= last and first < end for start, end in self._parts.get(name, ()))

    def foreign(self, paths: Iterable[str]) -> dict[str, str]:
        """Return for each file that git does not compare the repository that it is in, or ""."""
        found = {path: self._foreign(path) for path in paths}
        return {path: top for path, top in found.items() if top is not None}

    def _foreign(self, path: str) -> str | None:
        folder, top = os.path.dirname(os.path.realpath(path)), os.path.realpath(self._top)
        while folder != top:
            if os.path.exists(os.path.join(folder, ".git")):
                return folder
            above = os.path.dirname(folder)
            if above == folder:
                return ""
            folder = above
        return None

    def _name(self, path: str) -> str:
        """Return a file's path below the repository, as git writes it."""
        name = os.path.relpath(os.path.realpath(path), os.path.realpath(self._top))
        return name.replace(os.sep, "/")


def _parts(diff: str) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """Yield each file of a diff with its changed parts: the first line, and the one after the last.

    A part that only removes lines changes none that is left.
    """
    parts: list[tuple[int, int]] = []
    for line in diff.splitlines():
        if line.startswith(_FILE):
            parts = []
            yield _name(line.removeprefix(_FILE)), parts
        elif (found := _PART.match(line)) is not None:
            start, count = int(found[1]), int(found[2] or 1)
            parts.append((start, start + count))


def _name(quoted: str) -> str:
    """Return the path of a header, which git quotes if it holds special characters."""
    name = quoted.split("\t", 1)[0]
    if name.startswith('"'):
        name = name.strip('"').encode("latin-1").decode("unicode_escape")
        name = name.encode("latin-1").decode("utf-8", "surrogateescape")
    return name.removeprefix("b/")


def _git(*words: str, where: str | None = None) -> str:
    """Return what a git command prints. Raises `ChangeError`."""
    try:
        done = subprocess.run(
            ["git", *words],
            cwd=where,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            check=False,
        )
    except FileNotFoundError:
        raise ChangeError("needs git, which is not installed") from None
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise ChangeError(said[0] if said else f"git knows no commit {words[-1].partition('^')[0]}")
    return done.stdout
