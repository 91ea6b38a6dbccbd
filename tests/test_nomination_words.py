"""The words nomination goes by are those of the committed torch table."""

import importlib.util
import json
from importlib import import_module
from pathlib import Path
from typing import Any

from flake8_torchperf.knowledge.table import load
from flake8_torchperf.suspects import words

TOOL = Path(__file__).parents[1] / "tools" / "generate_nomination_words.py"


def interpreter(name: str) -> Any:
    """A module of the interpreter; they import each other, so the outermost goes first."""
    import_module("flake8_torchperf.interpret.unit")
    return import_module(f"flake8_torchperf.interpret.{name}")


def test_words_are_those_of_the_table() -> None:
    spec = importlib.util.spec_from_file_location("generate_nomination_words", TOOL)
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    committed = json.loads(tool.PATH.read_text())
    assert tool.words(load()) == committed, "run tools/generate_nomination_words.py"


def test_what_tells_the_interpreter_tells_nomination() -> None:
    evidence = interpreter("evidence")
    assert evidence.TELLING | evidence.SIZED <= words.TELLING
    assert evidence.CASTS <= words.CASTS
    assert words.TOLD_BY_CALL >= interpreter("calls").TOLD_BY_CALL


def test_what_the_interpreter_reports_by_name_nominates() -> None:
    tensor_calls, loops = interpreter("tensor_calls"), interpreter("loops")
    assert tensor_calls.READS.keys() | tensor_calls.COPIES <= words.TENSOR_READS
    assert interpreter("torch_calls").PER_PARAMETER <= words.PER_PARAMETER
    assert {name.rpartition(".")[2] for name in loops.GROWING} <= words.GROWING
