"""The Python half of the page to try the linter on: what its worker gets as JSON."""

from __future__ import annotations

import importlib
import json
import sys
from types import ModuleType
from typing import Any

import pytest
from environments import ROOT

from flake8_torchperf.plugin import TorchPerfPlugin

LOOP = """\
import torch

def rows(xs: list[torch.Tensor]) -> None:
    for x in xs:
        keep("😀", x.sum().item())
"""


@pytest.fixture
def linting(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "try"))
    monkeypatch.setattr(TorchPerfPlugin, "_options", TorchPerfPlugin.options())
    monkeypatch.delitem(sys.modules, "linting", raising=False)
    return importlib.import_module("linting")


def found(linting: ModuleType, text: str, *settings: Any) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(
        linting.findings(text, *(settings or ("hot", "inferred", False)))
    )
    return told


def test_a_finding_has_its_place_as_the_editor_counts(linting: ModuleType) -> None:
    told = found(linting, LOOP)
    assert told["problem"] == ""
    [finding] = told["findings"]
    assert finding["code"] == "TPF101"
    assert (ROOT / "rules" / f"{finding['page']}.md").is_file()
    line = LOOP.splitlines()[finding["line"] - 1].encode("utf-16-le")
    assert (
        line[finding["column"] * 2 : finding["endColumn"] * 2].decode("utf-16-le")
        == "x.sum().item()"
    )


def test_settings_change_the_findings_from_call_to_call(linting: ModuleType) -> None:
    once = "import torch\n\ndef read(x: torch.Tensor) -> float:\n    return x.item()\n"
    counts = [
        len(found(linting, once, scope, "inferred", False)["findings"])
        for scope in ("loop", "all", "loop")
    ]
    assert counts == [0, 1, 0]


def test_a_noqa_silences_a_finding(linting: ModuleType) -> None:
    silenced = LOOP.replace("x.sum().item()", "x.sum().item()  # noqa: TPF101")
    assert found(linting, silenced)["findings"] == []


def test_text_that_does_not_parse_has_a_problem_and_its_line(linting: ModuleType) -> None:
    told = found(linting, "import torch\nx = (\n")
    assert (told["line"], told["findings"]) == (2, [])
    assert "SyntaxError" in told["problem"]


def test_why_tells_the_reason_and_the_diff_of_each_fix(linting: ModuleType) -> None:
    seed = ROOT / "fixtures" / "issue82206_sharded_grad_scaler" / "before.py"
    text = "\n".join(line.partition("  # TPF")[0] for line in seed.read_text().splitlines()) + "\n"
    finding = found(linting, text)["findings"][1]
    told = json.loads(linting.why(text, finding["id"], "hot", "inferred", False))
    assert told["function"].startswith("ShardedGradScaler.")
    [judged] = [one for one in told["findings"] if one["message"] == finding["message"]]
    assert judged["reported"]
    assert [(fix["safety"], fix["name"]) for fix in told["fixes"]] == [
        ("safe", "one-flag"), ("unsafe", "one-check"),
    ]  # fmt: skip
    assert "+                    bool((torch.isinf(tensor) | torch.isnan(tensor)).any())" in (
        told["fixes"][0]["diff"].splitlines()
    )
    assert json.loads(linting.why(text, "TPF101:1:0", "hot", "inferred", False)) is None


def test_a_text_that_never_says_torch_gets_a_hint(linting: ModuleType) -> None:
    without = LOOP.replace("import torch\n", "").replace("torch.Tensor", "list")
    told = found(linting, without)
    assert (told["findings"], told["problem"]) == ([], "")
    assert "import torch" in told["hint"]
    assert found(linting, LOOP)["hint"] == found(linting, "\n")["hint"] == ""


def test_a_click_on_a_finding_lints_the_text_no_second_time(
    linting: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    [finding] = found(linting, LOOP)["findings"]
    monkeypatch.delattr(linting, "LintedFile")
    told = json.loads(linting.why(LOOP, finding["id"], "hot", "inferred", False))
    assert [one["code"] for one in told["findings"]] == ["TPF101"]
