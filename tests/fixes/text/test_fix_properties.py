"""Whatever a module looks like: fixed text parses, is stable, and changes only what a fix owns."""

from __future__ import annotations

import ast
import difflib
import io
import os
import random
import subprocess
import sys
import tokenize

import pytest
from fixing import SHOWN, outcome
from fuzzing.modules import strategy
from fuzzing.mutations import tree_mutation
from fuzzing.sources import Pieces, torch_files
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from linting import ALL

from flake8_torchperf.fixes.engine.rounds import SAFE, Choice
from flake8_torchperf.linter import lint

UNHURRIED = settings(
    max_examples=int(os.environ.get("TORCHPERF_EXAMPLES", "8")),
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
# What fixes change, between what they leave alone.
FIXED = (
    "torch.zeros(n).to(x.device)",
    "(torch.arange(n)\n        .to(x.device))",
    "torch.ones(\n        n,  # é\n        2,\n    ).to(x.device)",
    "torch.tensor([0.5], device=x.device)",
    "torch.eye(n).unsqueeze(0).to(x.device, non_blocking=True)",
    "x == x.max().item()",
    "torch.isinf(x).any() or torch.isnan(x).any()",
    "x.min() < 0 or x.max() > (1)",
    "[torch.zeros(2).to(x.device) for _ in range(3)]",
    "torch.zeros(int(torch.ones(2).to(x.device).sum())).to(x.device)",
)
PLAIN = (
    "x.item()",
    "'''torch.zeros(n).to(x.device)\n'''",
    "f'{torch.zeros(1).to(x.device)}'",
    "x  +  1",
    "{ 'é' : x }",
    "torch.zeros(n).to(  # moved\n        x.device)",
)
LINE = st.tuples(
    st.sampled_from(("a = {}", "b = {}; c = 1", "x += ({}).sum()", "print({})", "if True: d = {}")),
    st.sampled_from(FIXED + PLAIN),
    st.sampled_from(("", "  # a comment", "\t# noqa: E501", " ")),
    st.sampled_from(("", "\n", "\n    # above\n", "\n\n")),
)
MODULE = st.tuples(
    st.lists(LINE, min_size=1, max_size=6),
    st.sampled_from(("\n", "\r\n")),
    st.sampled_from(("", "\n", "  \n")),
)


def text_of(lines: list[tuple[str, str, str, str]], ends: str, last: str) -> str:
    """A module with one function that holds the lines."""
    body = "".join(
        f"{above}    {form.format(value)}{comment}\n" for form, value, comment, above in lines
    )
    head = "# head\nimport torch\n\n\ndef step(x: torch.Tensor, n: int):\n"
    return (head + body + "    return x" + last).replace("\n", ends)


def comments(text: str) -> list[str]:
    """The comments of a text, in order."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [token.string for token in tokens if token.type == tokenize.COMMENT]


def owned(text: str) -> set[int]:
    """The lines of the statements, without their blocks, in which some edit's nodes stand."""
    found = set()
    for finding in lint(text, "model.py", ALL, SHOWN.safeties):
        for edit in finding.edits:
            for node in edit.nodes:
                assert isinstance(node, (ast.expr, ast.stmt))
                found.update(range(node.lineno, (node.end_lineno or 0) + 1))
    return found


def changed(before: str, after: str) -> set[int]:
    """The lines of a text that are others in the text after it; line ends count."""
    rows = [text.splitlines(keepends=True) for text in (before, after)]
    matcher = difflib.SequenceMatcher(None, *rows, autojunk=False)
    lines: set[int] = set()
    for tag, low, high, _, _ in matcher.get_opcodes():
        if tag != "equal":
            lines.update(range(low + 1, high + 1))
    return lines


def is_program(text: str) -> bool:
    """Does Python compile it? A tree may be right and hold an ``await`` where none can be."""
    try:
        compile(text, "text", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def hold(text: str, choice: Choice) -> bool:
    """Assert what must be true of every fixed text; tells whether one was changed."""
    done = outcome(text, choice)
    ast.parse(done.text)
    assert not is_program(text) or is_program(done.text)
    assert not done.open
    assert outcome(done.text, choice).text == done.text
    return done.text != text


@UNHURRIED
@given(MODULE)
def test_generated_modules(made: tuple[list[tuple[str, str, str, str]], str, str]) -> None:
    text = text_of(*made)
    hold(text, SAFE_ONLY)
    done = outcome(text, SAFE_ONLY)
    assert sorted(comments(done.text)) == sorted(comments(text))
    assert changed(text, done.text) <= owned(text)
    assert ("\r" in done.text) == ("\r" in text)


SAFE_ONLY = Choice()


def test_most_of_what_is_generated_is_changed() -> None:
    """Else the properties would say nothing."""
    lines = [("a = {}", value, "  # a comment", "") for value in FIXED]
    text = text_of(lines, "\n", "\n")
    done = outcome(text, SAFE_ONLY)
    assert len(done.changes) >= len(FIXED)
    assert {change.edit.safety for change in done.changes} == {SAFE}


@UNHURRIED
@given(st.deferred(strategy))
def test_modules_of_any_syntax(source: str) -> None:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for choice in (SAFE_ONLY, SHOWN):
        hold(source, choice)


def test_pieces_of_torch_with_nodes_exchanged() -> None:
    pytest.importorskip("torch")
    pieces, rng = Pieces(torch_files()), random.Random(26)
    texts = [tree_mutation(pieces.draw(rng), pieces.draw(rng), rng) for _ in range(16)]
    made = [text for text in texts if text is not None]
    assert len(made) > len(texts) / 2
    for text in made:
        hold(text, SHOWN)


def test_linting_a_file_that_can_be_fixed_imports_no_libcst() -> None:
    text = text_of([("a = {}", FIXED[0], "", "")], "\n", "\n")
    program = (
        "import sys; from flake8_torchperf.linter import lint, MARKED\n"
        "from flake8_torchperf.options import Options\n"
        f"found = lint({text!r}, 'model.py', Options())\n"
        "every = frozenset(('safe', 'unsafe', 'suggested'))\n"
        f"lint({text!r}, 'model.py', Options(), every)\n"
        "print([f.message[-5:] for f in found], 'libcst' in sys.modules, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("['[fix]'] False False\n", "")


def test_no_fix_imports_libcst_before_it_rewrites() -> None:
    program = (
        "import sys; from flake8_torchperf.findings.catalogue import load_catalogue\n"
        "from flake8_torchperf.fixes.engine.registry import load\n"
        "fixes = [load(*fix) for rule in load_catalogue().rules for fix in rule.fixes]\n"
        "import flake8_torchperf.fixes.engine.planning, flake8_torchperf.cli.fix.command\n"
        "print(len(fixes) > 5, 'libcst' in sys.modules, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("True False False\n", "")
