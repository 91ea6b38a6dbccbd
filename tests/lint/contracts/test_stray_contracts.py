"""Comments that begin as a contract: where they count, and what is said of those that do not."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from check_run import check, torchperf
from flake8_run import flake8

from flake8_torchperf.linter import lint
from flake8_torchperf.options import Options

# `{a}` to `{e}` are where a contract counts.
FUNCTION = """\
import functools, torch

class Engine:
    {a}
    @functools.cache{b}
    {c}
    def step(self,{d}
             x: torch.Tensor):{e}
        return x.sum().item()
"""
MARK = "# torchperf: sync-free"
MISSPELT = {
    "# torchperf: syncfree": "did you mean `# torchperf: sync-free`?",
    "# torchperf: sync_free": "did you mean `# torchperf: sync-free`?",
    "# torchperf: sync-fre": "did you mean `# torchperf: sync-free`?",
    "# torchperf: sync-freed": "did you mean `# torchperf: sync-free`?",
    "#torchperf:sync-free": "did you mean `# torchperf: sync-free`?",
    "# torchperf:": "the only one is `# torchperf: sync-free`",
    "# torchperf: hot": "the only one is `# torchperf: sync-free`",
}
STRAY = {
    "in a body": "def f(x):\n    y = x\n    # torchperf: sync-free\n    return y\n",
    "behind a statement": "def f(x):\n    return x  # torchperf: sync-free\n",
    "first in a body": "def f(x):\n    # torchperf: sync-free\n    return x\n",
    "above a class": "# torchperf: sync-free\nclass A:\n    def f(self): pass\n",
    "two lines above": "# torchperf: sync-free\n\ndef f(x):\n    return x\n",
    "behind what stands above": "x = 1  # torchperf: sync-free\ndef f(x):\n    return x\n",
    "the end of another": "def f(x):\n    pass\n    # torchperf: sync-free\ndef g(x):\n    pass\n",
    "at the end": "x = 1\n# torchperf: sync-free\n",
}


@pytest.mark.parametrize("place", list("abcde"))
def test_where_a_contract_counts(tmp_path: Path, place: str) -> None:
    marks = {one: f"  {MARK}" if one == place else "" for one in "abcde"}
    source = FUNCTION.format(**marks).replace("    \n", "").replace("      #", "    #")
    (finding,) = lint(source, "stdin", Options())
    assert "on the way from Engine.step" in finding.message
    (tmp_path / "a.py").write_text(source)
    assert flake8("--select=TPF9", "a.py", cwd=tmp_path).output == ""


@pytest.mark.parametrize("head", ["", "import torch\n"])
def test_a_misspelt_contract_is_said_by_flake8_and_check(tmp_path: Path, head: str) -> None:
    lines = [f"def f{n}(x):  {mark}\n    return x\n" for n, mark in enumerate(MISSPELT)]
    (tmp_path / "a.py").write_text(head + "".join(lines))
    run = flake8("--select=TPF", "a.py", cwd=tmp_path)
    texts = [f"`{mark}` is no contract; {advice}" for mark, advice in MISSPELT.items()]
    assert [(one.code, one.text) for one in run.results] == [("TPF901", text) for text in texts]
    first = run.results[0]
    assert (first.line, first.column) == (1 + bool(head), 13)
    for _ in range(2):
        again = check("a.py", cwd=tmp_path, cache=tmp_path / "cache")
        assert (again.output, again.status, again.errors) == (run.output, 1, "")


@pytest.mark.parametrize("source", STRAY.values(), ids=list(STRAY))
def test_a_contract_that_applies_to_nothing_is_said(tmp_path: Path, source: str) -> None:
    (tmp_path / "a.py").write_text(source)
    run = flake8("--select=TPF", "a.py", cwd=tmp_path)
    (found,) = run.results
    line = source[: source.index("#")].count("\n") + 1
    assert (found.line, found.code) == (line, "TPF901")
    assert found.text == (
        "`# torchperf: sync-free` applies to no function here; write it on the `def` line or right "
        "above"
    )
    assert check("a.py", cwd=tmp_path).output == run.output


def test_only_comments_count(tmp_path: Path) -> None:
    source = (
        f'import torch\n\ndef f(x="{MARK}"):\n    """\n    {MARK}, # torchperf: synk\n    """\n'
    )
    (tmp_path / "a.py").write_text(f"{source}    return x.sum().item()\n")
    run = check("a.py", cwd=tmp_path)
    assert "TPF901" not in run.output
    assert "on the way from" not in run.output


def test_it_is_silenced_as_any_finding(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1  # torchperf: sync_free  # noqa: TPF901\n")
    assert check("a.py", cwd=tmp_path).output == ""
    (tmp_path / "a.py").write_text("x = 1  # torchperf: sync_free\n")
    assert check("--ignore=TPF901", "a.py", cwd=tmp_path).output == ""
    assert check("--write-baseline=b.json", "a.py", cwd=tmp_path).status == 0
    assert check("--baseline=b.json", "a.py", cwd=tmp_path).output == ""


def test_a_function_in_a_function_and_the_code_in_explain(tmp_path: Path) -> None:
    text = f"""\
        async def f(x):
            {MARK}
            async def g(y):
                return y
            return g
        """
    (tmp_path / "a.py").write_text(textwrap.dedent(text))
    assert check("a.py", cwd=tmp_path).output == ""
    assert "states no contract" in torchperf("explain", "TPF901").output
