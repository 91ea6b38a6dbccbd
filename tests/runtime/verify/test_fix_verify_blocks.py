"""``fix --verify`` runs the changed statements alone where their function can't be called."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from fixing import rows
from hangs import HANG
from linting import PRELUDE

from flake8_torchperf.findings.finding import Finding
from flake8_torchperf.fixes.engine.apply import apply_edits
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.linter import lint, values_in
from flake8_torchperf.options import Options
from flake8_torchperf.runtime.verify.blocks import NAME, changed_alone
from flake8_torchperf.runtime.verify.job import Trial
from flake8_torchperf.runtime.verify.session import Limits, Verifier, close
from flake8_torchperf.values.values import Value

pytestmark = pytest.mark.usefixtures("forked_sandboxes")

OPTIONS = Options(scope=Level.COLD)
MAIN = """
    import a_module_that_is_not_installed as settings

    def main(model: nn.Module, loader, path):
        config = settings.load(path)
        loss = 0
        for texts, lengths in loader:
            texts, lengths = torch.stack(texts).cuda(), torch.stack(lengths).cuda()
{}
            print(loss)
"""
BOUNDS = """\
            for text, n in zip(texts, lengths):
                loss = loss + text[:n].float().sum()"""
AT_INDEX = """\
            for i in range(len(texts)):
                loss = loss + texts[i, : lengths[i]].sum()"""


def trial(body: str, folder: Path, fix: str) -> Trial:
    """Return the trial of a fix of a ``main`` that no call can reach."""
    text = PRELUDE + textwrap.dedent(MAIN.format(body))
    path = folder / "program.py"
    path.write_text(text)
    found = lint(text, str(path), OPTIONS, frozenset(("safe", "unsafe")))
    pairs = ((one, edit) for one in found for edit in one.edits if edit.name == fix)
    finding, edit = next(pairs)
    return Trial(str(path), finding, edit, text, apply_edits(text, [edit]).text)


def alone(one: Trial) -> Trial | None:
    """Return the trial of its changed statements."""

    def values(line: int) -> dict[str, Value]:
        known = values_in(one.before, one.path, line, OPTIONS).values
        return {node.id: value for node, value in known if isinstance(node, ast.Name)}

    return changed_alone(one, values)


def test_the_statements_are_a_function_of_what_they_read(tmp_path: Path) -> None:
    found = alone(trial(BOUNDS, tmp_path, "items-as-numbers"))
    assert found is not None
    tail = found.before.partition(f"def {NAME}")[2]
    assert tail == (
        "(texts: torch.Tensor, lengths: torch.Tensor, loss):\n"
        "    for text, n in zip(texts, lengths):\n"
        "        loss = loss + text[:n].float().sum()\n"
        "    return {'loss': locals().get(\"loss\")}\n"
    )
    assert "zip(texts, lengths.tolist())" in found.after.partition(f"def {NAME}")[2]
    line = found.before.splitlines()[found.finding.line - 1]
    assert line[found.finding.column : found.finding.end_column] == "n"
    assert found.finding.site.function == NAME


def test_new_lines_before_a_loop_belong_to_it(tmp_path: Path) -> None:
    found = alone(trial(AT_INDEX, tmp_path, "read-before-loop"))
    assert found is not None
    assert "    lengths_list = lengths.tolist()\n    for i in" in found.after.partition(NAME)[2]
    assert "tolist" not in found.before.partition(NAME)[2]


STAYS = {
    "returns": "            for text, n in zip(texts, lengths):\n                return text[:n]",
    "leaves the loop around it": (
        "            for text, n in zip(texts, lengths):\n                loss += text[:n].sum()\n"
        "            else:\n                break"
    ),
}


@rows(STAYS)
def test_statements_that_leave_their_place_are_not_run_alone(row: str, tmp_path: Path) -> None:
    assert alone(trial(row, tmp_path, "items-as-numbers")) is None


def test_what_may_be_a_number_is_not_run_as_a_tensor(tmp_path: Path) -> None:
    """The rewritten name is a tensor on one path only, so tensors as inputs show nothing."""
    one = trial(BOUNDS, tmp_path, "items-as-numbers")
    before = one.before.replace(
        "(lengths).cuda()\n",
        "(lengths).cuda()\n        if config.n:\n            lengths = config.n\n",
    )
    found: list[Finding] = lint(before, one.path, OPTIONS, frozenset(("safe", "unsafe")))
    named = [node for node in ast.walk(ast.parse(before)) if isinstance(node, ast.Name)]
    given = [node for node in named if node.id == "lengths"][-1]
    finding = next(f for f in found if f.code == "TPF201" or f.line >= given.lineno)
    edit = one.edit.of("unsafe", "items-as-numbers")
    again = Trial(one.path, finding, edit, before, before.replace(", lengths)", ", lengths.x)"))
    assert alone(again) is None


@pytest.fixture(scope="module")
def limits(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Limits]:
    pytest.importorskip("torch")
    yield Limits(HANG, 2048, "cpu", False, str(tmp_path_factory.mktemp("children")))
    close()


@pytest.mark.parametrize(
    ("body", "fix"), [(BOUNDS, "items-as-numbers"), (AT_INDEX, "read-before-loop")]
)
def test_a_main_is_verified_by_its_statements(
    body: str, fix: str, limits: Limits, tmp_path: Path
) -> None:
    one = trial(body, tmp_path, fix)
    verifier = Verifier(one.path, OPTIONS, limits)
    assert verifier.judge(one.before, [(one.finding, one.edit)]) == [True]
    verdict = verifier.tried[id(one.edit)].verdict
    assert verdict.status == "verified", verdict.words
    assert verdict.words.endswith("for the changed statements alone")
