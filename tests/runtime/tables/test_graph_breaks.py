"""The table of graph breaks: what it says of each cause, torch's own tracer must confirm."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("guards_are_not_timed")

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools"))

import generate_graph_breaks as generator  # noqa: E402

torch = pytest.importorskip("torch")

PRELUDE = """
import bisect, contextvars, copy, datetime, gc, hashlib, inspect, io, json, logging, math, os
import pickle, random, sys, threading, time, uuid, warnings
import numpy as np
import torch

lin = torch.nn.Linear(4, 4)
lstm, gru, rnn = torch.nn.LSTM(4, 4), torch.nn.GRU(4, 4), torch.nn.RNN(4, 4)
logger = logging.getLogger("torchperf-probe")
logger.addHandler(logging.NullHandler())
logger.propagate = False
variable = contextvars.ContextVar("variable", default=1)
"""
PROBES = [
    # One of each entry says whether the installed torch has its reason; the slow tests try them all.
    pytest.param(
        entry["type"],
        probe,
        id=f"{entry['rule']}-{name}",
        marks=[pytest.mark.slow] if place else [],
    )
    for entry in generator.seen()
    for place, (name, probe) in enumerate(
        {**entry.get("calls", {}), **entry.get("shows", {})}.items()
    )
]


def test_committed_table_is_the_installed_torchs() -> None:
    """A new torch release makes this fail until the table is generated anew."""
    script = ROOT / "tools" / "generate_graph_breaks.py"
    done = subprocess.run(
        [sys.executable, str(script), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("kind", "probe"), PROBES)
def test_torch_breaks_for_the_stated_reason(kind: str, probe: str) -> None:
    """Each probe is compiled: the break must have the stated type and name the probe's line."""
    from flake8_torchperf.runtime.counting.graph_breaks import explain

    names: dict[str, Any] = {}
    exec(PRELUDE, names)
    body = "\n".join(f"    {line}" for line in probe.splitlines())
    source = f"def probe(x):\n    y = x + 1\n{body}\n    return x * 2\n"
    exec(compile(source, "<probe>", "exec"), names)
    found = explain(names["probe"], (torch.randn(4, 4),), {})
    assert kind in [one.kind for one in found.breaks]
    lines = set(range(3, 3 + len(probe.splitlines())))
    assert any(one.lines_in("<probe>") & lines for one in found.breaks)
