"""Reads in a row: one finding at the first of them, which names the others.

`one finding` programs have a read on each marked line, all told by the first; in the programs of
the other table each marked line is a finding of its own.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from linting import ALL, HOT, LOOP, check, expected, findings, program, table

from flake8_torchperf.cache.findings import memory_of, remembered
from flake8_torchperf.linter import lint
from flake8_torchperf.options import Options
from flake8_torchperf.told import Told

PRELUDE = """\
import logging
import math
import time
import torch
import torch.nn.functional as F
from torch import Tensor, nn

logger = logging.getLogger(__name__)
"""

ONE_FINDING = {
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
                "norm": norm.detach().mean().item(),  # TPF101
                "rows": [norm.max().item()],  # TPF101
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
            return (x.sum().item() or  # TPF101
                    x.mean().item())  # TPF101
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
    "light work in between": """
        def train_step(x: Tensor, y: Tensor):
            a = x.sum().item()  # TPF101
            z = torch.exp(x - y).abs().mean(dim=0)
            z = F.relu(z[1:]).to(torch.float64)
            with torch.no_grad():
                z = torch.where(z > a, z, torch.zeros_like(z))
            began = time.perf_counter()
            b = z.max().item()  # TPF101
            return a, b, began
        """,
    "behind an explicit synchronisation": """
        def train(model, loader):
            for x in loader:
                loss = model(x).sum()
                loss.backward()
                torch.cuda.synchronize()  # TPF106
                print(loss.item())  # TPF101
        """,
    "in a branch and behind it": """
        def train_step(x: Tensor, loud: bool):
            a = x.sum().item()  # TPF101
            if loud:
                print(x.max().item())  # TPF101
            else:
                a += 1
            return a + x.min().item()  # TPF101
        """,
    "a branch with work that leaves": """
        def train_step(x: Tensor, model, bad: bool):
            a = x.sum().item()  # TPF101
            if bad:
                model(x)
                raise ValueError("bad")
            return a + x.max().item()  # TPF101
        """,
    "try": """
        def train_step(x: Tensor):
            a = x.sum().item()  # TPF101
            try:
                b = x.max().item()  # TPF101
            except RuntimeError:
                b = 0.0
            return a + b + x.min().item()  # TPF101
        """,
    "match": """
        def train_step(x: Tensor, mode: str):
            a = x.sum().item()  # TPF101
            match mode:
                case "max":
                    return x.max().item()  # TPF101
                case _:
                    a += 1
            return a + x.min().item()  # TPF101
        """,
    "in one round of a comprehension": """
        def train_step(parts: list[Tensor]):
            return [(p.max().item(), p.min().item()) for p in parts]  # TPF101, TPF101
        """,
    "a class that is given numbers": """
        def train_step(x: Tensor):
            low = Bound(x.min().item())  # TPF101
            return low, Bound(x.max().item())  # TPF101
        """,
    "or a number anyhow": """
        def train_step(x: Tensor, extra: Tensor, meter):
            low = x.min().item()  # TPF101
            meter.update(low, extra if isinstance(extra, float) else extra.item())  # TPF101
            return x.max().item()  # TPF101
        """,
    "other ways to read": """
        def train_step(x: Tensor, n: Tensor):
            for _ in range(3):
                rows = x.tolist()  # TPF102
                print(n)  # TPF104
                torch.cuda.synchronize()  # TPF106
                print(n.item())  # TPF101
        """,
}


@table(ONE_FINDING)
def test_reads_in_a_row_are_one_finding(code):
    check(code, prelude=PRELUDE)
    source = program(code, PRELUDE)
    found = lint(source, "model.py", HOT)
    assert len(found) == 1
    (first,) = found
    rows = expected(source)
    assert (first.line, first.code) == rows[0]
    assert sorted(first.also) == rows[1:]


@table(ONE_FINDING)
def test_each_read_is_a_finding_where_everything_is_asked_for(code):
    source = program(code, PRELUDE)
    found = lint(source, "model.py", ALL)
    told = [(f.line, f.code) for f in found]
    assert not [row for row in expected(source) if row not in told]
    assert not any(f.also for f in found)


SEVERAL_FINDINGS = {
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


@table(SEVERAL_FINDINGS)
def test_reads_with_work_between_them_are_findings_of_their_own(code):
    source = program(code, PRELUDE)
    found = lint(source, "model.py", HOT)
    assert sorted((f.line, f.code) for f in found) == expected(source)
    assert not any(f.also for f in found)


def test_a_row_ends_where_work_is_queued():
    source = """
        def train_step(x: Tensor, model):
            a = x.sum().item()
            b = x.max().item()
            y = model(x)
            c = y.sum().item()
            return a, b, c, y.max().item()
        """
    found = lint(program(source), "model.py", HOT)
    assert [(f.line, f.also) for f in found] == [
        (8, ((9, "TPF101"),)),
        (11, ((12, "TPF101"),)),
    ]


def test_the_first_of_the_scope_leads():
    source = """
        def train_step(x: Tensor):
            a = x.sum().item()
            for _ in range(3):
                b = x.max().item()
                c = x.min().item()
        """
    assert [(f.line, f.also) for f in lint(program(source), "model.py", LOOP)] == [
        (10, ((11, "TPF101"),))
    ]


@pytest.mark.parametrize(
    ("reads", "words"),
    [
        (
            ["x.sum().item()", "x.max().item()"],
            "`x.sum().item()` synchronises per step (a step by name), and 1 more read at line 8; "
            "stack them for one .tolist()",
        ),
        (
            ["x.sum().item()", "x.max().item()", "float(x.min())"],
            "`x.sum().item()` synchronises per step (a step by name), and 2 more reads to line 9; "
            "stack them for one .tolist()",
        ),
        (
            ["torch.cuda.synchronize()", "x.max().item()"],
            "`torch.cuda.synchronize()` waits for the device per step (a step by name), "
            "and 1 more read at line 8; use stream.wait_stream",
        ),
    ],
)
def test_the_message_names_the_others(reads, words):
    lines = "".join(f"    {read}\n" for read in reads)
    (found,) = findings(program(f"def train_step(x: Tensor):\n{lines}"))
    assert found.partition(" ")[2].partition(" ")[2] == words


def test_copies_in_a_row_are_to_be_copied_together():
    source = """
        def train(model, loader):
            for x in loader:
                y = model(x)
                y.sum().backward()
                a = y.detach().cpu()
                b = x.detach().cpu()
        """
    (found,) = findings(program(source))
    assert "and 1 more read at line 12; copy them as one tensor" in found


def test_findings_of_a_page_of_the_users_own_are_told_one_by_one(tmp_path: Path):
    page = next((Path(__file__).parents[2] / "rules").glob("TPF101-*.md"))
    text = page.read_text().replace("TPF101", "TPF950").replace("priority = 20", "priority = 90")
    text = text.replace("read-of-a-tensor-value", "read-in-our-code")
    (tmp_path / "TPF950-read-in-our-code.md").write_text(text)
    source = program("""
        def train_step(x: Tensor):
            return x.sum().item(), x.max().item()
        """)
    found = lint(source, "model.py", replace(HOT, rules=(tmp_path,)))
    assert [(f.code, f.also) for f in found] == [("TPF950", ()), ("TPF950", ())]


def test_a_row_is_remembered_as_it_was_found(tmp_path: Path):
    options = Options(cache=True, cache_folder=tmp_path / "cache")
    source = program(ONE_FINDING["statements"], PRELUDE)
    found = [Told(f.line, f.column, f"{f.code} {f.message}") for f in lint(source, "model.py", HOT)]

    def forget() -> list[Told]:
        raise AssertionError("it is known")

    lines = source.splitlines(keepends=True)
    for analyse in (lambda: found, forget):
        told = remembered(lines, "model.py", memory_of(options), analyse, {})
        assert told == found
        assert "and 1 more read at line" in told[0][2]


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
