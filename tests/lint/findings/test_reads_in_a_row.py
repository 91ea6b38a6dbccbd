"""Rows of waits: each is a finding, and the first that is reported names the others.

The programs of `ONE_ROW` have a wait on each marked line, all in one row; in those of `NO_ROW` each
marked line stands alone.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from check_run import torchperf
from flake8_run import flake8
from linting import ALL, HOT, LOOP, check, expected, program, table

from flake8_torchperf.findings.message import leading
from flake8_torchperf.linter import lint
from flake8_torchperf.options import Options

PRELUDE = """\
import logging
import math
import time
import torch
import torch.nn.functional as F
from torch import Tensor, nn

logger = logging.getLogger(__name__)
"""

ONE_ROW = {
    "statements": """
        def train_step(loss: Tensor, norm: Tensor):
            first = loss.item()  # TPF101
            second = float(norm)  # TPF101
            return first + second
        """,
    "the items of a display": """
        def train_step(loss: Tensor, norm: Tensor):
            return {
                "loss": loss.item(),  # TPF101
                "norm": norm.detach().item(),  # TPF101
                "rows": [norm.item()],  # TPF101
            }
        """,
    "the arguments of a call": """
        def train_step(loss: Tensor, norm: Tensor, wandb):
            wandb.log({
                "loss": loss.item(),  # TPF101
                "norm": norm.item(),  # TPF101
            })
            return dict(
                loss=loss.item(),  # TPF101
                norm=norm.item(),  # TPF101
            )
        """,
    "both sides of an operator": """
        def train_step(x: Tensor):
            return (x.item() or  # TPF101
                    x.item())  # TPF101
        """,
    "meters, writers, lists and logs": """
        def train_step(loss: Tensor, x: Tensor, meter, writer, losses, self, step: int, pbar):
            meter.update(loss.item(), x.size(0))  # TPF101
            writer.add_scalar("loss", loss.item(), step)  # TPF101
            losses.append(float(loss))  # TPF101
            logger.info(f"{loss.item():.3f}")  # TPF101
            self.log("loss", loss)
            pbar.update(1)
            self.metrics["loss"] = loss.item()  # TPF101
            self.history["loss"].append(loss.item())  # TPF101
            pbar.set_description(f"loss {loss.item()}")  # TPF101
        """,
    "a number that was read is handed on": """
        def train_step(loss: Tensor, norm: Tensor, tracker, step):
            value = loss.item()  # TPF101
            scaled = value / 2
            tracker.remember(value, scaled, step=step)
            return norm.item()  # TPF101
        """,
    "views, sizes and arithmetic on numbers in between": """
        def train_step(x: Tensor, y: Tensor, step: int):
            a = x.item()  # TPF101
            z = y.detach().view(-1)[1:].unsqueeze(0)
            with torch.no_grad():
                n = z.size(0) + step * 2
            began = time.perf_counter()
            b = y.item()  # TPF101
            return a / 2 + n, b, began
        """,
    "a number in a text": """
        def train_step(x: Tensor):
            loss = x.mean()
            rows = loss.tolist()  # TPF102
            return rows, f"{loss:.3f}"  # TPF104
        """,
    "behind an explicit synchronisation": """
        def train(model, loader):
            for x in loader:
                loss = model(x)
                loss.backward()
                torch.cuda.synchronize()  # TPF106
                print(loss.item())  # TPF101
        """,
    "in a branch and behind it": """
        def train_step(x: Tensor, loud: bool):
            a = x.item()  # TPF101
            if loud:
                print(x.item())  # TPF101
            else:
                a += 1
            return a + x.item()  # TPF101
        """,
    "a branch with work that leaves": """
        def train_step(x: Tensor, model, bad: bool):
            a = x.item()  # TPF101
            if bad:
                model(x)
                raise ValueError("bad")
            return a + x.item()  # TPF101
        """,
    "try": """
        def train_step(x: Tensor):
            a = x.item()  # TPF101
            try:
                b = x.item()  # TPF101
            except RuntimeError:
                b = 0.0
            return a + b + x.item()  # TPF101
        """,
    "match": """
        def train_step(x: Tensor, mode: str):
            a = x.item()  # TPF101
            match mode:
                case "max":
                    return x.item()  # TPF101
                case _:
                    a += 1
            return a + x.item()  # TPF101
        """,
    "in one round of a comprehension": """
        def train_step(parts: list[Tensor]):
            return [(p.item(), p.item()) for p in parts]  # TPF101, TPF101
        """,
    "a class that is given numbers": """
        def train_step(x: Tensor):
            low = Bound(x.item())  # TPF101
            return low, Bound(x.item())  # TPF101
        """,
    "or a number anyhow": """
        def train_step(x: Tensor, extra: Tensor, meter):
            low = x.item()  # TPF101
            meter.update(low, extra if isinstance(extra, float) else extra.item())  # TPF101
            return x.item()  # TPF101
        """,
    "other ways to read": """
        def train_step(x: Tensor, n: Tensor):
            for _ in range(3):
                print(n)  # TPF104
                rows = x.tolist()  # TPF102
                torch.cuda.synchronize()  # TPF106
                print(n.item())  # TPF101
        """,
}


@table(ONE_ROW)
def test_waits_in_a_row_belong_together(code):
    check(code, prelude=PRELUDE)
    found = lint(program(code, PRELUDE), "model.py", HOT)
    assert len({f.row for f in found}) == 1
    assert found[0].row
    assert [bool(f.lead) for f in found] == [True] * (len(found) - 1) + [False]


@table(ONE_ROW)
def test_each_wait_stands_alone_where_everything_is_asked_for(code):
    source = program(code, PRELUDE)
    found = lint(source, "model.py", ALL)
    told = [(f.line, f.code) for f in found]
    assert not [row for row in expected(source) if row not in told]
    assert not any(f.row for f in found)


NO_ROW = {
    "any work": """
        def train_step(x: Tensor, y: Tensor, mask: Tensor):
            a = x.item()  # TPF101
            b = (x * 2).item()  # TPF101
            z = -y
            c = x.item()  # TPF101
            z = y < x
            d = x.item()  # TPF101
            z = torch.exp(y)
            e = x.item()  # TPF101
            z += 1
            f = x.item()  # TPF101
            z = y[x]
            g = x.item()  # TPF101
            y[0] = 0
            h = x.item()  # TPF101
            z = y.to(torch.float64)
            return a, b, c, d, e, f, g, h, y.mean().item()  # TPF101
        """,
    "the text of a tensor, which torch computes": """
        def train_step(x: Tensor):
            a = x.item()  # TPF101
            return a, str(x)  # TPF104
        """,
    "other ranks": """
        def train_step(x: Tensor):
            a = x.item()  # TPF101
            torch.distributed.barrier()  # TPF106
            return a, x.item()  # TPF101
        """,
    "other streams": """
        def train_step(x: Tensor, stream: torch.cuda.Stream):
            a = x.item()  # TPF101
            stream.synchronize()  # TPF106
            return a, x.item()  # TPF101
        """,
    "a model": """
        def train_step(x: Tensor, model):
            a = x.sum().item()  # TPF101
            y = model(x)
            return a, y.sum().item()  # TPF101
        """,
    "a layer of a name that tensors have": """
        class Net(nn.Module):
            def forward(self, x: Tensor):
                a = x.sum().item()  # TPF101
                y = self.norm(x)
                return a, y.sum().item()  # TPF101
        """,
    "backward": """
        def train_step(x: Tensor):
            a = x.sum().item()  # TPF101
            x.backward()
            return a, x.grad.sum().item()  # TPF101
        """,
    "a step": """
        def train_step(x: Tensor, optimizer):
            a = x.sum().item()  # TPF101
            optimizer.step()
            return a, x.sum().item()  # TPF101
        """,
    "a step that is given a number": """
        def train_step(x: Tensor, scheduler):
            scheduler.step(x.sum().item())  # TPF101
            return x.sum().item()  # TPF101
        """,
    "matrix products": """
        def train_step(x: Tensor, w: Tensor):
            a = x.sum().item()  # TPF101
            y = x @ w
            b = y.sum().item()  # TPF101
            y = torch.mm(x, w)
            c = y.sum().item()  # TPF101
            y = x.bmm(w)
            d = y.sum().item()  # TPF101
            y = torch.einsum("ij,jk", x, w)
            e = y.sum().item()  # TPF101
            y = F.linear(x, w)
            f = y.sum().item()  # TPF101
            y = torch.linalg.svd(x)[1]  # TPF404
            g = y.sum().item()  # TPF101
            y = x.sort().values
            return a, b, c, d, e, f, g, y.sum().item()  # TPF101
        """,
    "a function of the project": """
        def train_step(x: Tensor):
            a = x.sum().item()  # TPF101
            y = blurred(x)
            return a, x.sum().item()  # TPF101
        """,
    "a call without arguments": """
        def train_step(x: Tensor, env):
            a = x.sum().item()  # TPF101
            env.reset()
            return a, x.sum().item()  # TPF101
        """,
    "a call that is given a tensor too": """
        def train_step(x: Tensor, y: Tensor, meter):
            meter.update(x.sum().item(), y)  # TPF101
            return x.sum().item()  # TPF101
        """,
    "a call whose result is used": """
        def train_step(x: Tensor):
            y = rendered(x.sum().item())  # TPF101
            return y, x.sum().item()  # TPF101
        """,
    "a loop": """
        def train_step(x: Tensor, names):
            a = x.sum().item()  # TPF101
            for name in names:
                a += len(name)
            b = x.sum().item()  # TPF101
            c = [len(name) for name in names]
            d = x.sum().item()  # TPF101
            while a > 3:
                a -= 1
            return a, b, c, d, x.sum().item()  # TPF101
        """,
    "in a loop and before it": """
        def train_step(x: Tensor):
            a = x.sum().item()  # TPF101
            for _ in range(3):
                a += x.max().item()  # TPF206
            return a + x.min().item()  # TPF101
        """,
    "a loop's test": """
        def train_step(x: Tensor):
            while x.sum() > 3:  # TPF302
                x = x - x.mean().item()  # TPF101
            return x
        """,
    "a branch with work": """
        def train_step(x: Tensor, model, loud: bool):
            a = x.sum().item()  # TPF101
            if loud:
                x = model(x)
            return a, x.sum().item()  # TPF101
        """,
    "two branches": """
        def train_step(x: Tensor, loud: bool):
            if loud:
                a = x.sum().item()  # TPF101
            else:
                a = x.max().item()  # TPF101
            return a + x.min().item()  # TPF101
        """,
    "work in the body of try": """
        def train_step(x: Tensor, model):
            a = x.sum().item()  # TPF101
            try:
                x = model(x)
            except RuntimeError:
                a = 0.0
            return a + x.max().item()  # TPF101
        """,
    "two functions": """
        def train_step(x: Tensor):
            a = x.sum().item()  # TPF101

            def inner_step(y: Tensor):
                return y.sum().item()  # TPF101

            return a, inner_step
        """,
    "a generator": """
        def train_step(x: Tensor):
            yield x.sum().item()  # TPF101
            yield x.max().item()  # TPF101
        """,
    "checks for what is not finite": """
        def train_step(model: nn.Module):
            for p in model.parameters():
                if torch.isinf(p).any() or torch.isnan(p).any():  # TPF203, TPF203
                    return False
        """,
    "a selection by a mask": """
        def train_step(x: Tensor):
            y = x[x > 0]  # TPF402
            return y.sum().item()  # TPF101
        """,
    "compiled code": """
        @torch.compile
        def train_step(x: Tensor):
            return x.sum().item() + x.max().item()  # TPF602, TPF602
        """,
    "reads that ask for different remedies": """
        def train_step(x: Tensor, n: Tensor):
            for _ in range(3):
                rows = x.tolist()  # TPF102
                same = torch.allclose(x, n)  # TPF105
                low = max(n, 1.0)  # TPF103
                part = x[:n]  # TPF107
                if n > 3:  # TPF301
                    rows = []
                assert n < 5  # TPF303
        """,
    "a running total": """
        def train(model, loader, opt):
            total = 0.0
            for x in loader:
                loss = model(x).sum()
                loss.backward()
                opt.step()
                total += loss.item()  # TPF206
                print(loss.item())  # TPF101
        """,
    "led by a test": """
        def train_step(x: Tensor):
            y = x.sum()
            if y > 3:  # TPF301
                return y.item()  # TPF101
            return x.max().item()  # TPF101
        """,
}


@table(NO_ROW)
def test_waits_with_work_between_them_stand_alone(code):
    source = program(code, PRELUDE)
    found = lint(source, "model.py", HOT)
    assert sorted((f.line, f.code) for f in found) == expected(source)
    assert not any(f.row for f in found)


def rows(source: str, options: Options = HOT) -> list[list[int]]:
    """Return the lines of each row of waits."""
    found: dict[str, list[int]] = {}
    for one in lint(program(source), "model.py", options):
        found.setdefault(one.row or str(one.line), []).append(one.line)
    return list(found.values())


def test_a_row_ends_where_work_is_queued():
    source = """
        def train_step(x: Tensor, model):
            a = x.item()
            b = x.tolist()
            y = model(x)
            c = x.item()
            return a, b, c, y, x.tolist()
        """
    assert rows(source) == [[8, 9], [11, 12]]


def test_the_first_of_the_scope_leads():
    source = """
        def train_step(x: Tensor):
            a = x.item()
            for _ in range(3):
                b = x.item()
                c = x.tolist()
        """
    assert rows(source, LOOP) == [[10, 11]]


WORDS = [
    (
        ["x.item()", "y.item()"],
        "`x.item()` waits per step (a step by name), and 1 more wait at line 8; "
        "stack them for one .tolist()",
    ),
    (
        ["x.item()", "y.item()", "float(x)"],
        "`x.item()` waits per step (a step by name), and 2 more waits to line 9; "
        "stack them for one .tolist()",
    ),
    (
        ["torch.cuda.synchronize()", "x.item()"],
        "`torch.cuda.synchronize()` waits for the device per step (a step by name), "
        "and 1 more wait at line 8; remove it: reads wait anyway",
    ),
    (
        ["x.item()", "torch.cuda.synchronize()"],
        "`x.item()` waits per step (a step by name), and 1 more wait at line 8; "
        "keep it a tensor, or read once at the end",
    ),
]


def printed(folder: Path, source: str, *options: str, command: str = "flake8") -> list[str]:
    """Return the lines that flake8 or ``torchperf check`` prints of a program, without its path."""
    (folder / "model.py").write_text(program(source), encoding="utf-8")
    if command == "flake8":
        ran = flake8("-j1", "--select=TPF", *options, "model.py", cwd=folder)
    else:
        ran = torchperf("check", "--isolated", "--no-cache", *options, "model.py", cwd=folder)
    assert not ran.errors
    assert ran.status == bool(ran.output)
    return [line.removeprefix("model.py:") for line in ran.output.splitlines()]


@pytest.mark.parametrize(("reads", "words"), WORDS)
def test_the_message_names_the_others(reads, words):
    lines = "".join(f"    {read}\n" for read in reads)
    source = program(f"def train_step(x: Tensor, y: Tensor):\n{lines}")
    found = lint(source, "model.py", HOT)
    assert leading(found[0].lead, [f.line for f in found[1:]]) == words


GATE = """
    import torch.distributed as dist

    def train(model, loader):
        for x in loader:
            loss = model(x).sum()
            loss.backward()
            a = loss.item(){first}
            torch.cuda.synchronize()
            dist.barrier()
            b = loss.cpu()
    """
# Options and the comment at the first wait, and what is left: line and code of each that is printed,
# with the number of waits that it names.
SUPPRESSED = {
    "nothing": ((), "", [(13, "TPF101", 1), (15, "TPF106", 0), (16, "TPF102", 0)]),
    "noqa": ((), "  # noqa: TPF101", [(14, "TPF106", 0), (15, "TPF106", 0), (16, "TPF102", 0)]),
    "noqa of another code": (
        (), "  # noqa: TPF102", [(13, "TPF101", 1), (15, "TPF106", 0), (16, "TPF102", 0)],
    ),
    "selected": (("--select=TPF106",), "", [(14, "TPF106", 0), (15, "TPF106", 0)]),
    "ignored": (
        ("--extend-ignore=TPF101",), "", [(14, "TPF106", 0), (15, "TPF106", 0), (16, "TPF102", 0)],
    ),
    "per file": (
        ("--per-file-ignores=model.py:TPF101",), "",
        [(14, "TPF106", 0), (15, "TPF106", 0), (16, "TPF102", 0)],
    ),
    "disabled noqa": (
        ("--disable-noqa",), "  # noqa",
        [(13, "TPF101", 1), (15, "TPF106", 0), (16, "TPF102", 0)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("command", ["flake8", "check"])
@pytest.mark.parametrize(("options", "comment", "left"), SUPPRESSED.values(), ids=SUPPRESSED)
def test_a_suppressed_wait_hides_no_other(tmp_path, command, options, comment, left):
    lines = printed(tmp_path, GATE.format(first=comment), *options, command=command)
    found = []
    for line in lines:
        number, _, rest = line.partition(":")
        more = re.search(r"and (\d+) more wait", rest)
        found.append((int(number), rest.split()[1], int(more[1]) if more else 0))
    assert found == left


def test_a_comment_counts_in_the_whole_statement(tmp_path):
    source = """
        def train_step(x: Tensor, y: Tensor):
            a = x.item() + \\
                1  # noqa: TPF101
            return a, y.item()
        """
    for command in ("flake8", "check"):
        (line,) = printed(tmp_path, source, command=command)
        assert line.startswith("10:")
        assert "more wait" not in line


@pytest.mark.parametrize("command", ["flake8", "check"])
def test_a_baseline_knows_each_wait_by_itself(tmp_path, command):
    first = """
        def train_step(x: Tensor, y: Tensor):
            return x.item()
        """
    written = ("--write-baseline=old.json",)
    (tmp_path / "model.py").write_text(program(first), encoding="utf-8")
    assert torchperf("check", "--isolated", *written, ".", cwd=tmp_path).status == 0
    more = """
        def train_step(x: Tensor, y: Tensor):
            return x.item(), y.item(), y.tolist()
        """
    (line,) = printed(tmp_path, more, "--torchperf-baseline=old.json", command=command)
    assert line.startswith("8:22: TPF101 `y.item()`")
    assert "and 1 more wait at line 8" in line


def test_a_baseline_is_written_of_each_wait(tmp_path):
    (tmp_path / "model.py").write_text(program(GATE.format(first="")), encoding="utf-8")
    written = torchperf("check", "--isolated", "--write-baseline=old.json", ".", cwd=tmp_path)
    assert written.status == 0
    entries = json.loads((tmp_path / "old.json").read_text())["files"]["model.py"]
    assert sorted(entry["code"] for entry in entries) == ["TPF101", "TPF102", "TPF106", "TPF106"]
    assert not printed(tmp_path, GATE.format(first=""), "--torchperf-baseline=old.json")


def test_a_fix_leaves_alone_what_is_suppressed(tmp_path):
    source = program("""
        def train_step(x: Tensor, y: Tensor):
            loss = x.mean()
            norm = y.mean()
            a = loss.item()
            b = norm.item()  # noqa: TPF101 - the log needs it at once
            return a, b
        """)
    (tmp_path / "model.py").write_text(source, encoding="utf-8")
    torchperf("fix", "--isolated", "--unsafe", ".", cwd=tmp_path)
    assert (tmp_path / "model.py").read_text(encoding="utf-8") == source


def test_copies_in_a_row_are_to_be_copied_together():
    source = """
        def train(model, loader):
            for x in loader:
                y = model(x)
                y.sum().backward()
                a = y.detach().cpu()
                b = x.detach().cpu()
        """
    first, second = lint(program(source), "model.py", HOT)
    assert leading(first.lead, [second.line]).endswith(
        "and 1 more wait at line 12; copy them as one tensor"
    )


def test_a_tensor_that_is_read_twice_is_to_be_read_once():
    source = """
        def train(model: nn.Module, loader, optimizer, log):
            for x in loader:
                loss = model(x).sum()
                loss.backward()
                optimizer.step()
                log.append(loss.item())
                print(loss.item())
        """
    first, second = lint(program(source), "model.py", HOT)
    assert leading(first.lead, [second.line]).endswith("read it once, and use the number")


def test_a_copy_to_the_device_keeps_its_own_advice_in_a_row():
    source = """
        def train(model: nn.Module, loader, optimizer):
            for x in loader:
                y = model(x)
                y.sum().backward()
                optimizer.step()
                weights = torch.tensor([1.0, 2.0], device=y.device)
                a = y.detach().cpu()
        """
    first, second = lint(program(source), "model.py", replace(HOT, min_worth=0.4))
    assert leading(first.lead, [second.line]).endswith("at line 13; make it once, e.g. as a buffer")


def test_findings_of_a_page_of_the_users_own_are_told_one_by_one(tmp_path: Path):
    page = next((Path(__file__).parents[3] / "rules").glob("TPF101-*.md"))
    text = page.read_text().replace("TPF101", "TPF950").replace("priority = 20", "priority = 90")
    text = text.replace("read-of-a-tensor-value", "read-in-our-code")
    (tmp_path / "TPF950-read-in-our-code.md").write_text(text)
    source = program("""
        def train_step(x: Tensor):
            return x.item(), x.item()
        """)
    found = lint(source, "model.py", replace(HOT, rules=(tmp_path,)))
    assert [(f.code, f.row) for f in found] == [("TPF950", ""), ("TPF950", "")]


def test_a_row_is_remembered_as_it_was_found(tmp_path: Path):
    for _ in ("found", "remembered"):
        lines = printed(
            tmp_path,
            ONE_ROW["statements"],
            "--torchperf-cache",
            "--torchperf-cache-dir=cache",
        )
        assert len(lines) == 1
        assert "and 1 more wait at line" in lines[0]


def test_nesting_too_deep_to_follow_leaves_each_read_a_finding():
    chain = " + ".join(["1"] * 900)
    source = program(f"""
        def train_step(x: Tensor):
            a = x.sum().item()
            b = {chain}
            return a + b + x.max().item()
        """)
    found = lint(source, "model.py", HOT)
    # Whether it can be followed depends on the Python that follows it.
    assert [f.line for f in found] in ([8], [8, 10])
