"""What an editor can send and ask for besides texts: settings, counts of a profile, commands."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from typing_along.editor import Buffer, Editor, applied, editor

from flake8_torchperf.history.profile import Profile, ProfileEntry, keyed, write
from flake8_torchperf.options import SETTINGS, OptionError
from flake8_torchperf.server.settings import sent
from flake8_torchperf.syntax.statement_lines import Statements

READS = """\
import torch


def report(values: list[torch.Tensor]) -> list[float]:
    return [value.item() for value in values]


def train_step(value: torch.Tensor) -> float:
    return value.item()
"""


def codes(found: Sequence[types.Diagnostic]) -> list[tuple[int, Any]]:
    return [(one.range.start.line + 1, one.code) for one in found]


def change_settings(one: Editor, settings: object) -> None:
    params = types.DidChangeConfigurationParams(settings)
    one.client.workspace_did_change_configuration(params)


async def after(one: Editor, buffer: Buffer, settings: object) -> list[tuple[int, Any]]:
    """The findings after the editor has sent other settings."""
    seen = len(buffer.published)
    change_settings(one, settings)
    return codes((await one.published(buffer, seen)).diagnostics)


async def counts(one: Editor, buffer: Buffer) -> list[tuple[int, str]]:
    identifier = types.TextDocumentIdentifier(buffer.uri)
    found = await one.client.text_document_code_lens_async(types.CodeLensParams(identifier))
    return [
        (lens.range.start.line + 1, lens.command.title)
        for lens in found or ()
        if lens.command is not None
    ]


def write_profile(path: Path, text: str, seconds: float | None) -> None:
    """Write a profile in which every statement of train.py ran, and each `return` waited."""
    made = [
        ProfileEntry(
            one.node.lineno,
            *key,
            "",
            runs=1,
            times=4204,
            waits=4204 if isinstance(one.node, ast.Return) else 0,
            seconds=seconds,
        )
        for one, key in keyed(Statements(text))
        if isinstance(one.node, ast.stmt)
    ]
    write(path, Profile({"train.py": tuple(made)}, 1, ("cuda:0",)))


STEPS = """\
import torch


def train(model: torch.nn.Module, optimizer, loader):
    for x in loader:
        model(x).sum().backward()
        optimizer.step()


if __name__ == "__main__":
    train(torch.nn.Linear(9, 9), None, [])
"""


def test_new_code_has_no_callers_yet(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").touch()
    (tmp_path / "train.py").write_text(STEPS)
    text = "import torch\n\n\ndef read(x: torch.Tensor):\n    for row in x:\n        print(row)\n"

    async def act() -> list[tuple[int, Any]]:
        async with editor(tmp_path) as one:
            return codes(await one.diagnostics(one.open(tmp_path / "new.py", text)))

    assert asyncio.run(act()) == [(5, "TPF201"), (6, "TPF104")]


class TestSettings:
    def test_they_win_over_the_files_from_the_start(self, tmp_path: Path) -> None:
        (tmp_path / "pyproject.toml").write_text("[tool.torchperf]\nscope = 'all'\n")

        async def act(settings: object) -> list[tuple[int, Any]]:
            async with editor(tmp_path, settings=settings) as one:
                return codes(await one.diagnostics(one.open(tmp_path / "a.py", READS)))

        both = [(5, "TPF101"), (9, "TPF101")]
        assert asyncio.run(act(None)) == both
        assert asyncio.run(act({"torchperf": {"scope": None, "hot": None}})) == both
        assert asyncio.run(act({"torchperf": {"scope": "loop"}})) == both[:1]

    def test_changed_ones_lint_open_files_again(self, tmp_path: Path) -> None:
        async def act() -> None:
            async with editor(tmp_path) as one:
                buffer = one.open(tmp_path / "a.py", READS)
                assert codes(await one.diagnostics(buffer)) == [(5, "TPF101"), (9, "TPF101")]
                cold = {"torchperf": {"cold": ["report"], "scope": "hot"}}
                assert await after(one, buffer, cold) == [(9, "TPF101")]
                # Some editors send none, to say that something changed.
                assert await after(one, buffer, None) == [(9, "TPF101")]
                assert len(await after(one, buffer, {"torchperf": {}})) == 2
                assert one.messages == []

        asyncio.run(act())

    def test_a_mistake_is_one_message_and_changes_nothing(self, tmp_path: Path) -> None:
        first, second = tmp_path / "first", tmp_path / "second"
        for folder in (first, second):
            folder.mkdir()

        async def act() -> None:
            async with editor(first, second, settings={"torchperf": {"scop": "all"}}) as one:
                other = one.open(second / "a.py", READS)
                buffer = one.open(first / "a.py", READS)
                assert len(await one.diagnostics(buffer)) == len(await one.diagnostics(other)) == 2
                (said,) = one.messages
                assert said.startswith("torchperf has no setting 'scop'; did you mean 'scope'?")
                assert len(await after(one, buffer, {"torchperf": {"scope": "lop"}})) == 2
                assert one.messages[1:] == [
                    "torchperf.scope: 'lop' is not one of loop, hot, all, did you mean 'loop'?; "
                    "the editor's settings are not used until it is corrected"
                ]

        asyncio.run(act())

    def test_a_path_is_the_folders_own(self, tmp_path: Path) -> None:
        first, second = tmp_path / "first", tmp_path / "second"
        for folder in (first, second):
            folder.mkdir()
        write_profile(first / "p.json", READS, 3.1)

        async def act() -> None:
            async with editor(first, second, settings={"torchperf": {"profile": "p.json"}}) as one:
                assert codes(await one.diagnostics(one.open(first / "train.py", READS)))
                buffer = one.open(second / "train.py", READS)
                assert codes(await one.diagnostics(buffer)) == []
                (said,) = one.messages
                assert said.startswith("torchperf.profile: ")
                assert str(second / "p.json") in said

        asyncio.run(act())


def test_every_setting_can_be_sent() -> None:
    examples: dict[str, object] = {
        "scope": "hot", "confidence": "stated", "hot": ["a"], "cold": ["b"], "sync-free": ["c"],
        "logging": "ignore", "min-worth": 0.5,
        "allow-comments": ["sync-ok"], "explain": True, "assume-compiled": False,
        "preview": True, "rules": [], "baseline": "b.json", "profile": "", "cache": False,
        "cache-dir": "c",
    }  # fmt: skip
    assert list(examples) == [one.name for one in SETTINGS]
    assert sent({"torchperf": examples}) == examples
    assert sent({"torchperf": {"sync_free": ["c"]}}) == {"sync-free": ["c"]}


@pytest.mark.parametrize("settings", [None, [], "all", {"pylsp": {}}])
def test_settings_of_others_are_none_of_ours(settings: object) -> None:
    assert sent(settings) is None


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ([], "torchperf: [] is no table of settings"),
        ({"hot": "a"}, "torchperf.hot: 'a' is no list of texts"),
        ({"cache": 3}, "torchperf.cache: 3 is neither true nor false"),
    ],
)
def test_mistakes(settings: object, said: str) -> None:
    with pytest.raises(OptionError, match=r"^torchperf") as raised:
        sent({"torchperf": settings})
    assert str(raised.value).startswith(said)


class TestCounts:
    @pytest.mark.parametrize(
        ("seconds", "words"),
        [
            (3.1, "ran 4,204 times, waited 3.1 s"),
            (None, "ran 4,204 times, waited 4,204 times"),
        ],
    )
    def test_statements_that_waited(
        self, seconds: float | None, words: str, tmp_path: Path
    ) -> None:
        write_profile(tmp_path / "p.json", READS, seconds)

        async def act() -> None:
            async with editor(tmp_path) as one:
                buffer = one.open(tmp_path / "train.py", READS)
                assert await counts(one, buffer) == []
                change_settings(one, {"torchperf": {"profile": "p.json"}})
                assert await counts(one, buffer) == [(5, words), (9, words)]
                # They move with their statements.
                one.change(buffer, f"\n{READS.replace('value.item()', 'value.tolist()', 1)}")
                assert await counts(one, buffer) == [(10, words)]

        asyncio.run(act())

    def test_the_editor_is_told_to_ask_again(self, tmp_path: Path) -> None:
        from typing_along.editor import capabilities

        able = capabilities()
        assert able.workspace is not None
        able.workspace.code_lens = types.CodeLensWorkspaceClientCapabilities(refresh_support=True)
        write_profile(tmp_path / "p.json", READS, 3.1)

        async def act() -> None:
            async with editor(tmp_path, able=able) as one:
                asked = asyncio.Event()
                one.client.feature(types.WORKSPACE_CODE_LENS_REFRESH)(lambda _: asked.set())
                one.open(tmp_path / "train.py", READS)
                change_settings(one, {"torchperf": {"profile": "p.json"}})
                await asyncio.wait_for(asked.wait(), 60)

        asyncio.run(act())


class TestCommands:
    def test_a_function_without_a_finding_is_marked(self, tmp_path: Path) -> None:
        text = "def f(x):\n    return x\n"

        async def act() -> str:
            async with editor(tmp_path) as one:
                buffer = one.open(tmp_path / "a.py", text)
                await run(one, buffer, 1)
                (edit,) = one.edits
                (change,) = edit.document_changes or ()
                assert isinstance(change, types.TextDocumentEdit)
                assert change.text_document.version == 1
                return applied(text, [e for e in change.edits if isinstance(e, types.TextEdit)])

        assert asyncio.run(act()) == "def f(x):  # torchperf: sync-free\n    return x\n"

    def test_where_there_is_none_it_says_so(self, tmp_path: Path) -> None:
        async def act() -> None:
            async with editor(tmp_path) as one:
                await run(one, one.open(tmp_path / "a.py", "x = 1\n"), 0)
                assert one.messages == ["the cursor is in no function of an open Python file"]
                assert one.edits == []

        asyncio.run(act())


async def run(one: Editor, buffer: Buffer, line: int) -> None:
    params = types.ExecuteCommandParams("torchperf.server.markSyncFree", [buffer.uri, line])
    await one.client.workspace_execute_command_async(params)
