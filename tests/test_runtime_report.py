"""The metrics report: its form, its numbers, and how it writes times."""

import re

import pytest

torch = pytest.importorskip("torch")

from flake8_torchperf.runtime import DispatchCounter, metrics_report  # noqa: E402
from flake8_torchperf.runtime.api.text_report import human_time, percentile  # noqa: E402
from flake8_torchperf.runtime.counting import counter  # noqa: E402
from flake8_torchperf.runtime.counting.evidence import Counts, Evidence, OpEvidence  # noqa: E402


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0.000us"),
        (32_778, "32.778us"),
        (1_032_778, "001ms32.778us"),
        (778_572_062, "778ms572.062us"),
        (21_102_853_173, "21s102ms853.173us"),
        (369_401_746_001, "06m09s401ms746.001us"),
        (3_600_000_000_000, "01h00m00s000ms0.000us"),
        (90_061_000_000_000, "01d01h01m01s000ms0.000us"),
    ],
)
def test_human_time(nanoseconds, text):
    assert human_time(nanoseconds) == text


def test_percentiles_are_samples():
    ordered = list(range(100))
    assert [percentile(ordered, one) for one in (1, 50, 99)] == [1, 50, 99]
    assert [percentile([7], one) for one in (1, 50, 99)] == [7, 7, 7]
    assert percentile([], 50) == 0


def test_report_of_known_evidence():
    evidence = Evidence(
        level="full",
        seconds=2.0,
        lines=(),
        ops=(OpEvidence("aten::nonzero", 4, 0.0025, (1_000, 2_000, 3_000, 1_032_778)),),
        totals=Counts(dispatches=4, dynamic_shapes=4, seconds=0.0025),
    )
    assert metrics_report(evidence) == (
        "Metric: aten::nonzero\n"
        "  TotalSamples: 4\n"
        "  Accumulator: 002ms500.000us\n"
        "  Rate: 2 / second\n"
        "  Percentiles: 1%=1.000us; 5%=1.000us; 10%=1.000us; 20%=1.000us; 50%=3.000us; "
        "80%=001ms32.778us; 90%=001ms32.778us; 95%=001ms32.778us; 99%=001ms32.778us\n"
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
    times = re.search(r"Metric: aten::nonzero\n  TotalSamples: 33\n  Accumulator: (\S+)\n", report)
    assert times is not None
    assert times[1].endswith("us")


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
