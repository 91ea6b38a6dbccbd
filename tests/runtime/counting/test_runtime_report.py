"""The metrics report: its form, its numbers, and how it writes times."""

import re

import pytest

torch = pytest.importorskip("torch")

from flake8_torchperf.runtime import DispatchCounter, metrics_report  # noqa: E402
from flake8_torchperf.runtime.api.text_report import percentile  # noqa: E402
from flake8_torchperf.runtime.counting import counter  # noqa: E402
from flake8_torchperf.runtime.counting.counts import Counts, Observation, OpEvidence, human_time  # noqa: E402


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (7e-9, "7 ns"),
        (32.778e-6, "32.8 µs"),
        (999.6e-6, "1 ms"),
        (1_032.778e-6, "1.03 ms"),
        (0.778_572_062, "779 ms"),
        (21.102_853_173, "21.1 s"),
        (4_199.7, "4,200 s"),
    ],
)
def test_times_are_in_si_units(seconds, text):
    assert human_time(seconds) == text


def test_percentiles_are_samples():
    ordered = list(range(100))
    assert [percentile(ordered, one) for one in (1, 50, 99)] == [1, 50, 99]
    assert [percentile([7], one) for one in (1, 50, 99)] == [7, 7, 7]
    assert percentile([], 50) == 0


def test_report_of_known_evidence():
    evidence = Observation(
        level="full",
        seconds=2.0,
        lines=(),
        ops=(OpEvidence("aten::nonzero", 4, 0.0025, (1_000, 2_000, 3_000, 1_032_778)),),
        totals=Counts(dispatches=4, dynamic_shapes=4, seconds=0.0025),
    )
    assert metrics_report(evidence) == (
        "Metric: aten::nonzero\n"
        "  TotalSamples: 4\n"
        "  Accumulator: 2.5 ms\n"
        "  Rate: 2 / s\n"
        "  Percentiles: 1%=1 µs; 5%=1 µs; 10%=1 µs; 20%=1 µs; 50%=3 µs; "
        "80%=1.03 ms; 90%=1.03 ms; 95%=1.03 ms; 99%=1.03 ms\n"
        "Counter: aten::nonzero\n"
        "  Value: 4\n"
        "Counter: torchperf::dispatches\n"
        "  Value: 4\n"
        "Counter: torchperf::dynamic_shapes\n"
        "  Value: 4\n"
    )


def test_report_of_the_counter_opened_last():
    with DispatchCounter() as last:
        for _ in range(33):
            torch.nonzero(torch.ones(2))
        while_open = metrics_report()
    assert "Counter: aten::nonzero\n  Value: 33\n" in while_open
    report = metrics_report()
    assert report == metrics_report(last) == metrics_report(last.evidence)
    times = re.search(r"Metric: aten::nonzero\n  TotalSamples: 33\n  Accumulator: (.+)\n", report)
    assert times is not None
    assert times[1].endswith("s")


def test_a_long_run_keeps_a_bounded_number_of_samples():
    with DispatchCounter() as long:
        x = torch.zeros(1)
        for _ in range(1100):
            x.add_(1)
    (add,) = [op for op in long.evidence.ops if op.name == "aten::add_"]
    assert (add.dispatches, len(add.samples)) == (1100, 1024)


def test_report_of_nothing(monkeypatch):
    with DispatchCounter() as empty:
        pass
    assert metrics_report(empty) == "Nothing was counted.\n"
    monkeypatch.setattr(counter, "_latest", None)
    with pytest.raises(ValueError, match="open a DispatchCounter first"):
        metrics_report()
