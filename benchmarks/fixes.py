"""Waits that engineers removed from published code: how many the linter finds before the fix.

    python benchmarks/fixes.py --repositories DIR [--list benchmarks/fixes_blind.txt] [--misses]

DIR holds clones as OWNER/NAME or OWNER+NAME (bare ones too, or one folder deeper), with history.
For each commit of the list its parent's Python files are written to a temporary folder, and the
file is linted there, in the default scope and in scope `all`. A commit is found if any of its
lines is found: if a finding begins at the line, or names it as one of the reads that follow.
After the fix, the lines that replaced them are linted: a commit is silent there if no line
carries a finding by default. Some fixes leave a wait on such a line, or add another; a second
figure leaves out findings that readers judged to be true (`judged/*-after-fixes.jsonl`, A or B).
For comparison, the output says what a search for `.item(`, `.tolist(`, `.cpu(`, `.numpy(` and
`.nonzero(` would find.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

LIST = Path(__file__).with_name("fixes.txt")
JUDGED = Path(__file__).with_name("judged")
NAMES = re.compile(r"\.(?:item|tolist|cpu|numpy|nonzero)\(")
WAYS = ("default", "all", "name search")


@dataclass(frozen=True)
class Fix:
    """One file of one commit, with the lines that waited before it."""

    repository: str
    commit: str
    path: str
    lines: tuple[int, ...]


def read_list(text: str) -> list[Fix]:
    """Return the fixes of a list; raises ValueError for a line that is not a fix."""
    fixes = []
    for row in text.splitlines():
        if not row.startswith("#"):
            repository, commit, path, lines = row.split()
            fixes.append(Fix(repository, commit, path, tuple(map(int, lines.split(",")))))
    return fixes


def find_repository(folder: Path, name: str) -> Path | None:
    """Return the git directory of a clone; None if there is none."""
    for base in (folder / name, folder / name.replace("/", "+")):
        for place in (base, base / ".git", base / "repo", *sorted(base.glob("*/"))):
            if (place / "HEAD").is_file():
                return place
    return None


def git(repository: Path, *arguments: str, given: bytes = b"") -> bytes:
    """Return what a git command prints; raises CalledProcessError if it fails."""
    command = ["git", f"--git-dir={repository}", *arguments]
    return subprocess.run(command, input=given, capture_output=True, check=True).stdout


def extract(
    repository: Path, revision: str, top: str, target: Path, endings: tuple[str, ...] = (".py",)
) -> None:
    """Write the files with some endings, Python's by default, below one folder of a revision."""
    listed = git(repository, "ls-tree", "-r", "-z", revision, "--", top).decode()
    rows = [row.split(None, 3) for row in listed.split("\0") if row.endswith(endings)]
    wanted = "".join(f"{row[2]}\n" for row in rows)
    answer = git(repository, "cat-file", "--batch", given=wanted.encode())
    at = 0
    for row in rows:
        end = answer.index(b"\n", at)
        head = answer[at:end].split()
        if head[1] != b"blob":  # a snapshot may lack large files
            at = end + 1
            continue
        size = int(head[2])
        file = target / row[3]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(answer[end + 1 : end + 1 + size])
        at = end + 2 + size


# The files by which the linter sees that a package is installed elsewhere.
PACKAGING = ("pyproject.toml", "setup.py", "setup.cfg")


def extract_with_packaging(repository: Path, revision: str, path: str, target: Path) -> None:
    """Write the Python files below the top folder of a path, and the packaging of the revision."""
    extract(repository, revision, path.partition("/")[0], target)
    listed = git(repository, "ls-tree", "--name-only", revision).decode().splitlines()
    for name in PACKAGING:
        if name in listed:
            (target / name).write_bytes(git(repository, "show", f"{revision}:{name}"))


HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def replaced(repository: Path, fix: Fix) -> set[int]:
    """Return the lines with which a commit replaced the lines that waited."""
    ranges = [f"{fix.commit}~1", fix.commit]
    diff = git(repository, "diff", "-U0", *ranges, "--", fix.path).decode(errors="replace")
    found: set[int] = set()
    for row in diff.splitlines():
        hunk = HUNK.match(row)
        if hunk is None:
            continue
        old, removed, new, added = (int(part or 1) for part in hunk.groups())
        if any(old <= line < old + removed for line in fix.lines):
            found.update(range(new, new + added))
    return found


def noisy_after(repository: Path, fix: Fix) -> set[int]:
    """Return the lines put in their place that are reported by default."""
    wanted = replaced(repository, fix)
    if not wanted:
        return set()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        extract_with_packaging(repository, fix.commit, fix.path, folder)
        if not (folder / fix.path).is_file():  # the fix removed it
            return set()
        return found_lines(folder, fix.path, "hot") & wanted


def left_by_fixes() -> set[tuple[str, str, str, int]]:
    """Return the lines after a fix that readers judged to wait still, by repository and commit."""
    return {
        (row["repository"], row["commit"][:10], row["path"], row["line"])
        for file in JUDGED.glob("*-after-fixes.jsonl")
        for row in map(json.loads, file.read_text(encoding="utf-8").splitlines())
        if row["verdict"] in "AB"
    }


def found_lines(folder: Path, path: str, scope: str) -> set[int]:
    """Return the lines that the linter reports in a file."""
    return set(found_rows(folder, path, scope))


# The end of the message of a finding that stands for several reads in a row.
FOLLOWED = re.compile(r"more (?:read|wait)s? (?:at|to) line (\d+)")


def found_rows(folder: Path, path: str, scope: str) -> dict[int, int]:
    """Return the lines that the linter reports, each with the last line that it names."""
    command = [sys.executable, "-m", "flake8", "--isolated", "--select=TPF", "-j1"]
    command += [f"--torchperf-scope={scope}", "--format=%(row)d %(text)s", path]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"flake8 failed on {path}: {done.stderr.strip()}")
    rows: dict[int, int] = {}
    for told in done.stdout.splitlines():
        line = int(told.partition(" ")[0])
        followed = FOLLOWED.search(told)
        rows[line] = max(rows.get(line, line), int(followed[1]) if followed else line)
    return rows


def answers(repository: Path, fix: Fix) -> dict[str, set[int]]:
    """Return the lines of a fix that each way of looking finds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        extract_with_packaging(repository, f"{fix.commit}~1", fix.path, folder)
        source = (folder / fix.path).read_text(encoding="utf-8").splitlines()
        rows = found_rows(folder, fix.path, "hot")
        alone = found_lines(folder, fix.path, "all")  # scope all reports each read by itself
        named = {n for n in alone if any(first < n <= last for first, last in rows.items())}
        found = {
            "default": rows.keys() | named,
            "all": alone,
            "name search": {n for n in fix.lines if NAMES.search(source[n - 1])},
        }
    return {way: lines & set(fix.lines) for way, lines in found.items()}


def main() -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="Score the linter on waits that were removed.")
    parser.add_argument("--repositories", type=Path, required=True, metavar="DIR")
    parser.add_argument("--list", type=Path, default=LIST, help="default: fixes.txt")
    parser.add_argument("--misses", action="store_true", help="name the lines not found")
    arguments = parser.parse_args()
    lines: dict[str, int] = defaultdict(int)
    commits: dict[str, set[tuple[str, str]]] = defaultdict(set)
    noisy: set[tuple[str, str]] = set()
    wrong: set[tuple[str, str]] = set()
    left = left_by_fixes()
    for fix in read_list(arguments.list.read_text(encoding="utf-8")):
        repository = find_repository(arguments.repositories, fix.repository)
        if repository is None:
            print(f"left out: {fix.repository} is not in {arguments.repositories}")
            continue
        try:
            found = answers(repository, fix)
            after = noisy_after(repository, fix)
        except (subprocess.CalledProcessError, OSError) as error:
            print(f"left out: {fix.repository} {fix.commit} {fix.path}: {error}")
            continue
        found["known"] = set(fix.lines)
        if after:
            noisy.add((fix.repository, fix.commit))
        if any((fix.repository, fix.commit[:10], fix.path, line) not in left for line in after):
            wrong.add((fix.repository, fix.commit))
        for way, hits in found.items():
            lines[way] += len(hits)
            if hits:
                commits[way].add((fix.repository, fix.commit))
        for line in fix.lines if arguments.misses else ():
            if line not in found["default"]:
                only = " (scope all finds it)" if line in found["all"] else ""
                print(f"missed: {fix.repository} {fix.commit} {fix.path}:{line}{only}")
        for line in sorted(after) if arguments.misses else ():
            print(f"still reported: {fix.repository} {fix.commit} {fix.path}:{line}")
    all_lines, all_commits = lines["known"], len(commits["known"])
    print(f"{all_commits} commits, {all_lines} lines")
    for way in WAYS:
        of_commits, of_lines = len(commits[way]) / all_commits, lines[way] / all_lines
        print(f"  {way:12} {of_commits:6.1%} of the commits, {of_lines:6.1%} of the lines")
    silent, right = 1 - len(noisy) / all_commits, 1 - len(wrong) / all_commits
    print(f"  after the fix {silent:6.1%} of the commits are silent by default")
    print(f"                {right:6.1%} but for waits that the fix leaves, as judged")
    return 0


if __name__ == "__main__":
    sys.exit(main())
