"""Functions that must not wait: everything that their calls lead to, and code of CUDA graphs."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from flake8_run import flake8
from linting import HOT

from flake8_torchperf.linter import lint
from flake8_torchperf.options import Options

ENGINE = """
    import torch
    from torch import Tensor, nn

    from . import ops
    from .base import Base

    class Head(nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    class Engine(Base):
        def __init__(self, head: Head):
            self.head = head

        def decode_step(self, x: Tensor):  # torchperf: sync-free
            x = super().prepare(self.head(x))
            ops.each(self.seen, x)
            def nested(y):
                return y.item()
            def not_called(y: Tensor):
                return y.item()
            return ops.sample(x), nested(x), self.last

        def seen(self, x):
            return x.tolist()

        @property
        def last(self):
            return torch.zeros(3).cuda().cpu()

        def report(self, x: Tensor):
            return x.item()
    """
OPS = """
    import torch

    def each(fn, x):
        return fn(x)

    def sample(x):
        return top_k(x)

    def top_k(logits):
        values = torch.topk(logits, 3)[0]
        if logits.shape[0] > 4_000:
            raise ValueError(f"{logits.max().item()} is too much")
        return Limits(values).check(values)

    class Limits:
        def __init__(self, x):
            self.most = x.max().item()

        def check(self, x):
            return bool((x > 3).any())

    def elsewhere(x: torch.Tensor):
        return x.item()
    """
BASE = """
    import torch

    class Base:
        def prepare(self, x):
            torch.cuda.synchronize()
            return x
    """
PACKAGE = {"engine.py": ENGINE, "ops.py": OPS, "base.py": BASE}
# Every wait on the way from `Engine.decode_step`: line of the file, code and way.
WAITS = {
    "engine.py": {
        (10, "TPF301", "Head.forward -> line 10"),
        (20, "TPF101", "nested -> line 20"),
        (26, "TPF102", "each -> seen -> line 26"),
        (30, "TPF102", "last -> line 30"),
        (30, "TPF501", "last -> line 30"),
    },
    "ops.py": {
        (18, "TPF101", "... -> Limits -> line 18"),
        (21, "TPF101", "sample -> top_k -> check -> line 21"),
    },
    "base.py": {(6, "TPF106", "prepare -> line 6")},
}
WAY = "on the way from Engine.decode_step: "
BY_NAME = Options(sync_free=("Engine.decode_*",))


def written(folder: Path, files: Mapping[str, str], package: str = "pkg") -> Path:
    """A package with these files."""
    home = folder / package
    home.mkdir(exist_ok=True)
    for name, text in {"__init__.py": "", **files}.items():
        (home / name).write_text(textwrap.dedent(text), encoding="utf-8")
    return home


def told(path: Path, options: Options = HOT, way: str = WAY) -> set[tuple[int, str, str]]:
    """Line, code and way of the findings of a contract."""
    found = set()
    for one in lint(path.read_text(encoding="utf-8"), str(path), options):
        if way in one.message:
            assert len(one.message) <= 140
            found.add((one.line, one.code, one.message.partition(way)[2].partition(";")[0]))
    return found


@pytest.mark.parametrize("order", list(itertools.permutations(WAITS)))
def test_every_wait_on_the_way_is_reported_in_its_own_file(
    tmp_path: Path, order: tuple[str, ...]
) -> None:
    home = written(tmp_path, PACKAGE)
    for name in order:
        assert told(home / name) == WAITS[name]


@pytest.mark.parametrize("scope", ["loop", "hot", "all"])
def test_a_contract_holds_in_every_scope_and_by_name(tmp_path: Path, scope: str) -> None:
    plain = ENGINE.replace("  # torchperf: sync-free", "")
    home = written(tmp_path, {**PACKAGE, "engine.py": plain})
    run = flake8(
        "--select=TPF", f"--torchperf-scope={scope}", "--torchperf-sync-free=Engine.decode_*",
        home, cwd=tmp_path,
    )  # fmt: skip
    found = {(one.line, one.code) for one in run.results if WAY in one.text}
    assert found == {row[:2] for rows in WAITS.values() for row in rows}
    for name in WAITS:
        assert not told(home / name)


def test_a_contract_takes_the_place_of_the_cost(tmp_path: Path) -> None:
    path = written(tmp_path, PACKAGE) / "ops.py"
    found = {one.line: one.message for one in lint(path.read_text(), str(path), Options())}
    assert found[18] == (
        f"`x.max().item()` waits {WAY}... -> Limits -> line 18; "
        "keep it a tensor, or read once at the end"
    )
    assert "`x.item()` waits per call (in a helper)" in found[24]


def test_an_inherited_method_is_followed_as_of_the_class_that_is_named(tmp_path: Path) -> None:
    files = {
        "mixin.py": """
            import torch

            class Generation:
                def generate(self, x: torch.Tensor):
                    return self(x)
            """,
        "model.py": """
            from torch import Tensor, nn
            from .mixin import Generation

            class Model(nn.Module, Generation):
                def forward(self, x: Tensor):
                    return x.item()

            class Other(nn.Module, Generation):
                def forward(self, x: Tensor):
                    return x.item()
            """,
    }
    home = written(tmp_path, files)
    options = Options(sync_free=("Model.generate",))
    way = "on the way from Model.generate: "
    assert told(home / "model.py", options, way) == {(7, "TPF101", "Model.forward -> line 7")}


def test_what_decorators_put_around_a_function_is_on_the_way(tmp_path: Path) -> None:
    files = {
        "timing.py": """
            import functools
            import torch

            def timed(fn):
                @functools.wraps(fn)
                def inner(*args):
                    torch.cuda.synchronize()
                    return fn(*args)
                return inner
            """,
        "step.py": """
            import torch
            from .timing import timed

            @timed
            def decode(
                x: torch.Tensor,  # torchperf: sync-free
            ):
                return x + 1
            """,
    }
    home = written(tmp_path, files)
    way = "on the way from decode: "
    assert told(home / "timing.py", way=way) == {(8, "TPF106", "inner -> line 8")}


def test_explaining_lists_what_a_contract_could_not_see(tmp_path: Path) -> None:
    source = """
        import torch

        class Engine:
            def __init__(self, sampler, kernel=None):
                self.sampler = sampler

            def decode_step(self, x: torch.Tensor):  # torchperf: sync-free
                for _ in range(3):
                    x = self.sampler(x)
                print_shape(x.shape)
                return torch.relu(x)

            def other(self, x: torch.Tensor):
                return self.sampler(x)
        """
    home = written(tmp_path, {"engine.py": source})
    found = told(home / "engine.py", Options(explain=True))
    assert found == {(10, "TPF609", "line 10")}
    assert not told(home / "engine.py")


def test_recorded_code_is_checked_without_being_asked_for(tmp_path: Path) -> None:
    files = {
        "record.py": """
            import torch
            from .ops import helper

            def record(x: torch.Tensor):
                x.item()
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    helper(x)
                    x.nonzero()
                return x.cpu()

            class Net(torch.nn.Module):
                def forward(self, x):
                    return x.tolist()

            def graphed(x: torch.Tensor):
                return torch.cuda.make_graphed_callables(Net(), (x,))
            """,
        "ops.py": """
            import torch

            def helper(x):
                return x.item()

            @torch.compile(mode="reduce-overhead")
            def fast(x: torch.Tensor):
                from .deep import deeper
                return deeper(x)
            """,
        "deep.py": """
            import torch

            def deeper(x: torch.Tensor):
                return x.item()
            """,
    }
    home = written(tmp_path, files)
    way = "on the way from "
    assert told(home / "record.py", way=way) == {
        (10, "TPF609", "record: line 10"),
        (15, "TPF609", "Net.forward: line 15"),
    }
    assert told(home / "ops.py", way=way) == {(5, "TPF609", "record: helper -> line 5")}
    # The compiler records no function that breaks its graph.
    assert not told(home / "deep.py", way=way)
    assert {code for _, code, _ in told(home / "deep.py", way="breaks the graph")} == {"TPF602"}


GRAPHS = {
    "made here": ("graph = torch.accelerator.Graph()", "torch.Stream(), graph", True),
    "made where it is entered": ("", "torch.accelerator.Graph(keep_graph=True)", True),
    "by another name": ("g = Graph()", "torch.Stream(), g", True),
    "a parameter": ("", "given", True),
    "an attribute": ("", "self.stream, self.kept", True),
    "of the module": ("", "GLOBAL", True),
    "breakable": ("", "breakable_graph(BreakableCUDAGraph())", True),
    "a stream alone": ("", "self.stream", False),
    "of another library": ("g = networkx.Graph()", "g", False),
}


@pytest.mark.parametrize(("before", "entered", "recorded"), GRAPHS.values(), ids=GRAPHS)
def test_objects_that_record_their_block(
    tmp_path: Path, before: str, entered: str, recorded: bool
) -> None:
    source = f"""
        import networkx
        import torch
        from breakable_cuda_graphs import BreakableCUDAGraph, breakable_graph
        from torch.accelerator import Graph
        GLOBAL = torch.accelerator.Graph()

        class Engine:
            def __init__(self):
                self.stream = torch.Stream()
                self.kept = torch.accelerator.Graph()

            def record(self, x: torch.Tensor, given: torch.accelerator.Graph):
                {before or "pass"}
                with {entered}:
                    x.item()
                return x
        """
    home = written(tmp_path, {"engine.py": source})
    found = {(line, code) for line, code, _ in told(home / "engine.py", way="on the way from ")}
    assert ((16, "TPF609") in found) == recorded


def test_functions_between_two_recordings_may_wait(tmp_path: Path) -> None:
    source = """
        import torch
        from breakable_cuda_graphs import BreakableCUDAGraph, breakable_graph, no_graph

        @no_graph
        def scaled(x: torch.Tensor):
            x.item()
            inner(x)

        def inner(x: torch.Tensor):
            x.item()

        @no_graph(capture_stub=inner)
        def moved(x: torch.Tensor):
            x.item()

        def work(x: torch.Tensor):
            @no_graph
            def nested(y: torch.Tensor):
                y.item()

            scaled(x)
            moved(x)
            nested(x)
            x.item()

        def record(x: torch.Tensor):
            with breakable_graph(BreakableCUDAGraph()):
                work(x)
        """
    home = written(tmp_path, {"engine.py": source})
    assert {one[:2] for one in told(home / "engine.py", way="on the way from ")} == {(25, "TPF609")}
    promised = source.replace("def work(x: torch.Tensor):", "def work(x):  # torchperf: sync-free")
    home = written(tmp_path, {"engine.py": promised})
    lines = {one[0] for one in told(home / "engine.py", way="on the way from ")}
    assert lines == {7, 11, 15, 20, 25}  # a stated contract holds for them, too


def test_long_ways_and_names_fit_into_a_message(tmp_path: Path) -> None:
    name = "a_function_with_quite_a_long_name"
    steps = "".join(f"\ndef {name}_{n}(x):\n    return {name}_{n + 1}(x)\n" for n in range(8))
    source = (
        f"import torch\n\ndef {name}(x: torch.Tensor):  # torchperf: sync-free\n"
        f"    return {name}_0(x)\n{steps}\n"
        f"def {name}_8(x):\n    return x.softmax(-1).sum(-1).max().item()\n"
    )
    home = written(tmp_path, {"engine.py": source})
    ((_, code, way),) = told(home / "engine.py", way="on the way from ")
    assert code == "TPF101"
    assert way.startswith("a_functio")
    assert way.endswith(" -> line 31")


def test_nothing_is_followed_where_nothing_is_promised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("flake8_torchperf.contracts.findings.with_contracts", fail)
    plain = ENGINE.replace("  # torchperf: sync-free", "")
    home = written(tmp_path, {**PACKAGE, "engine.py": plain})
    for name in WAITS:
        assert not told(home / name)


def test_the_cache_knows_what_a_contract_depends_on(tmp_path: Path) -> None:
    plain = ENGINE.replace("  # torchperf: sync-free", "")
    home = written(tmp_path, {**PACKAGE, "engine.py": plain})

    def found(*more: str) -> int:
        run = flake8(
            "--select=TPF", "--torchperf-cache", f"--torchperf-cache-dir={tmp_path / 'kept'}",
            *more, home / "ops.py", cwd=tmp_path,
        )  # fmt: skip
        return sum(WAY in one.text for one in run.results)

    assert [found(), found()] == [0, 0]
    assert found("--torchperf-sync-free=decode_step") == 2
    written(tmp_path, {"engine.py": ENGINE})
    assert [found(), found()] == [2, 2]
    written(tmp_path, {"engine.py": ENGINE.replace("ops.sample(x)", "x")})
    assert found() == 0


def test_a_text_that_is_on_no_disk_keeps_its_contracts() -> None:
    source = "import torch\n\ndef f(x: torch.Tensor):  # torchperf: sync-free\n    x.item()\n"
    (one,) = lint(source, "stdin", Options())
    assert one.message.startswith("`x.item()` waits on the way from f: line 4; ")
    assert not lint(source.replace("sync-free", "sync"), "stdin", replace(BY_NAME, cold=("f",)))
