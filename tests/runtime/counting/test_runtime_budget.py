"""Budgets: who may spend what, what the error says, and the pytest marker and fixture."""

import inspect
import linecache
import runpy
from importlib.metadata import entry_points

import pytest

torch = pytest.importorskip("torch")

from flake8_torchperf.runtime import BudgetExceeded, dispatch_budget  # noqa: E402
from flake8_torchperf.runtime.api import pytest_plugin  # noqa: E402
from flake8_torchperf.runtime.api.free_lines import allowed_lines  # noqa: E402
from flake8_torchperf.runtime.counting.counts import Counts, counted  # noqa: E402

pytest_plugins = ["pytester"]

X = torch.arange(4.0)


def budget(**options):
    return dispatch_budget(host_as_device=True, **options)


def line_of(function, text):
    lines, first = inspect.getsourcelines(function)
    return first + next(number for number, line in enumerate(lines) if text in line)


def read_in_a_loop():
    total = 0.0
    for element in X:
        total += element.item()  # the spender
    return total


def test_within_budget_is_silent():
    with budget(max_dispatches=5, max_host_reads=4, max_transfers=0) as counter:
        read_in_a_loop()
    assert counter.evidence.totals.dispatches == 5


def test_the_error_lists_the_lines_that_spent():
    with pytest.raises(BudgetExceeded) as raised, budget(max_host_reads=1, max_dispatches=4):
        read_in_a_loop()
    spender = line_of(read_in_a_loop, "the spender")
    loop = line_of(read_in_a_loop, "for element")
    name = "in read_in_a_loop"
    assert str(raised.value).splitlines() == [
        "5 dispatches, 4 allowed:",
        f"  {__file__}:{spender}: 4 {name}",
        f"  {__file__}:{loop}: 1 {name}",
        "4 host reads, 1 allowed:",
        f"  {__file__}:{spender}: 4 {name}",
    ]
    assert isinstance(raised.value, AssertionError)
    assert raised.value.evidence.totals.host_reads == 4
    assert [(one.limit, one.spent) for one in raised.value.overspent] == [(4, 5), (1, 4)]


def test_transfers():
    with pytest.raises(BudgetExceeded, match="1 transfer, 0 allowed"), budget(max_transfers=0):
        X.cpu()


@pytest.mark.parametrize("name", ["aten::isinf", "isinf"])
def test_operations_by_name(name):
    with budget(ops={name: 2}):
        torch.isinf(X), torch.isinf(X), torch.isnan(X)
    with (
        pytest.raises(BudgetExceeded, match="3 dispatches of aten::isinf, 2 allowed"),
        budget(ops={name: 2}),
    ):
        torch.isinf(X), torch.isinf(X), torch.isinf(X)


def test_only_reads_limited_needs_only_the_lighter_level():
    assert budget(max_host_reads=0).counting().level == "reads"
    assert budget(max_host_reads=0, ops={"isinf": 0}).counting().level == "full"
    assert budget(max_dispatches=0).counting().level == "full"


def test_as_decorator_each_call_has_the_whole_budget():
    @budget(max_host_reads=1)
    def read(times):
        """Reads."""
        return [X.sum().item() for _ in range(times)]

    assert read.__name__ == "read"
    assert read(1) == read(1) == [6.0]
    with pytest.raises(BudgetExceeded, match="2 host reads, 1 allowed"):
        read(2)


def test_a_budget_nests_in_itself():
    limit = budget(max_host_reads=2)

    @limit
    def read(depth):
        X.sum().item()
        return read(depth - 1) if depth else None

    read(1)
    with pytest.raises(BudgetExceeded):
        read(2)
    assert limit._counters == []


def test_the_blocks_own_error_comes_first():
    def failing():
        X.sum().item()
        return 1 / 0

    with pytest.raises(ZeroDivisionError):
        budget(max_host_reads=0)(failing)()


SPENDERS = """
def allowed(x):
    x.sum().item()  # noqa: TPF101
    x.sum().item()  # noqa
    x.sum().item()  # noqa: E501, TPF203
    x.sum().item()  # noqa:TPF
    # A statement's comment covers all of its lines.
    return [
        x.sum().item(),
        x.sum().item(),
    ]  # noqa: TPF101

def others(x):
    x.sum().item()  # noqa: E501
"""


def test_noqa_lines_may_spend(tmp_path):
    path = tmp_path / "spenders.py"
    path.write_text(SPENDERS)
    functions = runpy.run_path(str(path))
    with budget(max_host_reads=0, max_dispatches=0):
        functions["allowed"](X)
    with pytest.raises(BudgetExceeded, match="1 host read, 0 allowed:"), budget(max_host_reads=0):
        functions["others"](X)


def test_noqa_in_a_file_that_no_longer_parses(tmp_path):
    path = tmp_path / "torn.py"
    path.write_text("x = 1  # noqa: TPF101\ny = 2\nz = (\n")
    linecache.checkcache(str(path))
    assert allowed_lines(str(path)) == {1}
    assert allowed_lines(str(tmp_path / "missing.py")) == frozenset()
    assert allowed_lines("<stdin>") == frozenset()


def test_negative_limits_are_refused():
    with pytest.raises(ValueError, match="the budget for aten::isinf is -1: it cannot be negative"):
        budget(ops={"isinf": -1})


PLUGIN = "flake8_torchperf.runtime.api.pytest_plugin"


def run(pytester, source):
    pytester.makepyfile(source)
    # Where the package is installed pytest loads the plugin by itself, and refuses it twice.
    load = () if entry_points(group="pytest11", name="torchperf") else ("-p", PLUGIN)
    return pytester.runpytest_inprocess(*load, "--strict-markers", "-p", "no:cacheprovider")


@pytest.fixture
def without_accelerator(monkeypatch):
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)


@pytest.mark.usefixtures("without_accelerator")
def test_marker(pytester):
    result = run(
        pytester,
        """
        import pytest, torch

        @pytest.fixture
        def loaded():
            return torch.ones(3).sum().item()

        @pytest.mark.torchperf(max_host_reads=0)
        def test_over():
            torch.ones(3).sum().item()

        @pytest.mark.torchperf(max_host_reads=0)
        def test_fixtures_spend_freely(loaded):
            assert loaded == 3.0

        @pytest.mark.torchperf(max_dispatches=1)
        def test_within():
            torch.ones(3)

        @pytest.mark.torchperf(max_host_reads=0)
        def test_allowed():
            torch.ones(3).sum().item()  # noqa: TPF101

        @pytest.mark.torchperf(max_host_reads=0)
        def test_own_failure():
            torch.ones(3).sum().item()
            raise KeyError("mine")
        """,
    )
    result.assert_outcomes(passed=3, failed=2)
    result.stdout.fnmatch_lines(["*1 host read, 0 allowed:", "*test_marker.py:9: 1 in test_over"])
    result.stdout.fnmatch_lines(["*KeyError: 'mine'"])
    result.stdout.fnmatch_lines(["FAILED test_marker.py::test_over - 1 host read, 0 allowed"])


def test_our_frames(pytester):
    result = run(
        pytester,
        """
        import pytest, torch
        from flake8_torchperf.runtime import dispatch_budget

        budget = dispatch_budget(max_host_reads=0, ops={"ones": 0}, host_as_device=True)

        def test_block():
            with budget:
                torch.ones(3).sum().item()

        @budget
        def read():
            torch.ones(3).sum().item()

        def test_decorated():
            read()

        @pytest.mark.torchperf(max_transfers=-1)
        def test_negative():
            pass
        """,
    )
    result.assert_outcomes(failed=3)
    counts = "1 host read, 0 allowed; 1 dis*"
    result.stdout.fnmatch_lines(["*> *with budget:", "*> *read()", f"*::test_block - {counts}"])
    shown = result.stdout.str()
    assert "def __exit__" not in shown
    assert "def check" not in shown
    assert "budget.py" not in shown
    assert "pytest_plugin.py" not in shown


def test_more_lines_than_are_shown():
    one = "X.sum().item()\n"
    names = {"X": X}
    with pytest.raises(BudgetExceeded) as raised, budget(max_host_reads=0):
        exec(compile(one * 21, "twenty_one.py", "exec"), names)
    assert str(raised.value).splitlines()[-1] == "  and 1 more line"
    with pytest.raises(BudgetExceeded, match="and 2 more lines"), budget(max_host_reads=0):
        exec(compile(one * 22, "twenty_two.py", "exec"), names)


def test_counts_in_words():
    assert counted(1, "copies_to_device") == "1 copy to the device"
    assert counted(2_000, "copies_to_device") == "2,000 copies to the device"
    names = {counted(1, name) for name in Counts().to_dict()}
    assert {"1 dispatch", "1 host read", "1 factory", "1 synchronisation"} <= names


def test_the_plugin_loads_where_pluggy_knows_no_new_style_wrappers():
    """It is loaded into every pytest of its environment: nothing may ask for pluggy 1.2."""
    asked = pytest_plugin.pytest_pyfunc_call.pytest_impl
    assert asked["hookwrapper"]
    assert not asked.get("wrapper")


@pytest.mark.usefixtures("without_accelerator")
def test_fixture(pytester):
    result = run(
        pytester,
        """
        import torch

        def test_counts(dispatch_counter):
            torch.ones(3).sum().item()
            assert dispatch_counter.evidence.totals.host_reads == 1
            assert dispatch_counter.evidence.op("aten::ones") == 1
        """,
    )
    result.assert_outcomes(passed=1)


@pytest.mark.parametrize("name", ["aten::isnann", "isnann"])
def test_an_operation_that_torch_lacks_is_an_error_with_the_nearest_name(name):
    with pytest.raises(ValueError, match=r"no operation aten::isnann: did you mean aten::isnan\?"):
        dispatch_budget(ops={name: 0})


def test_an_operation_of_another_library_may_be_registered_later():
    assert dispatch_budget(ops={"mine::fused": 0}).ops == {"mine::fused": 0}
