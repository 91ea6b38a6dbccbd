"""Every fixture is linted against its trailing comments, and executed before and after."""

from __future__ import annotations

import ast
import importlib.util
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from flake8_run import flake8

from flake8_torchperf.runtime.counting.counts import Counts

FIXTURES = Path(__file__).parents[2] / "fixtures"
FOLDERS = sorted(folder for folder in FIXTURES.iterdir() if (folder / "before.py").is_file())
FILES = [folder / name for folder in FOLDERS for name in ("before.py", "after.py")]
LINTED = sorted(FIXTURES.glob("**/*.py"))

_EXPECTED = re.compile(r"#(?:\s*(?:all:)?\s*TPF\d{3}(?:,\s*TPF\d{3})*)+")
_GROUP = re.compile(r"(?:(all):)?\s*((?:TPF\d{3}(?:,\s*)?)+)")


def expectations(path: Path) -> Iterator[tuple[str, int, str]]:
    """Yield scope (hot, all), line and code for every expected finding in a file."""
    source = path.read_text(encoding="utf-8")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and "TPF" in token.string:
            assert _EXPECTED.fullmatch(token.string), f"{path}:{token.start[0]}: {token.string}"
            for scope, codes in _GROUP.findall(token.string):
                for code in re.findall(r"TPF\d{3}", codes):
                    yield scope or "hot", token.start[0], code


def expected(path: Path, scopes: set[str]) -> list[tuple[int, str]]:
    return sorted((line, code) for scope, line, code in expectations(path) if scope in scopes)


@pytest.fixture(scope="module")
def linted() -> dict[str, dict[Path, list[tuple[int, str]]]]:
    """What flake8 finds in every fixture, by scope."""
    found: dict[str, dict[Path, list[tuple[int, str]]]] = {}
    for scope in ("hot", "all"):
        run = flake8("--select=TPF", "-j1", f"--torchperf-scope={scope}", FIXTURES)
        by_file = found.setdefault(scope, {path: [] for path in LINTED})
        for result in run.results:
            by_file[Path(result.path)].append((result.line, result.code))
    return found


@pytest.mark.parametrize("path", LINTED, ids=lambda path: f"{path.parent.name}/{path.name}")
@pytest.mark.parametrize(("scope", "comments"), [("hot", {"hot"}), ("all", {"hot", "all"})])
def test_findings_are_the_comments(
    linted: dict[str, dict[Path, list[tuple[int, str]]]],
    scope: str,
    comments: set[str],
    path: Path,
) -> None:
    assert sorted(linted[scope][path]) == expected(path, comments)


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"fixture_{path.parent.name}_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_after_does_the_same_without_the_wait(folder: Path) -> None:
    torch = pytest.importorskip("torch")
    from flake8_torchperf.runtime import DispatchCounter

    before, after = load(folder / "before.py"), load(folder / "after.py")
    counted = getattr(before, "COUNTED", "host_reads")
    allowed = getattr(after, "ALLOWED", 0)

    totals, answers = [], []
    for module in (before, after):
        with DispatchCounter() as counter:
            answers.append(module.run(8))
        totals.append(getattr(counter.evidence.totals, counted))

    torch.testing.assert_close(*answers)
    assert totals[1] <= allowed < totals[0], f"{counted}: before {totals[0]}, after {totals[1]}"


def waits(counts: Counts, counted: str) -> bool:
    # A copy to the device is told from a no-op on a real device only, so it counts where it is the
    # fixture's point.
    return bool(counts.host_reads or counts.dynamic_shapes or getattr(counts, counted))


# What these report is work launched once per element or parameter: no line of it need wait.
LAUNCHES = {"TPF201", "TPF202", "TPF204", "TPF205"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_the_lines_that_wait_are_the_lines_with_comments(path: Path) -> None:
    pytest.importorskip("torch")
    from flake8_torchperf.runtime import DispatchCounter

    module = load(path)
    with DispatchCounter() as counter:
        module.run(8)

    spent = [one for one in counter.evidence.lines if Path(one.path) == path]
    point = getattr(module, "COUNTED", "host_reads")
    counted = point if point == "copies_to_device" else "host_reads"
    waiting = {one.line for one in spent if waits(one.counts, counted)}
    commented = expected(path, {"hot", "all"})
    assert waiting == {line for line, code in commented if code not in LAUNCHES}
    assert {line for line, _ in commented} <= {one.line for one in spent}


def test_every_fixture_says_where_it_comes_from() -> None:
    files = [path for path in LINTED if path.name in ("before.py", "after.py")]
    assert len(files) >= 10
    for path in files:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert (ast.get_docstring(tree) or "").strip(), path
