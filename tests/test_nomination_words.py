"""The words nomination goes by are those of the committed torch table."""

import importlib.util
import json
from pathlib import Path

from flake8_torchperf.interpret import calls, evidence, loops, tensor_calls, torch_calls
from flake8_torchperf.knowledge.table import load
from flake8_torchperf.suspects import words

TOOL = Path(__file__).parents[1] / "tools" / "generate_nomination_words.py"


def test_words_are_those_of_the_table() -> None:
    spec = importlib.util.spec_from_file_location("generate_nomination_words", TOOL)
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    committed = json.loads(tool.PATH.read_text())
    assert tool.words(load()) == committed, "run tools/generate_nomination_words.py"


def test_what_tells_the_interpreter_tells_nomination() -> None:
    assert evidence.TELLING | evidence.SIZED <= words.TELLING
    assert evidence.CASTS <= words.CASTS
    assert words.TOLD_BY_CALL >= calls.TOLD_BY_CALL


def test_what_the_interpreter_reports_by_name_nominates() -> None:
    assert tensor_calls.READS.keys() | tensor_calls.COPIES <= words.TENSOR_READS
    assert torch_calls.PER_PARAMETER <= words.PER_PARAMETER
    assert {name.rpartition(".")[2] for name in loops.GROWING} <= words.GROWING
