"""The measurement of waits: what it calls, how it survives a lost device, what the table makes of it.

No GPU is needed: another witness stands in, which asks the operator registry what was dispatched.
What CUDA itself does is only known from a run on CUDA.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tools")]

import measure_syncs  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch_table import measure, workers  # noqa: E402
from torch_table.forms import FORMS, PREFIX  # noqa: E402
from torch_table.measured import MEASURED, fold_measured, origin, read_measured  # noqa: E402
from torch_table.model import Entry, Parameter, Signature  # noqa: E402
from torch_table.witness import WAITED_BY, CudaWitness  # noqa: E402

from flake8_torchperf.knowledge.table import load  # noqa: E402

NEEDS_ELEMENTS = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}


class Registry(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the dispatch of an operation that torch tags as needing elements on the host."""

    asked = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.asked = self.asked or bool(NEEDS_ELEMENTS & set(func.tags))
        return func(*args, **(kwargs or {}))


class RegistryWitness:
    """Stands in for CUDA: calls run on the CPU."""

    device = "cpu"

    def waited(self, call: Callable[[], object]) -> str:
        with Registry() as mode:  # type: ignore[no-untyped-call]
            call()
        return "debug mode" if mode.asked else "none"

    def settle(self) -> None:
        pass


WITNESS = RegistryWitness()


def outcomes(name: str) -> set[str]:
    return set(measure.measure(name, load(), WITNESS).seen.values())


@pytest.mark.parametrize(
    "name",
    ["torch.nonzero", "torch.Tensor.item", "torch.unique", "torch.masked_select", "torch.equal"],
)
def test_operations_that_need_elements_are_called_and_seen(name: str) -> None:
    assert outcomes(name) == {"debug mode"}


@pytest.mark.parametrize(
    "name", ["torch.add", "torch.zeros", "torch.linalg.inv_ex", "torch.Tensor.view", "torch.cat"]
)
def test_operations_that_need_none_are_called_and_do_not_wait(name: str) -> None:
    assert outcomes(name) == {"none"}


def test_overloads_are_told_apart() -> None:
    seen = measure.measure("torch.repeat_interleave", load(), WITNESS).seen
    assert {key.split(",")[1]: how for key, how in seen.items() if key.startswith("input")} == {
        "repeats:T": "debug mode",
        "repeats:i": "none",
    }


def test_cases_and_operations_of_the_table_are_named() -> None:
    names = measure.all_names(load())
    assert len(names) == len(set(names)) > 1000
    assert {"torch.nonzero", "torch.Tensor.add_", "case: x[mask]"} <= set(names)
    known = {*load().function_names(), *(measure.METHOD + n for n in load().method_names())}
    assert {case.decides for case in measure.CASES.values()} - {""} <= known
    assert outcomes("case: x[mask]") == {"debug mode"}
    assert outcomes("case: x[mask] = number") == {"none"}


def test_a_case_that_cannot_run_here_has_no_outcome() -> None:
    def make(device: str) -> Callable[[], object]:
        raise RuntimeError("no such memory on this machine")

    row = measure._outcome(lambda: make("cpu"), WITNESS)
    assert row == ""


def test_the_rest_is_measured_after_the_device_is_lost() -> None:
    started: list[list[str]] = []

    def run(names: list[str]) -> Iterator[dict[str, Any]]:
        started.append(names)
        for name in names:
            if name == "fatal":
                return
            yield {"name": name, "seen": {"x:T": "both"}}

    found = workers.gather(["a", "fatal", "b", "c"], run)
    assert started == [["a", "fatal", "b", "c"], ["b", "c"]]
    assert found["fatal"] == {"": "the process ended"}
    assert found["c"] == {"x:T": "both"}
    words = measure_syncs.summary(found)
    assert words == "3 of 4 operations called, 3 waited, 1 ended their process: fatal"


def test_a_machine_on_which_nothing_runs_is_given_up() -> None:
    started: list[list[str]] = []

    def run(names: list[str]) -> Iterator[dict[str, Any]]:
        started.append(names)
        yield from ()

    with pytest.raises(workers.LostDevice, match="in a row"):
        workers.gather([f"torch.f{i}" for i in range(100)], run)
    assert len(started) == workers.LOST_IN_A_ROW


def test_a_method_without_parameters_is_no_lost_one() -> None:
    """Its overload's key is empty, as that of a row whose process ended."""
    words = measure_syncs.summary({"torch.Tensor.item": {"": "both"}, "a": workers.ENDED})
    assert words == "1 of 2 operations called, 1 waited, 1 ended their process: a"
    made = Entry([Signature(())], set())
    fold_measured(
        {}, {"item": made}, {}, {**VERSIONS, "operations": {"torch.Tensor.item": {"": "both"}}}
    )
    assert made.flags == {"s"}
    fold_measured(
        {}, {"item": made}, {}, {**VERSIONS, "operations": {"torch.Tensor.item": workers.ENDED}}
    )
    assert made.flags == {"s"}


def test_a_run_that_was_broken_off_goes_on_behind_its_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output, part = tmp_path / "out.json", tmp_path / "out.json.part"
    asked: list[list[str]] = []

    def run(names: list[str]) -> Iterator[dict[str, Any]]:
        asked.append(names)
        for name in names:
            if name == "c" and len(asked) == 1:
                raise KeyboardInterrupt
            yield {"name": name, "seen": {"x:T": "none"}}

    def measured(versions: dict[str, str]) -> Any:
        return workers.measured(["a", "b", "c"], tmp_path / "script", output, versions, run)

    with pytest.raises(KeyboardInterrupt):
        measured(VERSIONS)
    with part.open("a") as file:
        file.write('{"name": "c", "se')  # torn in the middle of a row
    assert measured(VERSIONS) == {name: {"x:T": "none"} for name in "abc"}
    assert asked == [["a", "b", "c"], ["c"]]
    assert not part.exists()
    assert "2 rows kept from a run that was broken off" in capsys.readouterr().err
    part.write_text(json.dumps({"torch": "other"}) + '\n{"name": "a", "seen": {}}\n')
    measured(VERSIONS)
    assert asked[2] == ["a", "b", "c"]  # rows of another machine count for nothing


def test_progress_is_a_line_now_and_then_and_one_at_the_end() -> None:
    out, now = io.StringIO(), [0.0]
    progress = workers.Progress(4, out, lambda: now[0])
    for name in "abcd":
        progress.tell({"name": name})
        now[0] += workers.SECONDS_BETWEEN_LINES / 2
    assert out.getvalue() == "1/4 a\n3/4 c\n4/4 d\n"


FORMS_MEASURED = json.loads((ROOT / "tests" / "data" / "forms-h100.json").read_bytes())
# Of pinned memory and of `cuda()` a machine without CUDA has nothing.
NEEDS_DEVICE = {text for text in FORMS if "pin_memory" in text or "cuda()" in text}


def test_the_forms_can_be_run_and_were_measured() -> None:
    assert len(FORMS) == len(set(FORMS)) > 120
    assert set(FORMS_MEASURED["forms"]) <= set(FORMS)
    # On CUDA a clamp takes no bound that lies on the host.
    assert set(FORMS) - set(FORMS_MEASURED["forms"]) == {"v.clamp(min=h0)"}
    assert set(FORMS_MEASURED["forms"].values()) <= set(WAITED_BY)


@pytest.mark.parametrize("text", sorted(set(FORMS) - NEEDS_DEVICE))
def test_a_form_runs_without_a_device(text: str) -> None:
    row = measure.measure(PREFIX + text, load(), WITNESS)
    assert list(row.seen) == [text]


def test_what_sources_disagree_about_is_told() -> None:
    words = measure_syncs.summary(
        {"case: x[positions] = number": {"x[positions] = number": "none"}}
    )
    assert "disputed, case: x[positions] = number: none" in words
    disputed = {name for name, case in measure.CASES.items() if case.disputed}
    assert {"case: bincount(minlength=)", "case: x[positions] = number"} <= disputed


class Device:
    """A device with a clock of its own: kernels take time in its queue, calls on the host."""

    def __init__(self) -> None:
        self.now = 0.0  # seconds on the host
        self.free = 0.0  # when the queue is empty
        self.rate = 1e9  # cycles a second
        self.mode = "default"

    def clock(self) -> float:
        return self.now

    def _sleep(self, cycles: int) -> None:
        self.free = max(self.free, self.now) + cycles / self.rate
        self.now += 1e-5

    def synchronize(self) -> None:
        self.now = max(self.now, self.free)

    def set_sync_debug_mode(self, mode: str) -> None:
        self.mode = mode

    def Event(self, enable_timing: bool = False) -> Event:
        return Event(self)

    def works(self, seconds: float) -> Callable[[], object]:
        def call() -> None:
            self.now += seconds

        return call

    def waits(self, told: bool) -> Callable[[], object]:
        def call() -> None:
            if told and self.mode == "warn":
                warnings.warn("called a synchronizing CUDA operation", stacklevel=1)
            self.synchronize()

        return call


class Event:
    def __init__(self, device: Device) -> None:
        self.device, self.at = device, 0.0

    def record(self) -> None:
        self.at = max(self.device.free, self.device.now)

    def query(self) -> bool:
        return self.device.now >= self.at

    def synchronize(self) -> None:
        self.device.now = max(self.device.now, self.at)

    def elapsed_time(self, other: Event) -> float:
        return (other.at - self.at) * 1000


def test_the_two_witnesses_on_a_device_with_a_clock_of_its_own() -> None:
    device = Device()
    witness = CudaWitness(device, device.clock)
    outcomes = {
        "returns at once": (device.works(1e-4), "none"),
        "works on the host for long": (device.works(0.2), "none"),
        "waits, and is told": (device.waits(told=True), "both"),
        "waits, and is not told": (device.waits(told=False), "queue"),
    }
    for name, (call, expected) in outcomes.items():
        assert witness.waited(call) == expected, name
        assert device.mode == "default"
        witness.settle()
        assert device.now >= device.free


def test_a_device_that_wakes_up_is_timed_once_it_is_awake() -> None:
    device = Device()
    device.rate = 2e8
    slow, ticks = device.clock, []

    def clock() -> float:
        ticks.append(0)
        device.rate = 2e9 if device.now > 0.2 else 2e8
        return slow()

    witness = CudaWitness(device, clock)
    assert witness._cycles_each_second == pytest.approx(2e9, rel=0.05)
    assert len(ticks) > 2


def test_the_debug_mode_is_left_where_a_call_fails() -> None:
    device = Device()

    def fails() -> None:
        raise RuntimeError("no kernel")

    with pytest.raises(RuntimeError, match="no kernel"):
        CudaWitness(device, device.clock).waited(fails)
    assert device.mode == "default"


def test_a_parameter_that_does_not_spare_the_wait_is_no_longer_said_to() -> None:
    made = entry("T", flags="s", why="issue 1")
    made.unless = {"output_size"}
    rows = {"case: repeat_interleave(output_size=)": {"repeat_interleave(output_size=)": "both"}}
    fold_measured({"torch.repeat_interleave": made}, {}, {}, {**VERSIONS, "operations": rows})
    assert made.unless == set()
    made.unless = {"output_size"}
    rows = {"case: repeat_interleave(output_size=)": {"repeat_interleave(output_size=)": "none"}}
    fold_measured({"torch.repeat_interleave": made}, {}, {}, {**VERSIONS, "operations": rows})
    assert made.unless == {"output_size"}


def test_a_worker_prints_a_row_for_each_operation(capsys: pytest.CaptureFixture[str]) -> None:
    measure_syncs.work(["torch.nonzero", "torch.add"], WITNESS)
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["name"] for row in rows] == ["torch.nonzero", "torch.add"]
    assert set(rows[0]["seen"].values()) == {"debug mode"}


VERSIONS = {"torch": "2.13.0", "cuda": "13.0", "device": "A"}


def test_a_partial_run_keeps_what_the_same_machine_measured_before() -> None:
    first = json.loads(measure_syncs.render(VERSIONS, {"a": {"x:T": "both"}, "b": {}}))
    again = json.loads(measure_syncs.render(VERSIONS, {"a": {"x:T": "none"}}, first))
    assert again["operations"] == {"a": {"x:T": "none"}, "b": {}}
    other = {**VERSIONS, "cuda": "12.0"}
    assert json.loads(measure_syncs.render(other, {"c": {}}, first))["operations"] == {"c": {}}


def entry(*types: str, flags: str = "", why: str = "") -> Entry:
    signatures = [Signature((Parameter("input", (kind,)),)) for kind in types]
    return Entry(signatures, set(flags), why=why)


def folded(made: Entry, seen: dict[str, str]) -> Entry:
    measured = {**VERSIONS, "operations": {"torch.f": seen} if seen else {}}
    fold_measured({"torch.f": made}, {}, {}, measured)
    return made


def test_a_measurement_outweighs_the_documents() -> None:
    made = folded(entry("T", flags="spdhy", why="issue 1"), {"input:T": "none"})
    assert made.flags == {"p"}
    assert made.why == ""
    assert folded(entry("T"), {"input:T": "queue"}).flags == {"s"}


def test_where_it_was_measured_is_for_the_table_to_say() -> None:
    rows = {"torch.f": {"input:T": "none"}}
    assert origin({**VERSIONS, "operations": rows}) == "torch 2.13.0, CUDA 13.0, A"
    assert origin(read_measured(Path("no such file"))) == ""


def test_overloads_that_share_a_letter_share_it_by_the_entry() -> None:
    made = folded(entry("T", "i", flags="y", why="issue 1"), {"input:T": "both", "input:i": "both"})
    assert (made.flags, [s.costs for s in made.signatures]) == ({"s", "y"}, [frozenset()] * 2)
    made = folded(entry("T", "i", flags="y", why="issue 1"), {"input:T": "both", "input:i": "none"})
    assert made.flags == set()
    assert [signature.costs for signature in made.signatures] == [frozenset("sy"), frozenset()]


def test_an_option_that_must_be_given_changes_nothing_of_what_was_seen() -> None:
    optional = Signature((Parameter("input", ("T",)), Parameter("reduction", ("s",), True)))
    required = Signature((Parameter("input", ("T",)), Parameter("reduction", ("s",))))
    made = folded(Entry([optional, required]), {"input:T,reduction:s=": "both"})
    assert made.flags == {"s"}


def test_of_copies_the_cases_alone_tell() -> None:
    made = entry("T")
    rows = {"torch.Tensor.new": {"input:T": "both"}}
    fold_measured({}, {"new": made}, {}, {**VERSIONS, "operations": rows})
    assert made.flags == set()


def test_an_overload_that_was_not_called_keeps_what_is_documented() -> None:
    made = folded(entry("T", "i", flags="s", why="issue 1"), {"input:T": "none"})
    assert made.flags == set()
    assert [signature.costs for signature in made.signatures] == [frozenset(), frozenset("s")]


def test_what_was_not_measured_says_that_it_is_documented() -> None:
    made = folded(entry("T", flags="s", why="issue 1"), {})
    assert made.flags == {"s"}
    assert made.why == "documented: issue 1"


def test_every_source_in_the_table_says_how_it_is_known() -> None:
    table = load()
    sources = [op.source for op in map(table.function, table.function_names()) if op and op.source]
    sources += [op.source for op in map(table.method, table.method_names()) if op and op.source]
    assert len(sources) > 50
    ways = {source.partition(":")[0] for source in sources}
    assert ways <= {"documented", "measured"}
    assert ("measured" in ways) == MEASURED.is_file()
    assert bool(read_measured()["operations"]) == MEASURED.is_file()


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine can measure")
def test_a_machine_without_cuda_says_in_one_line_what_is_missing() -> None:
    command = [sys.executable, str(ROOT / "tools" / "measure_syncs.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert "CUDA" in done.stderr


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_both_witnesses_see_a_read_and_neither_a_sum() -> None:
    x, on_device = torch.ones(8, device="cuda"), CudaWitness()
    x.sum().item()
    assert on_device.waited(lambda: x.sum().item()) == "both"
    assert on_device.waited(lambda: x.sum()) == "none"
