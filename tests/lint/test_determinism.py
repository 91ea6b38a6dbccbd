"""The same findings in the same order, however flake8 comes by the files and in whatever form."""

from __future__ import annotations

import os
import random
import re
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import fork_server
import pytest
from flake8_run import flake8

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPTIONS = ("--select=TPF", "--torchperf-scope=all", "--torchperf-explain")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every page's examples in one package each, which import from one another, and the fixtures."""
    folder = tmp_path_factory.mktemp("corpus") / "examples"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    names = []
    for page in sorted((ROOT / "rules").glob("TPF*.md")):
        for number, source in enumerate(EXAMPLE.findall(page.read_text(encoding="utf-8"))):
            name = f"{page.name[:6].lower()}_{number}"
            others = "".join(f"from .{one} import *\n" for one in names[-3:])
            head, _, rest = source.partition("from __future__ import annotations\n")
            body = f"from __future__ import annotations\n{others}{rest}" if rest else others + head
            (folder / f"{name}.py").write_text(body, encoding="utf-8")
            names.append(name)
    for path in sorted((ROOT / "fixtures").rglob("*.py")):
        target = folder / "_".join(path.relative_to(ROOT / "fixtures").parts).replace("-", "_")
        target.write_bytes(path.read_bytes())
    return folder


def printed(folder: Path, *arguments: str | Path, seed: str = "0") -> str:
    run = flake8(*OPTIONS, *arguments, cwd=folder, environment={"PYTHONHASHSEED": seed})
    assert run.errors == ""
    assert run.status == 1
    return run.output


@pytest.fixture(scope="module")
def usual(corpus: Path) -> str:
    output = printed(corpus, "-j1", ".")
    assert len(output.splitlines()) > 60
    assert "TPF900" not in output
    return output


@pytest.mark.parametrize("jobs", ["2", pytest.param("8", marks=pytest.mark.thorough)])
def test_any_number_of_processes(corpus: Path, usual: str, jobs: str) -> None:
    assert printed(corpus, f"-j{jobs}", ".") == usual


@pytest.mark.parametrize(
    "seed", ["1", *(pytest.param(n, marks=pytest.mark.thorough) for n in ("42", "4294967295"))]
)
def test_any_hash_seed(corpus: Path, usual: str, seed: str) -> None:
    assert printed(corpus, "-j1", ".", seed=seed) == usual


@pytest.mark.parametrize("order", ["reversed", "shuffled", "one after the other"])
def test_any_order_of_files(corpus: Path, usual: str, order: str) -> None:
    files = [f"./{one.name}" for one in sorted(corpus.glob("*.py"))]
    if order == "one after the other":
        together = "".join(
            flake8(*OPTIONS, "-j1", one, cwd=corpus).output for one in files[:12] + files[-12:]
        )
        kept = {*files[:12], *files[-12:]}
        wanted = [line for line in usual.splitlines() if line.partition(":")[0] in kept]
        assert sorted(together.splitlines()) == sorted(wanted)
        return
    if order == "reversed":
        files.reverse()
    elif order == "shuffled":
        random.Random(7).shuffle(files)
    printed_so = printed(corpus, "-j1", *files)
    assert printed_so == usual


def check(folder: Path, *arguments: str | Path) -> str:
    done = fork_server.run(
        [sys.executable, "-m", "flake8_torchperf.cli.main", "check", "--isolated",
         "--torchperf-scope=all", "--torchperf-explain", *arguments, "."],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.stderr == b""
    assert done.returncode == 1
    return done.stdout.decode()


def test_with_and_without_memory(corpus: Path, usual: str, tmp_path: Path) -> None:
    assert check(corpus, "--no-cache", "-j1") == usual
    memory = ("--cache-dir", tmp_path / "memory")
    for jobs in ("-j1", "-j1", "-j8"):  # nothing remembered, all remembered, by many
        assert check(corpus, *memory, jobs) == usual
    assert printed(corpus, "--torchperf-cache", f"--torchperf-cache-dir={memory[1]}", ".") == usual


FORMS: dict[str, Callable[[str], bytes]] = {
    "as it is": lambda text: text.encode(),
    "CRLF": lambda text: text.replace("\n", "\r\n").encode(),
    "CR": lambda text: text.replace("\n", "\r").encode(),
    "a byte-order mark": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "a byte-order mark and CRLF": lambda text: (
        b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()
    ),
    "no newline at the end": lambda text: text.rstrip("\n").encode(),
    "form feeds between functions": lambda text: text.replace("\n\n\n", "\n\f\n\n").encode(),
    "trailing blanks": lambda text: text.replace("\n", " \n").encode(),
    "tabs": lambda text: re.sub(r"(?m)^( {4})+", lambda m: "\t" * (len(m[0]) // 4), text).encode(),
    "latin-1": lambda text: (
        text.replace("# here", "# coding: latin-1")
        .replace("A module", "\xc4 module")
        .encode("latin-1")
    ),
    "utf-16 is refused": lambda text: text.encode("utf-16"),
}
SOURCE = '''\
# here
"""A module."""

import torch


def step(x: torch.Tensor, names: list[str]) -> float:
    total = 0.0
    for row in x:
        if row.isnan().any():
            total += row.sum().item()
    return total


class Net(torch.nn.Module):
    def forward(self, x):
        return self.inner(x), x.sum().item()
'''


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("way", ["file", "standard input"])
def test_any_form_of_the_text(tmp_path: Path, form: str, way: str) -> None:
    path = tmp_path / "model.py"
    path.write_bytes(SOURCE.encode())
    usual = found(path, "file")
    assert [row[2] for row in usual] == ["TPF201", "TPF203", "TPF206", "TPF101"]
    path.write_bytes(FORMS[form](SOURCE))
    if form == "utf-16 is refused":
        assert found(path, way) == []
    elif form == "tabs":  # a tab is one column where it stood for four blanks
        assert [(line, code) for line, _, code in found(path, way)] == [(r[0], r[2]) for r in usual]
    elif (form, way) == ("CR", "standard input"):
        # flake8 takes the whole of it for one line, and files findings behind its end there.
        assert [code for _, _, code in found(path, way)] == [row[2] for row in usual]
    else:
        assert found(path, way) == usual


def found(path: Path, way: str) -> list[tuple[int, int, str]]:
    """Line, column and code of each finding; standard input is given as bytes."""
    arguments = [str(path)] if way == "file" else ["--stdin-display-name=model.py", "-"]
    done = fork_server.run(
        [sys.executable, "-m", "flake8", "--isolated", "--select=TPF", *arguments],
        stdin=path.read_bytes(), cwd=path.parent,
    )  # fmt: skip
    # UTF-16 on standard input ends flake8 itself, before there is a plugin.
    assert b"flake8_torchperf" not in done.stderr, done.stderr
    rows = [
        re.match(r".*?:(\d+):(\d+): (TPF\d+)", one) for one in done.stdout.decode().splitlines()
    ]
    return [(int(row[1]), int(row[2]), row[3]) for row in rows if row]


WRITTEN_ELSEWHERE = {
    "pyproject.toml": '[project]\nname = "kit"\n',
    "kit/__init__.py": "",
    "kit/holder.py": """
        class Holder:
            def __init__(self):
                self.scale = None
        """,
    "kit/writer.py": """
        import torch

        from kit.holder import Holder


        def fill(h: Holder, x: torch.Tensor):
            h.scale = torch.ones(3).cuda()
            return x
        """,
    "kit/first.py": """
        import torch

        from kit.holder import Holder
        from kit.writer import fill


        def training_step(h: Holder, x: torch.Tensor):
            return fill(h, x).max().item()
        """,
    "kit/last.py": """
        import torch

        from kit.holder import Holder


        def training_step(h: Holder, x: torch.Tensor):
            return x * h.scale.max().item()
        """,
}


def test_what_was_opened_before_adds_nothing(tmp_path: Path) -> None:
    for name, text in WRITTEN_ELSEWHERE.items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(textwrap.dedent(text), encoding="utf-8")
    alone = printed(tmp_path, "-j1", "kit/last.py")
    both = printed(tmp_path, "-j1", "kit/first.py", "kit/last.py")
    assert "`torch.ones` returns it" in alone
    assert alone in both
