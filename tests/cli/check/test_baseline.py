"""Baselines: old findings stay away whatever is moved or reformatted, and new ones are reported."""

from __future__ import annotations

import ast
import json
import random
from collections import Counter
from pathlib import Path

import pytest
from check_run import check
from flake8_run import flake8

from flake8_torchperf.options import Options
from flake8_torchperf.plugin import TorchPerfPlugin

OLD = """\
import torch
from torch import Tensor


def report(values: list[Tensor]) -> list[float]:
    return [value.item() for value in values]


def neighbour(values: list[Tensor]) -> list[Tensor]:
    return [value + 1 for value in values]


class Trainer:
    def train(self, model: torch.nn.Module, loader, optimizer) -> float:
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            loss.backward()
            optimizer.step()
            total += loss.item()
            print("loss", loss.item(), 'step')
            if torch.isnan(loss):
                break
        return total

    def evaluate(self, scores: Tensor, labels: Tensor) -> list[int]:
        kept = []
        for score in scores:
            if score > 0.5:
                kept.append(int(score))
        return kept


def trainer() -> Trainer:
    return Trainer()
"""
# A finding more, and the function that it is put in.
NEW = {
    "another function": ("", "\n\ndef fresh(rows: list[Tensor]) -> list:\n"
                         "    return [row.item() for row in rows]\n"),
    "one more of a kind": ("loss.backward()", "loss.backward()\n            print(loss.item())"),
    "another text": ("loss.backward()", "loss.backward()\n            print(float(loss.mean()))"),
}  # fmt: skip


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A folder with old code and its baseline."""
    (tmp_path / "model.py").write_text(OLD)
    run = check("--write-baseline", "old.json", ".", cwd=tmp_path)
    assert (run.status, run.output) == (0, ""), run
    assert "old.json: 7 findings in 1 file written down" in run.errors
    return tmp_path


def reported(folder: Path, source: str, *, baseline: bool = True) -> list[str]:
    """The findings of the plugin in a text that takes the place of the old one."""
    path = str(folder / "model.py")
    TorchPerfPlugin.use(Options(baseline=folder / "old.json" if baseline else None))
    try:
        plugin = TorchPerfPlugin(ast.parse(source), source.splitlines(keepends=True), path)
        return [f"{line}: {text}" for line, _, text, _ in plugin.run()]
    finally:
        TorchPerfPlugin.use(Options())


class _Renamed(ast.NodeTransformer):
    """Another name for the neighbour and everything in it."""

    def __init__(self, word: str) -> None:
        self._word = word

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if not node.name.startswith("neighbour"):
            return self.generic_visit(node)
        return ast.parse(ast.unparse(node).replace("neighbour", f"neighbour_{self._word}")).body[0]


def edited(source: str, chance: random.Random) -> str:
    """The same code after one edit that adds and removes no finding."""
    lines = source.splitlines()
    match chance.randrange(6):
        case 0:  # moved down
            where = chance.choice([0, *(i for i, line in enumerate(lines) if "def " in line)])
            indent = "    " if where and lines[where].startswith("    ") else ""
            comments = [f"{indent}# {chance.random()}"] * chance.randint(1, 9)
            lines[where:where] = comments
            return "\n".join(lines) + "\n"
        case 1:  # written anew by another formatter
            return ast.unparse(ast.parse(source)) + "\n"
        case 2:  # a neighbour renamed
            tree = _Renamed(chance.choice("abcdef")).visit(ast.parse(source))
            return ast.unparse(tree) + "\n"
        case 3:  # a new neighbour
            return f"{source}\n\ndef new_{chance.randrange(999)}(x):\n    return x\n"
        case 4:  # functions in another order
            tree = ast.parse(source)
            head = [one for one in tree.body if isinstance(one, (ast.Import, ast.ImportFrom))]
            rest = [one for one in tree.body if one not in head]
            chance.shuffle(rest)
            return ast.unparse(ast.Module([*head, *rest], [])) + "\n"
    # parentheses, line breaks and quotes
    swaps = {
        "loss.item()": "(\n                loss\n                .item( )\n            )",
        "int(score)": "int(\n                    score,\n                )",
        "value.item()": "(value).item()",
        "'loss'": '"loss"',
    }
    before = chance.choice([*swaps])
    at = source.find(before)
    return source if at < 0 else source[:at] + swaps[before] + source[at + len(before) :]


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(1, 5))]
)
def test_random_edits_bring_back_nothing_and_hide_nothing(old: Path, seed: int) -> None:
    chance = random.Random(seed)
    source = OLD
    everything = Counter(line.split()[1] for line in reported(old, OLD, baseline=False))
    assert sum(everything.values()) == 7
    for _ in range(40):
        source = edited(source, chance)
        assert reported(old, source) == [], source
        codes = Counter(line.split()[1] for line in reported(old, source, baseline=False))
        assert codes == everything, source
        where, more = chance.choice([*NEW.values()])
        grown = source.replace(where, more, 1) if where else source + more
        assert len(reported(old, grown)) == 1, grown


def test_flake8_and_check_agree(old: Path) -> None:
    (old / "other.py").write_text(OLD)
    (old / "model.py").write_text("# moved\n" + OLD.replace(*NEW["one more of a kind"]))
    (old / "setup.cfg").write_text("[flake8]\ntorchperf-baseline = ./old.json\n")
    expected = flake8("--select=TPF", ".", cwd=old, isolated=False)
    assert [one.path for one in expected.results].count("./other.py") == 7
    assert [one.path for one in expected.results].count("./model.py") == 1
    for cache in (None, old / "cache", old / "cache"):
        found = check(".", cwd=old, isolated=False, cache=cache)
        assert (found.output, found.status) == (expected.output, 1)
    from_above = flake8("--select=TPF", old / "model.py", "--torchperf-baseline", old / "old.json")
    assert len(from_above.results) == 1


def test_findings_do_not_depend_on_the_files_beside(old: Path) -> None:
    (old / "other.py").write_text(OLD)
    alone = [
        check(name, "--baseline=old.json", cwd=old).output for name in ("model.py", "other.py")
    ]
    together = check("model.py", "other.py", "--baseline=old.json", cwd=old)
    assert together.output == "".join(alone)
    assert alone[0] == ""


def test_a_silenced_finding_does_not_use_up_what_is_allowed(old: Path) -> None:
    more = 'print(loss.item())  # noqa\n            print("loss"'
    (old / "model.py").write_text(OLD.replace('print("loss"', more, 1))
    assert check("--baseline=old.json", ".", cwd=old).output == ""
    assert flake8("--select=TPF", "--torchperf-baseline=old.json", ".", cwd=old).output == ""


def test_entries_that_match_nothing_are_said_once(old: Path) -> None:
    (old / "model.py").write_text(OLD.replace("total += loss.item()", "total += 1"))
    run = check("--baseline=old.json", ".", cwd=old)
    assert run.status == 0
    (line,) = run.errors.splitlines()
    assert "old.json: 1 entry matches nothing" in line
    assert "in ./model.py Trainer.train" in line
    # Another scope finds other things: nothing is said of that.
    assert check("--baseline=old.json", "--torchperf-scope=loop", ".", cwd=old).errors == ""
    (old / "model.py").rename(old / "gone")
    (old / "other.py").write_text("import torch\n")
    assert "all of model.py" in check("--baseline=old.json", ".", cwd=old).errors
    assert check("--baseline=old.json", "other.py", cwd=old).errors == ""
    check("--write-baseline=old.json", ".", cwd=old)
    assert json.loads((old / "old.json").read_text())["files"] == {}


def test_writing_is_deterministic_and_keeps_what_was_not_linted(old: Path) -> None:
    first = (old / "old.json").read_bytes()
    assert first.endswith(b"}\n")
    (old / "a.py").write_text(OLD)
    (old / "broken.py").write_text(OLD)
    check("--write-baseline=old.json", "a.py", "broken.py", cwd=old)
    both = (old / "old.json").read_bytes()
    assert [*json.loads(both)["files"]] == ["a.py", "broken.py", "model.py"]
    # What can't be parsed, and codes that are not selected, keep their entries.
    (old / "broken.py").write_text(OLD + "def (\n")
    check("--write-baseline=old.json", "--select=TPF1", ".", cwd=old)
    assert (old / "old.json").read_bytes() == both
    check("--write-baseline=old.json", "-j1", "broken.py", "model.py", "a.py", cwd=old)
    assert (old / "old.json").read_bytes() == both
    assert sorted(one.name for one in old.glob("*old*")) == ["old.json"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is no baseline: line 1:"),
        ("[]", 'has no "torchperf-baseline" version'),
        ('{"torchperf-baseline": 2, "files": {}}', "has version 2, and this flake8-torchperf"),
        ('{"torchperf-baseline": 1}', '"files" is missing'),
        ('{"torchperf-baseline": 1, "files": {"a.py": [{}]}}', "the entries of 'a.py' are wrong"),
        ("[" * 100_000, "cannot be parsed"),
        (b"\xff\xfe", "it is no UTF-8 text"),
        (None, "there is no file"),
    ],
)
def test_a_baseline_that_cannot_be_used_is_one_line(
    old: Path, text: str | bytes | None, message: str
) -> None:
    path = old / "bad.json"
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    before = path.read_bytes() if path.exists() else None
    runs = [
        flake8("--select=TPF", "--torchperf-baseline=bad.json", ".", cwd=old),
        check("--baseline", "bad.json", ".", cwd=old),
    ]
    if text is not None:
        runs.append(check("--write-baseline", "bad.json", ".", cwd=old))
        assert "bad.json" in runs[-1].errors
    for run in runs:
        assert run.status == 2
        assert (run.output, len(run.errors.splitlines())) == ("", 1)
    assert all(message in run.errors for run in runs[:2])
    assert (path.read_bytes() if path.exists() else None) == before


def test_no_other_file_is_overwritten(old: Path) -> None:
    run = check("--write-baseline", "model.py", ".", cwd=old)
    assert (run.status, (old / "model.py").read_text()) == (2, OLD)
    assert "holds something else, and is left as it is" in run.errors
