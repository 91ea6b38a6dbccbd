"""Regions that may wait are silent, at every scope and under contracts."""

from __future__ import annotations

from pathlib import Path

import pytest
from check_run import check, torchperf

STEP = """
import torch
{imports}

def train(model, optimizer, batches, total):
    for batch in batches:
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
{body}
"""


def lines(folder: Path, body: str, *options: str, imports: str = "") -> list[int]:
    """Return the lines with findings, counted from the first line of ``body``."""
    text = STEP.replace("{imports}", imports).replace("{body}", body)
    (folder / "train.py").write_text(text, encoding="utf-8")
    found = check(*options, "train.py", cwd=folder).results
    return [one.line - 9 for one in found]


NAMES = [
    ("from torchperf import allow_sync", 'allow_sync("shown")'),
    ("from torchperf import allow_sync as a", 'a("shown", first_only=True)'),
    ("import torchperf", 'torchperf.allow_sync(reason="shown")'),
    (
        "from vllm.utils.gpu_sync_debug import gpu_sync_allowed",
        "gpu_sync_allowed(first_only=True)",
    ),
]


@pytest.mark.parametrize("scope", ["hot", "loop", "all"])
@pytest.mark.parametrize(("imports", "region"), NAMES)
def test_a_region_is_silent(imports: str, region: str, scope: str, tmp_path: Path) -> None:
    body = f"        with {region}:\n            total += loss.item()\n        print(loss.item())"
    assert lines(tmp_path, body, "--scope", scope, imports=imports) == [3]


def test_other_names_allow_nothing(tmp_path: Path) -> None:
    body = '        with allow_sync("shown"):\n            print(loss.item())'
    assert lines(tmp_path, body, imports="from mine import allow_sync") == [2]


def test_functions_in_a_region_run_elsewhere(tmp_path: Path) -> None:
    body = (
        '        with allow_sync("shown"):\n'
        "            def later():\n"
        "                print(loss.item())\n"
        "            later()"
    )
    found = lines(tmp_path, body, "--scope", "all", imports="from torchperf import allow_sync")
    assert found == [3]


def test_a_decorated_function_is_a_region_and_its_callees_are_not(tmp_path: Path) -> None:
    text = """
import torch
from torchperf import allow_sync

@allow_sync("shown")
def show(loss: torch.Tensor) -> None:
    print(loss.item())
    helper(loss)

def helper(loss: torch.Tensor) -> None:
    print(loss.item())
"""
    (tmp_path / "show.py").write_text(text, encoding="utf-8")
    found = check("--scope", "all", "show.py", cwd=tmp_path).results
    assert [one.line for one in found] == [11]


def test_a_region_is_silent_under_a_contract(tmp_path: Path) -> None:
    text = """
import torch
from torchperf import allow_sync

def decode(x: torch.Tensor) -> float:  # torchperf: sync-free
    with allow_sync("shown"):
        x.item()
    return x.item()
"""
    (tmp_path / "decode.py").write_text(text, encoding="utf-8")
    assert [one.line for one in check("decode.py", cwd=tmp_path).results] == [8]


def test_why_gives_the_reason(tmp_path: Path) -> None:
    body = '        with allow_sync("the loss\\n  is shown"):\n            print(loss.item())'
    lines(tmp_path, body, imports="from torchperf import allow_sync")
    done = torchperf("why", "train.py:11", cwd=tmp_path)
    assert "`allow_sync` allows waits here: the loss is shown" in done.output


COMMENT = """        print(model(batch).sum().item())  # gpu-sync-ok: shown for once
        print(model(batch).sum().item())  # gpu-sync-okay: another word
        # gpu-sync-ok: the line below
        print(model(batch).sum().item())
        print("# gpu-sync-ok: a text", model(batch).sum().item())"""


def test_a_comment_allows_the_waits_of_its_line(tmp_path: Path) -> None:
    assert lines(tmp_path, COMMENT) == [1, 2, 4, 5]
    assert lines(tmp_path, COMMENT, "--allow-comments", "gpu-sync-ok") == [2, 4, 5]
    assert lines(tmp_path, COMMENT, "--allow-comments=gpu-sync-ok,gpu-sync-okay") == [4, 5]
    assert lines(tmp_path, COMMENT, "--allow-comments", "gpu-sync-ok", "--scope=all") == [2, 4, 5]


def test_why_gives_the_reason_of_a_comment(tmp_path: Path) -> None:
    lines(tmp_path, COMMENT)
    done = torchperf("why", "--allow-comments=gpu-sync-ok", "train.py:10", cwd=tmp_path)
    assert "`# gpu-sync-ok` allows waits here: shown for once" in done.output


def test_a_comment_that_is_no_word_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    done = torchperf("check", "--allow-comments=# ok", "train.py", cwd=tmp_path)
    assert done.status == 2
    assert "allow-comments: '#' is no word; write for example gpu-sync-ok" in done.errors
