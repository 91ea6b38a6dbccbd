"""The costs of the rule pages' examples on a GPU: the file, its figures, and their sentence.

Takes a page and `benchmarks/costs.json`, and returns text. Needs no torch;
`tools/measure_costs.py` measures.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flake8_torchperf.findings.documentation import Documentation, Example

COSTS = Path(__file__).resolve().parents[2] / "benchmarks" / "costs.json"
# The figures of one example, in the order in which the file holds them.
FIGURES = ("waits", "call_ms", "behind_ms")
# The sentence stands as the last paragraph of this section.
SECTION = "Why it is slow"
_SENTENCE = re.compile(r"On an \S+ \(n = \d+\): .* ms\.")

UNMEASURED: Mapping[str, str] = {
    "TPF108": "written after the measurement; tools/measure_costs.py --only TPF108 adds it",
    "TPF407": "written after the measurement; tools/measure_costs.py --only TPF407 adds it",
    "TPF508": "written when no GPU was at hand; tools/measure_costs.py --only TPF508 adds it",
    "TPF509": "written when no GPU was at hand; tools/measure_costs.py --only TPF509 adds it",
    "TPF510": "written when no GPU was at hand; tools/measure_costs.py --only TPF510 adds it",
    "TPF511": "what recording costs is memory, and depends on the model",
    "TPF512": "what is repeated depends on the data set and the number of ranks",
    "TPF504": "a read that comes too early is wrong, not slow",
    "TPF505": "starting workers takes longer than all of the example's small items",
    "TPF507": "what the kept graph costs is memory",
    "TPF609": "recording the graph of the bad example is an error on a device",
    **dict.fromkeys(
        ("TPF601", "TPF602", "TPF603", "TPF604", "TPF605", "TPF606", "TPF607", "TPF608", "TPF610"),
        "what compiling costs depends on the code around it, not on the device",
    ),
}
"""Pages whose examples no device is asked about, and why."""


@dataclass(frozen=True)
class Figures:
    """One call of an example.

    ``waits`` is how often it made Python wait, ``call_ms`` its time in a row of calls, the device's
    included, and ``behind_ms`` the time on the host behind a queue that is busy for some ms.
    """

    waits: int
    call_ms: float
    behind_ms: float


@dataclass(frozen=True)
class Cost:
    """Both examples of a page, and the examples that they were measured of."""

    digest: str
    bad: Figures
    good: Figures


@dataclass(frozen=True)
class Costs:
    """The file. ``device`` is its full name, ``n`` the size of the inputs."""

    device: str
    n: int
    queue_ms: float
    rules: Mapping[str, Cost]


def read_costs(path: Path = COSTS) -> Costs:
    """Return the file's content."""
    data = json.loads(path.read_bytes())
    rules = {
        code: Cost(row["digest"], Figures(*row["bad"]), Figures(*row["good"]))
        for code, row in data["rules"].items()
    }
    return Costs(data["device"], data["n"], data["queue_ms"], rules)


def write_costs(origin: Mapping[str, Any], rules: Mapping[str, Any], path: Path = COSTS) -> None:
    """Write the origin once, then a line for each page."""
    head = [f"{json.dumps(key)}: {json.dumps(value)}," for key, value in origin.items()]
    body = [f"{json.dumps(code)}: {json.dumps(row)}" for code, row in sorted(rules.items())]
    text = "\n".join(["{", *head, '"rules": {', ",\n".join(body), "}", "}"])
    path.write_text(text + "\n", encoding="utf-8")


def digest(example: Example) -> str:
    """Return a short digest, different after every change to the code that is run."""
    run = [example.bad, example.good, example.call, example.setup, sorted(example.inputs.items()),
           example.host]  # fmt: skip
    return hashlib.sha256(json.dumps(run).encode()).hexdigest()[:12]


def sentence(costs: Costs, cost: Cost) -> str:
    """ "On an H100 (n = 256): 256 waits, 11.4 ms; fixed: 0 waits, 2.2 ms."

    Where a wait takes as long as the queue is, and the call alone shows little of it, both times
    behind a busy queue follow.
    """
    waits = cost.bad.waits or cost.good.waits
    bad, good = (_told(one, bool(waits)) for one in (cost.bad, cost.good))
    text = f"On an {_short(costs.device)} (n = {costs.n}): {bad}; fixed: {good}"
    if waits and cost.bad.call_ms < costs.queue_ms:
        behind = f"{_ms(cost.bad.behind_ms)} and {_ms(cost.good.behind_ms)}"
        text += f"; behind {costs.queue_ms:.0f} ms of queued work {behind}"
    return f"{text}."


def _told(figures: Figures, waits: bool) -> str:
    counted = f"{figures.waits} wait{'s' * (figures.waits != 1)}, " if waits else ""
    return f"{counted}{_ms(figures.call_ms)}"


def _ms(value: float) -> str:
    return f"{value:.1f} ms" if value >= 1 else f"{value:.2f} ms"


def _short(device: str) -> str:
    """ "NVIDIA H100 80GB HBM3" is an H100."""
    return next(
        (word for word in device.split() if word[:1] in "ABHLV" and word[1:].isdigit()), device
    )


def written(page: Documentation, costs: Costs) -> str:
    """Return the page's text with its sentence put in or replaced, or removed if there is none."""
    text = page.rule.path.read_text(encoding="utf-8")
    heading = f"\n## {SECTION}\n"
    start = text.index(heading) + len(heading)
    end = text.index("\n## ", start)
    section = text[start:end].strip("\n").split("\n\n")
    kept = [one for one in section if not _SENTENCE.fullmatch(one)]
    cost = costs.rules.get(page.rule.code)
    if cost is not None and page.example is not None and cost.digest == digest(page.example):
        kept.append(sentence(costs, cost))
    return text[:start] + "\n" + "\n\n".join(kept) + "\n" + text[end:]
