"""Code actions: the actions offered for findings, and the edit that each of them makes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from lsprotocol import types

from flake8_torchperf.findings.rule import SAFE, SUGGESTED
from flake8_torchperf.reserved import INTERNAL_ERROR
from flake8_torchperf.server import marks
from flake8_torchperf.server.messages import Failed, FixAll, FixRequest, Text
from flake8_torchperf.server.text import Units
from flake8_torchperf.syntax.contract_comments import CONTRACT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from flake8_torchperf.server.documents import Document
    from flake8_torchperf.server.messages import Offer, Problem, Request

FIX_ALL = "source.fixAll.torchperf"
QUICK_FIX = types.CodeActionKind.QuickFix
ACTION_KINDS = (QUICK_FIX, FIX_ALL)
# The actions that `data` can name, besides fixes.
NOQA, MARK, ALL = "noqa", "mark", "all"
Data: TypeAlias = "dict[str, Any]"


class NoEditError(Exception):
    """An action that cannot be carried out; the text is one line for a person."""


@dataclass(frozen=True)
class Client:
    """The abilities of the editor: its encoding, versioned edits, and creation of files."""

    encoding: str
    versions: bool
    creates: bool


def offered(
    problems: Sequence[tuple[Problem, types.Diagnostic]],
    document: Document,
    uri: str,
    wanted: Callable[[str], bool],
    client: Client,
) -> list[types.CodeAction]:
    """Return the actions for findings, and for all of a document, without their edits."""
    base: Data = {"uri": uri, "version": document.version}
    found: list[types.CodeAction] = []
    if wanted(QUICK_FIX):
        can_name = client.creates or os.path.exists(marks.settings_file(document.worker.folder))
        for problem, diagnostic in problems:
            for title, does in _for_problem(problem, can_name):
                preferred = does.pop("preferred", None)
                data = {**base, **does}
                found.append(
                    types.CodeAction(
                        title, QUICK_FIX, [diagnostic], is_preferred=preferred, data=data
                    )
                )
    fixable = any(offer.safety == SAFE for one in document.problems for offer in one.offers)
    if wanted(FIX_ALL) and fixable:
        title = "torchperf: make all safe fixes in this file"
        found.append(types.CodeAction(title, FIX_ALL, data={**base, "does": ALL}))
    return found


def _for_problem(problem: Problem, can_name: bool) -> Iterator[tuple[str, Data]]:
    """Yield title and data of each action for a finding; ``can_name`` allows those on settings."""
    place = {"code": problem.code, "line": problem.span[0], "column": problem.span[1]}
    for offer in problem.offers:
        preferred = offer.safety == SAFE or None
        yield _title(problem, offer), {**place, "does": offer.name, "preferred": preferred}
    if problem.code == INTERNAL_ERROR:
        return
    yield f"{problem.code}: ignore here, with a reason (# noqa)", {**place, "does": NOQA}
    function = problem.function
    if not function:
        return
    title = f"{function}: must never wait (# {CONTRACT})"
    yield title, {"does": MARK, "head": problem.head}
    for key, words in ((marks.HOT, "runs every step"), (marks.COLD, "runs seldom")):
        if can_name:
            title = f"{function}: {words} ({key} in {marks.PYPROJECT})"
            yield title, {"does": MARK, "key": key, "function": function}


def _title(problem: Problem, offer: Offer) -> str:
    words = offer.name.replace("-", " ")
    if offer.safety == SAFE:
        return f"{problem.code}: fix ({words})"
    kind = "suggestion" if offer.safety == SUGGESTED else "unsafe fix"
    return f"{problem.code}: {kind} ({words}): {offer.changes}"


async def edit(data: Data, document: Document, client: Client) -> types.WorkspaceEdit:
    """Return the edit of an action. Raises `NoEditError` if there is none."""
    text, does = document.text, data["does"]
    after: str | None
    if does == MARK and "key" in data:
        return _settings_edit(data, document, client)
    if does == MARK:
        after = marks.with_sync_free(text, data["head"])
    elif does == NOQA:
        after = marks.with_noqa(text, data["line"], data["code"])
    elif does == ALL:
        after = await _rewritten(document, FixAll(document.path, text))
    else:
        place = (data["code"], data["line"], data["column"])
        after = await _rewritten(document, FixRequest(document.path, text, *place, does))
    if after is None:
        raise NoEditError("no comment can be written there")
    return _as_edit(data["uri"], data["version"], text, after, client)


async def _rewritten(document: Document, request: Request) -> str:
    reply = await document.worker.ask(lambda: request)
    if isinstance(reply, Text):
        return reply.text
    raise NoEditError(reply.problem if isinstance(reply, Failed) else "the server is shutting down")


def _settings_edit(data: Data, document: Document, client: Client) -> types.WorkspaceEdit:
    try:
        path, before, after = marks.with_named(
            document.worker.folder, data["key"], data["function"]
        )
    except marks.NotMarkedError as error:
        raise NoEditError(str(error)) from error
    uri = Path(path).as_uri()
    if os.path.exists(path):
        return _as_edit(uri, None, before, after, client)
    if not client.creates:
        raise NoEditError(f"there is no {path}: make one, with\n{after}")
    edit = _as_edit(uri, None, before, after, client)
    assert edit.document_changes is not None
    new = types.CreateFile(uri, options=types.CreateFileOptions(ignore_if_exists=True))
    return types.WorkspaceEdit(document_changes=[new, *edit.document_changes])


def _as_edit(
    uri: str, version: int | None, before: str, after: str, client: Client
) -> types.WorkspaceEdit:
    edits = Units(before, client.encoding).edits(after)
    if not client.versions:
        return types.WorkspaceEdit(changes={uri: edits})
    identifier = types.OptionalVersionedTextDocumentIdentifier(uri, version)
    return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(identifier, edits)])
