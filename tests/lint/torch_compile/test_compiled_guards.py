"""What stands under a test that asks who runs the code, which the tracer answers (torch 2.13)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from linting import ALL, check, findings, program, table

from flake8_torchperf.syntax import compile_guards
from flake8_torchperf.syntax.compile_guards import MODE_TESTS, RunMode, asks_for_mode
from flake8_torchperf.syntax.host_expressions import surely_host

GRAPH_BREAKS = frozenset(f"TPF60{digit}" for digit in range(1, 9))

GUARDED = {
    "both branches": """
        @torch.compile
        def f(x: Tensor):
            if not torch.compiler.is_compiling():
                print(x)
            if torch.compiler.is_compiling():
                y = x + 1
            else:
                y = x.item()
            return y
        """,
    "what scripting and tracing take": """
        @torch.compile
        def f(x: Tensor):
            if torch.jit.is_scripting() or torch.jit.is_tracing():
                print("a")
            if torch.compiler.is_exporting() or torch.onnx.is_in_onnx_export():
                print("b")
            if torch.jit.is_scripting() or x.shape[0] > 3:
                print("c")  # TPF601
            if not torch.compiler.is_exporting():
                print("d")  # TPF601
        """,
    "beside other questions": """
        @torch.compile
        def f(x: Tensor):
            if not torch.compiler.is_compiling() and x.shape[0] > 3:
                print("a")
            if x.is_cuda and not torch.compiler.is_compiling():
                print("b")
            elif x.shape[0] > 3:
                print("c")  # TPF601
            if torch.compiler.is_compiling() or x.shape[0] > 3:
                print("d")  # TPF601
            else:
                print("e")
        """,
    "in expressions, loops and assertions": """
        @torch.compile
        def f(x: Tensor):
            y = x.item() if not torch.compiler.is_compiling() else x
            torch.compiler.is_compiling() or print(x)
            torch.compiler.is_compiling() and print(x)  # TPF601
            while not torch.compiler.is_compiling() and x.sum() > 3:
                print(x)
            assert torch.compiler.is_compiling() or x.sum() > 0, f"{x}"
            return y
        """,
    "below an early return": """
        @torch.compile
        def f(x: Tensor):
            if torch.compiler.is_compiling():
                return x * 3
            print(x)
            return x.item()
        @torch.compile
        def g(x: Tensor):
            for i in range(3):
                if torch.compiler.is_compiling():
                    x = x + 1
                    continue
                print(x)
            if not torch.compiler.is_compiling():
                print(x)
            else:
                return helper(x)
            print(x)
        def helper(x: Tensor):
            if not torch.compiler.is_compiling():
                return x
            print(x)  # TPF601
        """,
    "below an early return, functions": """
        @torch.compile
        def f(x: Tensor):
            if x.shape[0] > 3:
                if torch.compiler.is_compiling():
                    return x
                return only_eager(x)
            else:
                return traced(x)
        def only_eager(x: Tensor):
            print(x)
        def traced(x: Tensor):
            print(x)  # TPF601
        """,
    "by a name": """
        @torch.compile
        def f(x: Tensor):
            compiling = torch.compiler.is_compiling()
            if not compiling:
                print(x)
                only_eager(x)
            if not compiling and x.sum() > 3:
                return x
            if compiling:
                print(x)  # TPF601
        @torch.compile
        def h(x: Tensor):
            compiling = torch.compiler.is_compiling()
            compiling = x.shape[0] > 3
            if not compiling:
                print(x)  # TPF601
        @torch.compile
        def g(x: Tensor):
            eager = not torch.compiler.is_compiling() and not torch.jit.is_tracing()
            if eager:
                only_eager(x)
        def only_eager(x: Tensor):
            print(x)
        """,
}


@table(GUARDED)
def test_no_graph_breaks_where_the_tracer_never_comes(code: str) -> None:
    check(code, ALL, only=GRAPH_BREAKS)


def test_what_python_runs_under_a_guard_stays_what_it_is() -> None:
    source = program(GUARDED["below an early return"])
    codes = {found.split()[1] for found in findings(source, ALL)}
    assert {"TPF101", "TPF104"} <= codes


def test_the_tracer_answers_as_the_linter_says() -> None:
    torch = pytest.importorskip("torch")
    asked = {
        "is_compiling": torch.compiler.is_compiling,
        "is_dynamo_compiling": torch.compiler.is_dynamo_compiling,
        "is_exporting": torch.compiler.is_exporting,
        "is_scripting": torch.jit.is_scripting,
        "is_tracing": torch.jit.is_tracing,
        "is_in_onnx_export": torch.onnx.is_in_onnx_export,
        "get_tracing_state": torch._C._get_tracing_state,
        "is_fx_symbolic_tracing": torch.fx._symbolic_trace.is_fx_symbolic_tracing,
        "is_fx_tracing": torch.fx._symbolic_trace.is_fx_tracing,
    }
    for name, ask in asked.items():

        def answer(x, ask=ask):  # type: ignore[no-untyped-def]
            return x + 1 if ask() else x

        torch._dynamo.reset()
        compiled = torch.compile(answer, backend="eager", fullgraph=True)
        assert bool(compiled(torch.zeros(1))) is (MODE_TESTS[name] == "compiled"), name


def test_each_test_of_the_mode_gives_a_bool_on_the_host() -> None:
    for name in MODE_TESTS:
        called = ast.parse(f"torch.compiler.{name}()", mode="eval").body
        assert surely_host(called, frozenset()), name


@pytest.mark.parametrize(
    ("name", "modes", "asks"),
    [
        ("is_compiling", (), True),
        ("is_compiling", ("compiled",), True),
        ("is_compiling", ("traced", "exported"), False),
        ("is_in_onnx_export", ("traced", "exported"), True),
        ("is_fx_symbolic_tracing", ("traced",), False),
        ("_get_tracing_state", ("traced",), True),
        ("_is_tracing_or_exporting", ("compiled",), False),
        ("is_available", (), False),
    ],
)
def test_a_name_asks_for_its_mode(name: str, modes: tuple[RunMode, ...], asks: bool) -> None:
    assert asks_for_mode(name, *modes) is asks


def test_no_other_module_lists_the_functions_that_ask_for_the_mode() -> None:
    package = Path(compile_guards.__file__).parents[1]
    naming = {
        file.relative_to(package).as_posix()
        for file in package.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value in MODE_TESTS
    }
    assert naming == {"syntax/compile_guards.py"}
