"""What the pages say that their examples cost on a GPU: of these examples, from the file."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tools")]

from torch_table.costs import (  # noqa: E402
    COSTS,
    UNMEASURED,
    Cost,
    Costs,
    Figures,
    digest,
    read_costs,
    sentence,
    written,
)

from flake8_torchperf.findings.catalogue import load_catalogue  # noqa: E402
from flake8_torchperf.findings.documentation import Documentation, read_documentation  # noqa: E402

PAGES = [read_documentation(rule) for rule in load_catalogue().rules]
every_page = pytest.mark.parametrize("page", PAGES, ids=[page.rule.code for page in PAGES])


@every_page
def test_a_page_is_measured_as_it_is_now_or_a_reason_is_given(page: Documentation) -> None:
    """Measure again where this fails: tools/measure_costs.py --only CODE, on a GPU."""
    code, cost = page.rule.code, read_costs().rules.get(page.rule.code)
    assert page.example is not None
    if code in UNMEASURED:
        assert cost is None
        assert UNMEASURED[code]
        return
    assert cost is not None, f"{code} is neither measured nor said to be unmeasurable"
    assert cost.digest == digest(page.example), f"{code}: its examples changed since"


@every_page
def test_a_page_says_what_the_file_holds(page: Documentation) -> None:
    """Write the pages again where this fails: tools/measure_costs.py --pages, anywhere."""
    costs = read_costs()
    assert written(page, costs) == page.rule.path.read_text(encoding="utf-8")
    cost = costs.rules.get(page.rule.code)
    if cost is not None:
        assert page.sections["Why it is slow"].endswith(sentence(costs, cost))


def test_the_origin_is_stored_once() -> None:
    data = json.loads(COSTS.read_bytes())
    assert {"torch", "cuda", "device", "date", "n", "queue_ms"} <= set(data)
    assert set(data["rules"]["TPF203"]) == {"digest", "bad", "good"}
    assert COSTS.stat().st_size < 200 * len(data["rules"])


def test_on_a_gpu_the_good_examples_do_not_wait() -> None:
    rules = read_costs().rules
    assert {code for code, cost in rules.items() if cost.good.waits} == set()
    waits = {code for code, cost in rules.items() if cost.bad.waits}
    assert {code for code in rules if code[3] in "134"} <= waits


SLOW = Cost("", Figures(256, 11.438, 14.4), Figures(0, 2.237, 1.6))
ONE = Cost("", Figures(1, 0.0978, 4.156), Figures(0, 0.046, 0.153))
NONE = Cost("", Figures(0, 8.07, 7.8), Figures(0, 0.087, 0.09))


def test_the_sentence() -> None:
    costs = Costs("NVIDIA H100 80GB HBM3", 256, 4.0, {})
    assert sentence(costs, SLOW) == (
        "On an H100 (n = 256): 256 waits, 11.4 ms; fixed: 0 waits, 2.2 ms."
    )
    assert sentence(costs, ONE) == (
        "On an H100 (n = 256): 1 wait, 0.10 ms; fixed: 0 waits, 0.05 ms; "
        "behind 4 ms of queued work 4.2 ms and 0.15 ms."
    )
    assert sentence(costs, NONE) == "On an H100 (n = 256): 8.1 ms; fixed: 0.09 ms."


def test_a_sentence_is_replaced_and_taken_out_of_a_page_that_changed() -> None:
    page = next(page for page in PAGES if page.rule.code == "TPF203")
    assert page.example is not None
    costs = read_costs()
    cost = costs.rules["TPF203"]
    other = replace(costs, rules={"TPF203": replace(SLOW, digest=cost.digest)})
    assert sentence(other, SLOW) in written(page, other)
    assert sentence(costs, cost) not in written(page, other)
    changed = replace(page, example=replace(page.example, setup="k = 1\n"))
    assert "On an H100" not in written(changed, costs)


def test_every_part_of_an_example_counts() -> None:
    example = PAGES[0].example
    assert example is not None
    changes = [
        {"bad": "x"}, {"good": "x"}, {"call": "x"}, {"setup": "x"}, {"inputs": {}}, {"host": ("x",)},
    ]  # fmt: skip
    digests = [digest(replace(example, **change)) for change in changes]  # type: ignore[arg-type]
    assert len({digest(example), *digests}) == len(changes) + 1


def test_linting_does_not_read_the_file(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("import torch\n\n\ndef train_step(x):\n    return x.item()\n")
    code = (
        "import sys, runpy\nopened = []\n"
        "sys.addaudithook(lambda e, a: opened.append(str(a[0])) if e == 'open' else None)\n"
        f"sys.argv = ['flake8', '--isolated', '-j1', '--select', 'TPF', {str(tmp_path)!r}]\n"
        "try:\n    runpy.run_module('flake8', run_name='__main__')\n"
        "except SystemExit:\n    pass\n"
        "assert any('TPF101' in one for one in opened), opened\n"
        "assert not [one for one in opened if 'costs' in one]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, capture_output=True)


def test_explain_shows_it(capsys: pytest.CaptureFixture[str]) -> None:
    from flake8_torchperf.cli.main import main

    costs = read_costs()
    assert main(["explain", "TPF203"]) == 0
    assert sentence(costs, costs.rules["TPF203"]) in capsys.readouterr().out


def test_a_machine_without_cuda_says_in_one_line_what_is_missing() -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("this machine can measure")
    command = [sys.executable, str(ROOT / "tools" / "measure_costs.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert "CUDA" in done.stderr
