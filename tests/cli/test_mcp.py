"""`torchperf mcp`: its tools say what the commands say, write nothing and take no options."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path

import pytest
from check_run import COMMAND, torchperf
from environments import ROOT

from flake8_torchperf.cli.main import main
from flake8_torchperf.cli.mcp.command import MISSING
from flake8_torchperf.cli.mcp.tools import (
    NotAnsweredError,
    check,
    compare,
    explain,
    fix,
    profile,
    why,
)

TRAINING = """\
import torch


def train(model: torch.nn.Module, loader: list[torch.Tensor]) -> list[float]:
    losses = []
    for batch in loader:
        loss = model(batch).sum()
        losses.append(loss.item())
    return losses


def scale(values: list[torch.Tensor]) -> torch.Tensor:
    found = torch.zeros(1)
    for value in values:
        found += torch.ones(3).to(value.device).sum()
    return found
"""


WORKLOAD = """\
import torch

for number in torch.arange(3):
    number.item()
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which the server was started."""
    (tmp_path / "train.py").write_text(TRAINING, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TORCHPERF_CACHE_DIR", str(tmp_path.parent / "cache"))
    return tmp_path


def test_the_tools_say_what_the_commands_say_and_leave_the_project_alone(project: Path) -> None:
    """Nor is a module of the project imported in place of Python's."""
    (project / "json.py").write_text("open('imported', 'w').close()\n", encoding="utf-8")
    before = {path.name: path.read_bytes() for path in project.iterdir()}
    findings = json.loads(check(["train.py"], top=0))["findings"]
    assert ("TPF101", 8) in {(one["code"], one["line"]) for one in findings}
    assert len(json.loads(check(top=1))["findings"]) == 1
    assert "+        found += torch.ones(3, device=value.device).sum()\n" in fix(["train.py"])
    told = why("train.py:8"), explain("TPF101")
    assert {path.name: path.read_bytes() for path in project.iterdir()} == before
    (project / "json.py").unlink()
    assert told[0] == torchperf("why", "train.py:8", cwd=project).output
    assert told[1] == torchperf("explain", "TPF101", cwd=project).output


def test_runs_that_were_recorded_are_read(project: Path) -> None:
    pytest.importorskip("torch")
    (project / "work.py").write_text(WORKLOAD, encoding="utf-8")
    recording = ("run", "--json", "a.json", "--save-profile", "p.json", "work.py")
    assert torchperf(*recording, cwd=project).status == 0
    (project / "work.py").write_text("raise SystemExit(3)\n", encoding="utf-8")
    assert "work.py:4" in profile("p.json")
    assert (
        compare("a.json", "a.json") == torchperf("compare", "a.json", "a.json", cwd=project).output
    )
    counted = json.loads(check(["work.py"], profile="p.json"))
    assert isinstance(counted["findings"], list)


@pytest.mark.parametrize("word", ["--write-baseline=b.json", "-h", ""])
def test_no_word_becomes_an_option(project: Path, word: str) -> None:
    for tool in (
        lambda: check([word]),
        lambda: fix([word]),
        lambda: why(word),
        lambda: explain(word),
    ):
        with pytest.raises(NotAnsweredError, match=f"^'{word}' is no name"):
            tool()
    with pytest.raises(NotAnsweredError):
        check(diff_base="--output=x")
    assert sorted(path.name for path in project.iterdir()) == ["train.py"]


def test_a_mistake_is_the_line_that_the_command_writes(project: Path) -> None:
    with pytest.raises(NotAnsweredError, match=r"^torchperf: .*did you mean 'TPF206'\?$"):
        explain("TPF20l")
    with pytest.raises(NotAnsweredError, match=r"nowhere\.py: there is no such file or folder$"):
        check(["nowhere.py"])


def test_without_the_extra_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("mcp", "mcp.server"):
        monkeypatch.setitem(sys.modules, name, None)
    assert main(["mcp"]) == 2
    assert capsys.readouterr().err == f"torchperf: {MISSING}\n"


def test_a_client_of_the_sdk_over_standard_input_and_output(project: Path) -> None:
    """With the configuration that docs/agents.md shows."""
    sdk = pytest.importorskip("mcp")
    page = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```json\n(.*mcpServers.*)\n```", page)
    shown = json.loads(block)["mcpServers"]["torchperf"]
    assert shown.pop("command") == "torchperf"

    async def asked() -> tuple[set[str], str, bool, str]:
        parameters = sdk.StdioServerParameters(
            command=COMMAND[0], args=["-P", *COMMAND[1:], *shown["args"]], cwd=project
        )
        async with sdk.Client(parameters) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            page = await client.call_tool("explain", {"code": "TPF101"})
            wrong = await client.call_tool("explain", {"code": "TPF20l"})
        return names, page.content[0].text, wrong.is_error, wrong.content[0].text

    names, text, is_error, problem = asyncio.run(asked())
    assert names == {"check", "why", "explain", "fix", "profile", "compare"}
    assert text == explain("TPF101")
    assert is_error
    assert problem.endswith("there is no rule TPF20l; did you mean 'TPF206'?")
