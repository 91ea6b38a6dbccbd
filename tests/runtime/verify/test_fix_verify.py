"""``fix --verify`` holds the two texts of a function against each other by running both."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hangs import HANG

pytest.importorskip("torch")

from fixing import unmarked
from linting import PRELUDE
from verifying import LIMITS, OPTIONS, verdict

from flake8_torchperf.findings.catalogue import load_catalogue
from flake8_torchperf.findings.documentation import FixExample, read_documentation
from flake8_torchperf.findings.finding import Edit
from flake8_torchperf.findings.rule import Rule
from flake8_torchperf.linter import lint
from flake8_torchperf.runtime.confirm.sandbox import Answer, Sandbox
from flake8_torchperf.runtime.verify.job import Trial, job_of
from flake8_torchperf.runtime.verify.session import WORK
from flake8_torchperf.runtime.verify.verdict import verdict_of_fix, verdicts

pytestmark = pytest.mark.usefixtures("forked_sandboxes")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(timeout=HANG, memory=2048, work=WORK) as opened:
        yield opened


MADE_ON_THE_HOST = """
def step(x: Tensor) -> Tensor:
    return x * torch.arange(x.shape[0]).to(x.device)
"""
MADE_ON_THE_DEVICE = """
def step(x: Tensor) -> Tensor:
    return x * torch.arange(x.shape[0], device=x.device)
"""


def test_a_right_fix_is_verified(sandbox: Sandbox, tmp_path: Path) -> None:
    told = verdict(sandbox, tmp_path, MADE_ON_THE_HOST, MADE_ON_THE_DEVICE)
    assert told.status == "verified", told
    assert told.words.startswith("1 copy to the device -> 0; "), told
    assert int(told.words.split("; ")[1].split()[0]) >= 15


def test_a_class_whose_module_does_not_import_is_made_all_the_same(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    head = """
        import not_installed

        class Scale:
            def __init__(self, factor: float) -> None:
                self.factor = factor

            def scaled(self, x: Tensor) -> Tensor:
                return x * self.factor * """
    before, after = (
        textwrap.dedent(head) + made
        for made in (
            "torch.arange(x.shape[0]).to(x.device)",
            "torch.arange(x.shape[0], device=x.device)",
        )
    )
    told = verdict(sandbox, tmp_path, before, after)
    assert told.status == "verified", told


def test_annotations_that_do_not_import_are_left_out(sandbox: Sandbox, tmp_path: Path) -> None:
    head = """
        from not_installed import Float

        def scaled(x: Float[Tensor, "n"], y: Tensor) -> Float[Tensor, "n"]:
            return y * """
    before, after = (
        textwrap.dedent(head) + made
        for made in (
            "torch.arange(y.shape[0]).to(y.device)",
            "torch.arange(y.shape[0], device=y.device)",
        )
    )
    told = verdict(sandbox, tmp_path, before, after)
    assert told.status == "verified", told


def test_it_says_by_how_much_the_evidence_shrinks(sandbox: Sandbox, tmp_path: Path) -> None:
    told = verdict(
        sandbox,
        tmp_path,
        """
        def total(x: Tensor) -> float:
            found = 0.0
            for row in x.unbind():
                found += row.sum().item() * 0
            return found
        """,
        """
        def total(x: Tensor) -> float:
            return (x.sum() * 0).item()
        """,
        safety="unsafe",
    )
    assert told.status == "verified", told
    assert told.words.startswith("256,000 host reads -> 1 at 256,000 elements; ")


WRONG = {
    "another value": ("return (x * 2).sum().item()", "return float((x * 3).sum())", "result"),
    "another type": ("return x.sum().item()", "return x.sum()", "result: "),
    "an argument changed": (
        "y = x.sum().item()\n    return y",
        "y = x.sum().item()\n    x.mul_(2)\n    return y",
        "given",
    ),
    "a module's own data": (
        "return x.sum().item()",
        "COUNTS.append(1)\n    return float(x.sum())",
        "globals[",
    ),
    "only where it is empty": (
        "if x.sum().item() > -1e9:\n        return x * 1\n    return x * 2",
        "if x.numel() == 0:\n        return None\n    return x * 1",
        "n = 0",
    ),
    "only for NaN": (
        "return x * (0 if x.isnan().any().item() else 1)",
        "return x * 1",
        "with NaN",
    ),
    "gradients": (
        "return x * (0 * x.detach().sum().nan_to_num(0, 0, 0).item() + 1)",
        "return (x * 1).detach() if x.requires_grad else x * 1",
        "require gradients",
    ),
    "aliasing": (
        "y = x.sum().item() * 0\n    return x",
        "return x.clone()",
        "object 0",
    ),
    "another error": (
        "if x.sum().item() > -1e9:\n        raise ValueError('no')\n    return x",
        "raise TypeError('no')",
        "raise",
    ),
    "float16 alone": (
        "y = x.sum().item()\n    return x * 1",
        "return x.float().to(x.dtype) * (2 if x.dtype == torch.float16 else 1)",
        "in float16",
    ),
    "strided alone": (
        "y = x.sum().item()\n    return x * 1",
        "return x * (1 if x.is_contiguous() else 2)",
        "not contiguous",
    ),
    "the next random number": (
        "y = x.sum().item()\n    return x * 1",
        "torch.rand(1)\n    return x * 1",
        "random",
    ),
}
HEAD = "COUNTS: list[int] = []\n\n\ndef step(x: Tensor):\n    "


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_fix_is_withdrawn_with_the_input(
    sandbox: Sandbox, tmp_path: Path, name: str
) -> None:
    before, after, where = WRONG[name]
    told = verdict(sandbox, tmp_path, HEAD + before + "\n", HEAD + after + "\n")
    if name == "another error":  # no call of the text before comes to its end
        assert told.status == "unverified", told
        assert "raised ValueError: no" in told.words
        return
    assert told.status == "withdrawn", told
    assert where in told.words
    assert "x=" in told.words


GUARDED = """
def divergence(logits: Tensor, target: Tensor) -> Tensor:
    p, q = logits.softmax(-1), target.softmax(-1)
    kl = (p * (p / q).log()).sum()
    if not torch.isfinite(kl):
        kl = torch.zeros((), device=logits.device)
    return kl
"""
CHOSEN = """
def divergence(logits: Tensor, target: Tensor) -> Tensor:
    p, q = logits.softmax(-1), target.softmax(-1)
    kl = (p * (p / q).log()).sum()
    kl = torch.where(torch.isfinite(kl), kl, torch.zeros((), device=logits.device))
    return kl
"""


def test_gradients_are_compared_for_numbers_that_saturate(sandbox: Sandbox, tmp_path: Path) -> None:
    allows = ("other-gradients", "dtype")
    told = verdict(sandbox, tmp_path, GUARDED, CHOSEN, safety="unsafe", allows=allows)
    assert told.status == "withdrawn", told
    assert "finite or none before, NaN or infinite after" in told.words
    assert told.words.endswith("that saturate and require gradients")


def test_evidence_that_stays_withdraws_the_fix(sandbox: Sandbox, tmp_path: Path) -> None:
    told = verdict(
        sandbox, tmp_path, HEAD + "return x.sum().item()\n", HEAD + "return float(x.sum())\n"
    )
    assert told.status == "withdrawn", told
    assert "1 host read before and after" in told.words


ALLOWED = {
    "tensor-for-number": ("return x.sum().item()", "return x.sum()"),
    "dtype": ("y = x.sum().item()\n    return x.double() * 1", "return x * 1"),
    "other-random-numbers": (
        "y = x.sum().item()\n    return torch.rand(3)",
        "torch.rand(2)\n    return torch.rand(3)",
    ),
    "other-gradients": ("y = x.sum().item()\n    return x * 1", "return (x * 1).detach()"),
    "other-if-not-finite": (
        "return x * 1 if x.isfinite().all().item() else x * 0",
        "return x * 1",
    ),
    "other-error": (
        "if x.isnan().any().item():\n        raise ValueError('nan')\n    return x * 1",
        "torch._assert_async(~x.isnan().any(), 'nan')\n    return x * 1",
    ),
}


# Two calls of the sandbox each: the thorough tests try all words.
QUICK_WORDS = ("tensor-for-number", "dtype", "other-error")


@pytest.mark.parametrize(
    "word",
    [w if w in QUICK_WORDS else pytest.param(w, marks=pytest.mark.thorough) for w in ALLOWED],
)
def test_a_page_allows_what_it_names_alone(sandbox: Sandbox, tmp_path: Path, word: str) -> None:
    before, after = (HEAD + body + "\n" for body in ALLOWED[word])
    plain = verdict(sandbox, tmp_path, before, after, safety="unsafe")
    assert plain.status == "withdrawn", plain
    extra = ("other-gradients",) if word.startswith("tensor") else ()
    allowed = verdict(sandbox, tmp_path, before, after, safety="unsafe", allows=(word, *extra))
    assert allowed.status == "verified", allowed


# Fixes that are right for what annotations say, and for nothing else that callers pass: the text
# before and after, and what the pages of such fixes allow.
FOR_OTHER_CALLERS = {
    "a float for an int": (
        "def step(x: Tensor, k: int) -> Tensor:\n    return x * torch.tensor(k, device=x.device)\n",
        "def step(x: Tensor, k: int) -> Tensor:\n"
        "    return x * torch.full((), k, device=x.device, dtype=torch.int64)\n",
        "k=",
    ),
    "a default that is an int": (
        "def step(x: Tensor, k=2) -> Tensor:\n    return x * torch.tensor(k, device=x.device)\n",
        "def step(x: Tensor, k=2) -> Tensor:\n"
        "    return x * torch.full((), k, device=x.device, dtype=torch.int64)\n",
        "k=",
    ),
    "repeats that broadcast": (
        "def step(x: Tensor, r: Tensor) -> Tensor:\n"
        "    return torch.repeat_interleave(x, torch.ones_like(r).long(), dim=0)\n",
        "def step(x: Tensor, r: Tensor) -> Tensor:\n    return torch.repeat_interleave(\n"
        "        x, torch.ones_like(r).long(), dim=0, output_size=r.shape[0]\n    )\n",
        "it raises",
    ),
    "an index with two dimensions": (
        "def step(codes: Tensor, mask: Tensor) -> Tensor:\n"
        "    codes[(mask > 0.5).nonzero()] = 83\n    return codes\n",
        "def step(codes: Tensor, mask: Tensor) -> Tensor:\n"
        "    codes.index_fill_(0, (mask > 0.5).nonzero(), 83)\n    return codes\n",
        "it raises",
    ),
    "a total in the tensors' dtype": (
        "def step(losses: list[Tensor]) -> float:\n    total = 0.0\n"
        "    for loss in losses:\n        total += loss.sum().item()\n    return total\n",
        "def step(losses: list[Tensor]) -> float:\n    total = torch.zeros(())\n"
        "    for loss in losses:\n        total = (total + loss.sum()).to(loss.dtype)\n"
        "    return float(total)\n",
        "1,000 rounds",
    ),
    "a mask of another length": (
        "def step(x: Tensor, mask: Tensor) -> Tensor:\n    return x[: len(mask)][mask > 0.5].sum()\n",
        "def step(x: Tensor, mask: Tensor) -> Tensor:\n"
        "    return torch.where(mask > 0.5, x, 0.0).sum()\n",
        "mask=",
    ),
}


QUICK_CALLERS = ("a float for an int", "repeats that broadcast", "a mask of another length")


@pytest.mark.parametrize(
    "name",
    [
        name if name in QUICK_CALLERS else pytest.param(name, marks=pytest.mark.thorough)
        for name in FOR_OTHER_CALLERS
    ],
)
def test_a_fix_that_is_wrong_for_other_callers_is_withdrawn(
    sandbox: Sandbox, tmp_path: Path, name: str
) -> None:
    before, after, where = FOR_OTHER_CALLERS[name]
    told = verdict(
        sandbox, tmp_path, before, after, safety="unsafe", allows=("other-error", "dtype")
    )
    assert told.status == "withdrawn", told
    assert where in told.words


def test_a_device_parameter_gets_a_device(sandbox: Sandbox, tmp_path: Path) -> None:
    before = "def step(n, device):\n    return torch.zeros(4).to(device)\n"
    told = verdict(sandbox, tmp_path, before, before.replace(").to(device)", ", device=device)"))
    assert told.status == "verified", told


def test_the_import_that_failed_is_the_reason(sandbox: Sandbox, tmp_path: Path) -> None:
    before = (
        "import inspect\nimport no_such_module\n\n\ndef step(x: Tensor):\n"
        "    y = torch.zeros(3).to(x.device)\n    inspect.getsource(type('A', (), {}))\n    return y\n"
    )
    told = verdict(
        sandbox, tmp_path, before, before.replace(").to(x.device)", ", device=x.device)")
    )
    assert told.status == "unverified"
    assert told.words.startswith(
        "import failed: ModuleNotFoundError: No module named 'no_such_module'"
    )
    assert told.words.count("no_such_module") == 1


@pytest.mark.parametrize("callers", [1, pytest.param(3, marks=pytest.mark.thorough)])
def test_verdicts_are_the_same_from_run_to_run(
    sandbox: Sandbox, tmp_path: Path, callers: int
) -> None:
    for before, after, _ in list(FOR_OTHER_CALLERS.values())[:callers]:
        first, second = (
            verdict(sandbox, tmp_path, before, after, safety="unsafe", allows=("other-error",))
            for _ in range(2)
        )
        assert first == second


NOT_RUN = {
    "no object of it": (
        "def step(x: Tensor, y):\n    y.no_such_thing[0](x)[1] = x.undefined()\n"
        "    return x * torch.arange(3).to(x.device)\n",
        "",
    ),
    "import failed": (
        "class A(no_such_name):\n"
        "    def forward(self, x: Tensor):\n        return torch.zeros(3).to(x.device)\n",
        "import failed",
    ),
    "crash": (
        "import ctypes\n\n\ndef step(x: Tensor):\n    y = torch.zeros(3).to(x.device)\n"
        "    ctypes.string_at(0)\n    return y\n",
        "crashed",
    ),
    "hang": (
        "def step(x: Tensor):\n    y = torch.zeros(3).to(x.device)\n"
        "    while True:\n        pass\n    return y\n",
        "",
    ),
}


@pytest.mark.parametrize(
    "name",
    # test_the_import_that_failed_is_the_reason tells of an import too.
    [
        pytest.param(name, marks=pytest.mark.slow) if name == "import failed" else name
        for name in NOT_RUN
    ],
)
def test_what_cannot_be_run_is_unverified(tmp_path: Path, name: str) -> None:
    before, reason = NOT_RUN[name]
    after = before.replace(").to(x.device)", ", device=x.device)")
    assert after != before
    with Sandbox(timeout=4.0, memory=2048, work=WORK) as sandbox:
        told = verdict(sandbox, tmp_path, before, after)
    assert told.status == "unverified", told
    assert reason in told.words
    assert "\n" not in told.words
    assert told.words


def test_a_fix_that_crashes_is_withdrawn(sandbox: Sandbox, tmp_path: Path) -> None:
    told = verdict(
        sandbox,
        tmp_path,
        "import ctypes\n" + MADE_ON_THE_HOST,
        "import ctypes\n" + MADE_ON_THE_DEVICE.replace("return", "ctypes.string_at(0)\n    return"),
    )
    assert told.status == "withdrawn", told
    assert "SIGSEGV" in told.words


def test_a_function_that_never_does_the_same_is_unverified(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    before = "import time\n" + MADE_ON_THE_HOST.replace("return x *", "return time.time_ns() + x *")
    after = before.replace(").to(x.device)", ", device=x.device)")
    told = verdict(sandbox, tmp_path, before, after)
    assert told.status == "unverified", told
    assert "two runs of the text before" in told.words


def test_a_malformed_report_is_unverified(sandbox: Sandbox, tmp_path: Path) -> None:
    finding = lint(PRELUDE + MADE_ON_THE_HOST, "model.py", OPTIONS)[0]
    for told in ({}, {"calls": -1, "raised": 0, "difference": ""}, {"failed": "x", "reason": "y"}):
        assert verdict_of_fix(finding.rule, told).status == "unverified"
        for answer in (Answer(told, "", 0.0), Answer({"trials": [told, told]}, "", 0.0)):
            assert verdicts([finding.rule], answer)[0].status == "unverified"
    assert verdicts([finding.rule], Answer(None, "timed out", 0.0))[0].words == "timed out"


def test_methods_and_nested_functions_are_exchanged(sandbox: Sandbox, tmp_path: Path) -> None:
    before = """
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)

        @torch.no_grad()
        def forward(self, x: Tensor) -> Tensor:
            return self.layer(x) + torch.ones(4).to(x.device)
    """
    after = before.replace(").to(x.device)", ", device=x.device)")
    told = verdict(sandbox, tmp_path, before, after)
    assert told.status == "verified", told
    wrong = verdict(sandbox, tmp_path, before, after.replace("ones(4", "zeros(4"))
    assert wrong.status == "withdrawn", wrong
    assert "result" in wrong.words


def test_a_private_method_is_found(sandbox: Sandbox, tmp_path: Path) -> None:
    before = """
    class Score:
        def __total(self, x: Tensor) -> Tensor:
            return x + torch.arange(x.shape[0]).to(x.device)
    """
    after = before.replace(").to(x.device)", ", device=x.device)")
    told = verdict(sandbox, tmp_path, before, after)
    assert told.status == "verified", told


def test_a_fix_may_import_what_it_needs(sandbox: Sandbox, tmp_path: Path) -> None:
    after = "import operator\n" + MADE_ON_THE_DEVICE.replace(
        "x * torch", "operator.mul(x, torch"
    ).replace("x.device)", "x.device))")
    told = verdict(sandbox, tmp_path, MADE_ON_THE_HOST, after)
    assert told.status == "verified", told


def test_equal_functions_are_run_once() -> None:
    text = PRELUDE + MADE_ON_THE_HOST
    finding = lint(text, "model.py", OPTIONS)[0]
    trial = Trial("model.py", finding, Edit((), name="a"), text, PRELUDE + MADE_ON_THE_DEVICE)
    moved = replace(trial, before="\n" + trial.before, after="\n" + trial.after)
    assert trial.key == moved.key
    assert trial.key != replace(trial, after=trial.before).key


CASES = [
    (rule, fix)
    for rule in load_catalogue().rules
    if rule.fixes
    for fix in read_documentation(rule).fixes
]


@pytest.mark.thorough  # tests/fixes/test_fix_pages.py runs each of them in the process of the test
@pytest.mark.parametrize(
    ("rule", "fix"), CASES, ids=[f"{rule.code}-{fix.name}" for rule, fix in CASES]
)
def test_no_page_shows_a_fix_that_is_withdrawn(
    sandbox: Sandbox, tmp_path: Path, rule: Rule, fix: FixExample
) -> None:
    """With the page's own inputs, a fix that is not safe changes no more than the page allows."""
    path = tmp_path / "page.py"
    before = unmarked(fix.before)
    path.write_text(before)
    finding = next(one for one in lint(before, str(path), OPTIONS) if one.code == rule.code)
    edit = Edit((), safety=fix.safety, name=fix.name)
    trial = Trial(str(path), finding, edit, before, fix.after)
    job = {**job_of(trial, OPTIONS, LIMITS), "seconds": sandbox.timeout}
    job["given"] = {name: text for name, text in fix.inputs.items() if name in job["params"]}
    both = {**job, "trials": [job], "import_seconds": sandbox.timeout}
    told = verdicts([rule], sandbox.run(both, 2.5 * sandbox.timeout))[0]
    assert told.status != "withdrawn", told
