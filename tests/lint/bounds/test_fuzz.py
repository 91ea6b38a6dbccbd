"""A minute of fuzzing: the same texts in every run; `tools/fuzz.py` makes others for hours."""

from __future__ import annotations

import ast
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from flake8_run import flake8
from fuzzing.check import BrokenError, check, minimised
from fuzzing.modules import strategy
from fuzzing.mutations import TEXT, text_mutation, tree_mutation
from fuzzing.sources import Pieces, files_below, torch_files
from hangs import HANG
from hypothesis import HealthCheck, given, settings

# Each tries many modules.
pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
SEED = 20261121


@pytest.fixture(scope="module")
def pieces() -> Pieces:
    pytest.importorskip("torch")
    return Pieces(torch_files())


@pytest.mark.parametrize("examples", [15, pytest.param(150, marks=pytest.mark.thorough)])
def test_made_up_modules(examples: int) -> None:
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy())
    def each(source: str) -> None:
        check(source)

    each()


@pytest.mark.parametrize("mutation", TEXT, ids=lambda one: one.__name__)
def test_mutated_lines_and_tokens(
    pieces: Pieces, mutation: Callable[[str, random.Random], str]
) -> None:
    rng = random.Random(f"{SEED} {mutation.__name__}")
    valid = 0
    for _ in range(25):
        valid += check(mutation(pieces.draw(rng), rng)).valid
    # A mutation that always breaks the syntax would test Python's parser and not the linter.
    assert valid > 0


def test_mutated_more_than_once(pieces: Pieces) -> None:
    rng = random.Random(SEED)
    for _ in range(100):
        check(text_mutation(pieces.draw(rng), rng))


@pytest.mark.parametrize("mutants", [50, pytest.param(150, marks=pytest.mark.thorough)])
def test_mutated_trees(pieces: Pieces, mutants: int) -> None:
    rng = random.Random(SEED)
    findings = 0
    for _ in range(mutants):
        made = tree_mutation(pieces.draw(rng), pieces.draw(rng), rng)
        if made is not None:
            checked = check(made)
            assert checked.valid
            findings += len(checked.rows)
    assert findings > 20, "the mutants must still be code in which there is something to find"


def test_broken_python_through_flake8(pieces: Pieces, tmp_path: Path) -> None:
    """flake8 builds no plugin for most of these; whatever it does, ours is not in its way."""
    rng = random.Random(SEED)
    for i in range(60):
        text = text_mutation(text_mutation(pieces.draw(rng), rng), rng)
        (tmp_path / f"mutant{i}.py").write_text(text, encoding="utf-8", newline="")
    run = flake8("--select=TPF", "-j1", tmp_path, environment={"TORCHPERF_DEBUG": "1"})
    assert "flake8_torchperf" not in run.errors, run.errors
    assert run.status in (0, 1)
    assert not any(code == "TPF900" for code in run.codes)


def test_a_crash_is_seen_and_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the fuzzer is for, tried on a linter that has a fault."""
    from flake8_torchperf import linter

    def faulty(tree: ast.Module, *_: object) -> list[object]:
        if any(isinstance(node, ast.Lambda) for node in ast.walk(tree)):
            raise ZeroDivisionError
        return []

    monkeypatch.setattr(linter, "lint_tree", faulty)
    source = "import torch\n\n\ndef step(x):\n    key = lambda y: (y, x)\n    return key(x)\n"
    check(source.replace("lambda y: ", ""))
    with pytest.raises(BrokenError) as caught:
        check(source)
    assert caught.value.kind.startswith("ZeroDivisionError at ")
    small = minimised(source, caught.value.kind)
    assert len(small) < 25
    assert "lambda" in small


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        ([(9, 0, "TPF101 x")], "a line that the file has not"),
        ([(1, 80, "TPF101 x")], "a column that the line has not"),
        ([(1, 0, "TPF101 \x1b[2J")], "a message that is not one line of print"),
        ([(2, 0, "TPF101 x"), (1, 0, "TPF101 x")], "not in the order of the file"),
        ([(1, 0, "TPF101 x"), (1, 0, "TPF101 x")], "one finding twice"),
    ],
)
def test_each_promise_is_held(
    monkeypatch: pytest.MonkeyPatch, rows: list[tuple[int, int, str]], kind: str
) -> None:
    from flake8_torchperf.plugin import TorchPerfPlugin

    monkeypatch.setattr(TorchPerfPlugin, "run", lambda self: iter([(*row, None) for row in rows]))
    with pytest.raises(BrokenError) as caught:
        check("import torch\nx = 1\n")
    assert caught.value.kind == kind


def test_the_script(tmp_path: Path) -> None:
    (tmp_path / "source.py").write_text(
        "import torch\n\n\ndef step(x: torch.Tensor):\n    x.item()\n"
    )
    assert [path.name for path in files_below([tmp_path])] == ["source.py"]
    done = subprocess.run(
        [
            sys.executable, str(ROOT / "tools" / "fuzz.py"), "--minutes", "0.03", "--seed", "7",
            "--kind", "text,tree", "--sources", str(tmp_path), "--out", str(tmp_path / "out"),
        ],
        capture_output=True, text=True, timeout=HANG, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("seed 7\n")
    assert "0 broken promises" in done.stdout


# Texts that once broke a promise, as minimised by `tools/fuzz.py`.
CRASHES = {
    "standard input with a lone carriage return": (
        "from torch import s\rfrom m import(o)\rdef h()->e:\r    \"\"\"\"\"\"\r"
        "    if s is n:(f\"{s}\")()\rdef o()->\"\":\"\"\"\"\"\""
    ),
    "a carriage return inside a string": "for 5[torch:''\r]in'':a",
}  # fmt: skip


@pytest.mark.parametrize("source", list(CRASHES.values()), ids=list(CRASHES))
def test_what_once_broke(source: str) -> None:
    check(source)
