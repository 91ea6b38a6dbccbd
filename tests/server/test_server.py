"""`torchperf server` through a real client over standard input and output, feature by feature."""

from __future__ import annotations

import ast
import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from fork_server import run as run_forked
from hangs import HANG
from lsprotocol import types
from pytest_lsp import LanguageClient, LspSpecificationWarning, client_capabilities
from typing_along.editor import Buffer, Editor, applied, capabilities, editor

from flake8_torchperf.history.profile import Profile, ProfileEntry, keyed, write
from flake8_torchperf.syntax.statement_lines import Statements

pytestmark = pytest.mark.filterwarnings(
    f"error::{LspSpecificationWarning.__module__}.LspSpecificationWarning"
)
Result = TypeVar("Result")
ROOT = Path(__file__).resolve().parents[2]
EVERYWHERE = types.Range(types.Position(0, 0), types.Position(1000, 0))

READS = """\
import torch


def report(values: list[torch.Tensor]) -> list[float]:
    return [value.item() for value in values]
"""
TOTAL = """\
import torch


def mean(x: torch.Tensor) -> float:
    total = 0.0
    for row in x.split(2):
        total += row.sum().item()
    return total
"""
OVER_PARAMETERS = """\
import torch


def train_step(model: torch.nn.Module) -> None:
    for p in model.parameters():
        print(p.grad.max().item())
"""
# A safe fix of TPF501 and one of TPF101, in this order.
FIXABLE = """\
import torch


def step(x: torch.Tensor, limit: float) -> torch.Tensor:
    y = torch.zeros(3).to(x.device)
    if x.sum().item() > limit and x.sum().item() < 2:
        y = y + 1
    return y
"""
CALLED = """\
import torch


def train(model, loader, optimizer):
    for batch in loader:
        loss = model(batch).sum()
        loss.backward()
        optimizer.step()
        note(loss)


def note(loss: torch.Tensor):
    show(loss)


def show(loss: torch.Tensor):
    return loss.item()
"""


def checking(able: types.ClientCapabilities | None = None) -> LanguageClient:
    """A client that warns of every answer that the protocol does not allow."""
    client = LanguageClient()
    client.capabilities = able or capabilities()
    return client


USING = """\
import torch
from package.values import loss


def step(model: torch.nn.Module) -> float:
    y = loss()
    return y.item()
"""


class Desk:
    """An editor with a folder, for the tests of this module in turn."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.loop = asyncio.new_event_loop()
        self._context = editor(folder, client=checking())
        self.editor: Editor = self.run(self._context.__aenter__())
        self._files = 0

    def run(self, waiting: Coroutine[Any, Any, Result]) -> Result:
        return self.loop.run_until_complete(asyncio.wait_for(waiting, 120))

    def open(self, text: str, name: str = "") -> Buffer:
        self._files += 1
        return self.editor.open(self.folder / (name or f"file_{self._files}.py"), text)

    def shown(self, text: str, name: str = "") -> tuple[types.Diagnostic, ...]:
        return tuple(self.run(self.editor.diagnostics(self.open(text, name))))

    def after(self, buffer: Buffer, title: str, only: list[str] | None = None) -> str:
        """The text after the action whose title begins so."""

        async def act() -> str:
            found = await self.editor.actions(buffer, EVERYWHERE, only)
            (name,) = [one for one in found if one.startswith(title)]
            action = await self.editor.resolve(found[name])
            return applied(buffer.text, edits_of(action, buffer.uri))

        return self.run(act())

    def close(self) -> None:
        self.run(self._context.__aexit__(None, None, None))
        self.loop.close()


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("desk")
    (folder / ".flake8").write_text(
        "[flake8]\nper-file-ignores =\n    quiet.py: TPF101\nextend-exclude = build\n"
    )
    desk = Desk(folder)
    yield desk
    desk.close()


def edits_of(action: types.CodeAction, uri: str) -> list[types.TextEdit]:
    assert action.edit is not None, action
    found: list[types.TextEdit] = []
    for one in action.edit.document_changes or ():
        if isinstance(one, types.TextDocumentEdit):
            assert one.text_document.uri == uri
            found += [edit for edit in one.edits if isinstance(edit, types.TextEdit)]
    return found


def codes(found: Any) -> list[str]:
    return [one.code for one in found]


def underlined(text: str, place: types.Range) -> str:
    lines = text.splitlines(keepends=True)
    starts = [sum(map(len, lines[:n])) for n in range(len(lines) + 1)]
    start, end = (starts[p.line] + p.character for p in (place.start, place.end))
    return text[start:end]


class TestDiagnostics:
    def test_an_unsaved_text_is_linted(self, desk: Desk) -> None:
        (found,) = desk.shown(READS)
        assert (found.code, found.source) == ("TPF101", "torchperf")
        assert found.message.startswith("`value.item()` waits per step")
        assert underlined(READS, found.range) == "value.item()"

    def test_the_whole_expression_is_underlined_over_lines(self, desk: Desk) -> None:
        text = READS.replace(
            "value.item()", "(\n        value\n        .sum()\n        .item()\n    )"
        )
        (found,) = desk.shown(text)
        assert underlined(text, found.range) == "value\n        .sum()\n        .item()"

    def test_the_message_tells_how_often_it_costs(self, desk: Desk) -> None:
        (element,) = desk.shown(OVER_PARAMETERS)
        (step,) = desk.shown(READS)
        assert "per element" in element.message
        assert "per step" in step.message

    def test_the_code_leads_to_the_page(self, desk: Desk) -> None:
        (found,) = desk.shown(READS)
        assert found.code_description is not None
        assert found.code_description.href.endswith("TPF101-read-of-a-tensor-value.md")

    def test_the_reason_and_the_path_of_calls(self, desk: Desk) -> None:
        (found,) = desk.shown(CALLED)
        told = [
            (one.location.range.start.line + 1, one.message)
            for one in found.related_information or ()
        ]
        assert told == [
            (16, "annotation of parameter `loss`"),
            (13, "called by `note`"),
            (9, "called by `train`"),
        ]

    def test_columns_are_the_protocols(self, desk: Desk) -> None:
        text = READS.replace("[value", "['𝔘'] and [value")
        (found,) = desk.shown(text)
        line = text.splitlines()[4]
        before = line[: line.index("value.item()")]
        assert (
            found.range.start.character == len(before.encode("utf-16-le")) // 2 == len(before) + 1
        )

    def test_only_pythons_line_ends_count(self, desk: Desk) -> None:
        (found,) = desk.shown(READS.replace("\n\n\n", "\n# \x0c \u2028 \x1c\n\n"))
        assert found.range.start.line == 4

    def test_half_a_line_shows_nothing_until_it_is_whole(self, desk: Desk) -> None:
        buffer = desk.open(READS.replace("values]", "values"))
        assert desk.run(desk.editor.diagnostics(buffer)) == ()
        desk.editor.change(buffer, READS)
        assert codes(desk.run(desk.editor.diagnostics(buffer))) == ["TPF101"]

    def test_a_contract_that_guards_nothing(self, desk: Desk) -> None:
        text = "import torch\n\n\n# torchperf: sync-fre\ndef step(x: torch.Tensor):\n    return x\n"
        (found,) = desk.shown(text)
        assert (found.code, found.code_description) == ("TPF901", None)
        assert "did you mean `# torchperf: sync-free`?" in found.message
        assert underlined(text, found.range) == "# torchperf: sync-fre"
        assert desk.shown(text.replace("sync-fre", "sync-free")) == ()
        assert desk.shown(text.replace("sync-fre", "sync-fre  # noqa: TPF901")) == ()

    def test_what_the_configuration_leaves_out(self, desk: Desk) -> None:
        assert desk.shown(READS, "quiet.py") == ()
        assert desk.shown(READS, "build/made.py") == ()
        assert desk.shown(READS.replace("values]", "values]  # noqa: TPF101")) == ()

    def test_new_text_and_cells_of_notebooks(self, desk: Desk) -> None:
        buffer = desk.editor.open("untitled:Untitled-1", READS)
        assert codes(desk.run(desk.editor.diagnostics(buffer))) == ["TPF101"]
        cell = desk.editor.open("vscode-notebook-cell:/a.ipynb#1", READS)
        desk.shown(READS)
        assert cell.published == []

    def test_only_the_last_of_many_texts_is_shown_last(self, desk: Desk) -> None:
        buffer = desk.open("")
        for end in range(1, len(READS) + 1):
            desk.editor.change(buffer, READS[:end])
        assert codes(desk.run(desk.editor.diagnostics(buffer))) == ["TPF101"]
        desk.shown(READS)  # whatever was under way is over
        versions = [one.version or 0 for one in buffer.published]
        assert versions == sorted(versions)
        assert versions[-1] == buffer.version
        assert len(versions) < 10

    def test_a_closed_file_has_none(self, desk: Desk) -> None:
        buffer = desk.open(READS)
        desk.run(desk.editor.diagnostics(buffer))
        identifier = types.TextDocumentIdentifier(buffer.uri)
        desk.editor.client.text_document_did_close(types.DidCloseTextDocumentParams(identifier))
        desk.shown(READS)
        assert buffer.published[-1].diagnostics == ()

    def test_what_is_saved_beside_it_counts(self, desk: Desk) -> None:
        package = desk.folder / "package"
        package.mkdir()
        (package / "__init__.py").write_text("")
        (package / "values.py").write_text("def loss():\n    return 1.0\n")
        (package / "using.py").write_text(USING)
        using = desk.open(USING, "package/using.py")
        assert desk.run(desk.editor.diagnostics(using)) == ()
        values = desk.open(
            "import torch\n\n\ndef loss():\n    return torch.ones((), device='cuda')\n",
            "package/values.py",
        )
        seen = len(using.published)
        desk.editor.save(values, package / "values.py")
        again = desk.run(desk.editor.published(using, seen))
        assert codes(again.diagnostics) == ["TPF101"]


class TestHover:
    def test_the_rule_the_reason_and_what_was_measured(self, desk: Desk) -> None:
        buffer = desk.open(CALLED)
        text = desk.run(desk.editor.hover(buffer, types.Position(16, 13)))
        assert "TPF101 read-of-a-tensor-value" in text
        assert "annotation of parameter `loss` (line 16)" in text
        assert "On an H100" in text

    def test_elsewhere_nothing(self, desk: Desk) -> None:
        assert desk.run(desk.editor.hover(desk.open(CALLED), types.Position(0, 0))) == ""


class TestActions:
    def test_a_safe_fix(self, desk: Desk) -> None:
        buffer = desk.open(FIXABLE)
        text = desk.after(buffer, "TPF501: fix (device argument)")
        assert "torch.zeros(3, device=x.device)" in text
        desk.editor.change(buffer, text)
        assert "TPF501" not in codes(desk.run(desk.editor.diagnostics(buffer)))

    def test_an_unsafe_fix_says_what_it_changes(self, desk: Desk) -> None:
        buffer = desk.open(TOTAL)
        text = desk.after(buffer, "TPF206: unsafe fix (total on device): tensors on several")
        assert "total += row.sum().detach()" in text

    def test_all_safe_fixes_of_a_file(self, desk: Desk) -> None:
        buffer = desk.open(FIXABLE)
        text = desk.after(buffer, "torchperf: make all safe fixes", ["source.fixAll"])
        path = desk.folder / "fixed_alone.py"
        path.write_text(FIXABLE)
        command = [sys.executable, "-m", "flake8_torchperf.cli.main", "fix", path.name]
        run_forked(command, cwd=desk.folder)
        assert text == path.read_text() != FIXABLE
        kinds = desk.run(desk.editor.actions(buffer, EVERYWHERE, ["source.organizeImports"]))
        assert kinds == {}

    def test_a_noqa_with_a_reason(self, desk: Desk) -> None:
        buffer = desk.open(READS)
        text = desk.after(buffer, "TPF101: ignore here")
        assert text.endswith("for value in values]  # noqa: TPF101 - REASON\n")
        desk.editor.change(buffer, text)
        assert desk.run(desk.editor.diagnostics(buffer)) == ()

    def test_a_contract(self, desk: Desk) -> None:
        text = desk.after(desk.open(READS), "report: must never wait")
        assert "-> list[float]:  # torchperf: sync-free\n" in text

    def test_an_action_of_an_older_text_does_nothing(self, desk: Desk) -> None:
        buffer = desk.open(FIXABLE)

        async def late() -> types.CodeAction:
            found = await desk.editor.actions(buffer, EVERYWHERE, ["source.fixAll"])
            desk.editor.change(buffer, "# new\n" + FIXABLE)
            return await desk.editor.resolve(*found.values())

        assert desk.run(late()).edit is None

    def test_an_editor_that_resolves_nothing_gets_edits_at_once(self, tmp_path: Path) -> None:
        async def act() -> list[types.CodeAction]:
            able = client_capabilities("emacs")
            assert able.text_document is not None
            assert able.text_document.code_action is not None
            able.text_document.code_action.resolve_support = None
            async with editor(tmp_path, client=checking(able), able=able) as one:
                buffer = one.open(tmp_path / "a.py", FIXABLE)
                return [*(await one.actions(buffer, EVERYWHERE)).values()]

        found = asyncio.run(act())
        assert "source.fixAll.torchperf" in {one.kind for one in found}
        assert all(one.edit is not None for one in found)


class TestSettings:
    def test_a_cold_function_is_named_in_pyproject(self, tmp_path: Path) -> None:
        """The file is made, and reread as soon as it is there."""

        async def act() -> tuple[str, list[str]]:
            async with editor(tmp_path, client=checking()) as one:
                buffer = one.open(tmp_path / "a.py", CALLED)
                found = await one.actions(buffer, EVERYWHERE)
                action = await one.resolve(found["show: runs seldom (cold in pyproject.toml)"])
                path = tmp_path / "pyproject.toml"
                path.write_text(applied("", edits_of(action, path.as_uri())))
                one.change(buffer, CALLED + "\n")
                return path.read_text(), codes(await one.diagnostics(buffer))

        text, left = asyncio.run(act())
        assert text == '[tool.torchperf]\ncold = ["show"]\n'
        assert left == []

    def test_each_folder_has_its_own_and_mistakes_are_said_once(self, tmp_path: Path) -> None:
        loops, broken = tmp_path / "loops", tmp_path / "broken"
        for folder in (loops, broken):
            folder.mkdir()
        (broken / "pyproject.toml").write_text("[tool.torchperf]\nscop = 'loop'\n")

        async def act() -> None:
            async with editor(loops, broken, client=checking()) as one:
                first = one.open(loops / "a.py", READS)
                second = one.open(broken / "a.py", READS)
                assert codes(await one.diagnostics(first)) == ["TPF101"]
                assert codes(await one.diagnostics(second)) == []
                one.change(second, READS + "\n")
                assert codes(await one.diagnostics(second)) == []
                (said,) = one.messages
                assert "has no setting 'scop'; did you mean 'scope'?" in said
                (broken / "pyproject.toml").write_text("[tool.torchperf]\ncold = ['report']\n")
                one.change(second, READS)
                assert codes(await one.diagnostics(second)) == []
                (broken / "pyproject.toml").write_text("[tool.torchperf]\nscope = 'all'\n")
                one.change(second, READS + "\n")
                assert codes(await one.diagnostics(second)) == ["TPF101"]
                assert len(one.messages) == 1

        asyncio.run(act())

    def test_folders_and_files_that_come_and_go(self, tmp_path: Path) -> None:
        first, second = tmp_path / "first", tmp_path / "second"
        for folder in (first, second):
            folder.mkdir()
        (second / "pyproject.toml").write_text("[tool.torchperf]\ncold = ['report']\n")
        able = client_capabilities("visual-studio-code")

        async def act() -> None:
            async with editor(first, client=checking(able), able=able) as one:
                buffer = one.open(second / "inner" / "a.py", READS)
                # Of no folder, it is linted in its own, whose settings lie above it.
                assert codes(await one.diagnostics(buffer)) == []
                outside = one.open(tmp_path / "b.py", READS)
                assert codes(await one.diagnostics(outside)) == ["TPF101"]
                seen = len(outside.published)
                added = [types.WorkspaceFolder(tmp_path.as_uri(), "all")]
                event = types.WorkspaceFoldersChangeEvent(added, [])
                params = types.DidChangeWorkspaceFoldersParams(event)
                one.client.workspace_did_change_workspace_folders(params)
                await one.published(outside, seen - 1)
                (watching,) = one.registered
                assert watching.method == "workspace/didChangeWatchedFiles"
                seen = len(outside.published)
                (tmp_path / "pyproject.toml").write_text("[tool.torchperf]\ncold = ['report']\n")
                uri = (tmp_path / "pyproject.toml").as_uri()
                made = types.FileEvent(uri, types.FileChangeType.Created)
                one.client.workspace_did_change_watched_files(
                    types.DidChangeWatchedFilesParams([made])
                )
                assert codes((await one.published(outside, seen)).diagnostics) == []

        asyncio.run(act())

    def test_what_a_profile_says(self, tmp_path: Path) -> None:
        (tmp_path / "train.py").write_text(CALLED)
        made = [
            ProfileEntry(statement.node.lineno, *key, "", runs=1, times=40, waits=30, seconds=1.5)
            for statement, key in keyed(Statements(ast.parse(CALLED)))
        ]
        write(tmp_path / "profile.json", Profile({"train.py": tuple(made)}, 1, ("cuda:0",)))
        (tmp_path / "pyproject.toml").write_text("[tool.torchperf]\nprofile = 'profile.json'\n")

        async def act() -> str:
            async with editor(tmp_path, client=checking()) as one:
                path = tmp_path / "train.py"
                return await one.hover(one.open(path, path.read_text()), types.Position(16, 13))

        assert "Profile: ran 40 times, 30 waits of 1.5 s in all." in asyncio.run(act())


def children(process: int) -> list[int]:
    listed = Path(f"/proc/{process}/task/{process}/children")
    return [int(word) for word in listed.read_text().split()]


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


class TestProcess:
    @pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc")
    @pytest.mark.parametrize("killed", [False, True])
    def test_nothing_is_left_behind(self, killed: bool, tmp_path: Path) -> None:
        async def act() -> list[int]:
            started: list[int] = []
            client = checking()
            try:
                async with editor(tmp_path, client=client) as one:
                    await one.diagnostics(one.open(tmp_path / "a.py", READS))
                    started = [one.process, *children(one.process)]
                    if killed:
                        server: Any = client._server
                        server.kill()
                        await server.wait()
                        raise InterruptedError
            except InterruptedError:
                pass
            return started

        started = asyncio.run(act())
        assert len(started) == 2
        end = time.monotonic() + HANG
        while any(map(is_running, started)) and time.monotonic() < end:
            time.sleep(0.05)
        assert not any(map(is_running, started))

    def test_a_request_can_be_cancelled(self, desk: Desk) -> None:
        async def act() -> Any:
            buffer = desk.open(READS * 100)  # takes far longer than a message
            params = types.HoverParams(
                types.TextDocumentIdentifier(buffer.uri), types.Position(4, 13)
            )
            waiting = desk.editor.client.protocol.send_request(
                types.TEXT_DOCUMENT_HOVER, params, msg_id="late"
            )
            desk.editor.client.cancel_request(types.CancelParams("late"))
            try:
                await asyncio.wrap_future(waiting)
            except Exception as error:
                return error
            return None

        error = desk.run(act())
        assert error is not None
        assert "cancel" in str(error).lower()
        assert codes(desk.shown(READS)) == ["TPF101"]

    def test_it_executes_nothing(self, tmp_path: Path) -> None:
        """Neither what it lints, nor what lies beside that under the names of what it imports."""
        mark = f"open({str(tmp_path / 'ran')!r}, 'w').close()\n"
        names = ("a", "torch", "libcst", "pygls", "flake8", "ast", "local", "conftest", "setup")
        for name in names:
            (tmp_path / f"{name}.py").write_text(mark)
        (tmp_path / ".flake8").write_text(
            "[flake8]\n[flake8:local-plugins]\nextension =\n    LOC = local:Plugin\npaths = .\n"
        )

        async def act() -> list[str]:
            environment = dict(os.environ)
            environment["PYTHONPATH"] = str(ROOT)
            program = f"import sys; sys.path.remove(''); import os; os.chdir({str(tmp_path)!r}); from flake8_torchperf.cli.main import main; main(['server'])"
            command = [sys.executable, "-c", program]
            async with editor(tmp_path, client=checking(), server=command) as one:
                buffer = one.open(tmp_path / "a.py", mark + FIXABLE)
                await one.diagnostics(buffer)
                found = await one.actions(buffer, EVERYWHERE, ["source.fixAll"])
                await one.resolve(*found.values())
                return codes(await one.diagnostics(buffer))

        assert "TPF501" in asyncio.run(act())
        assert not (tmp_path / "ran").exists()

    def test_without_pygls_one_line(self) -> None:
        hide = "import sys; sys.modules['pygls'] = None; from flake8_torchperf.cli.main import main; sys.exit(main(['server']))"
        done = subprocess.run([sys.executable, "-c", hide], capture_output=True, text=True)
        assert done.returncode == 2
        assert (
            done.stderr
            == "torchperf: server: pygls 2 is not installed: pip install 'flake8-torchperf[server]'\n"
        )
