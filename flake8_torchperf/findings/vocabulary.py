"""The traits and globs that a rule page may use; `page` checks its keys.

Operations are not checked: most are names of torch, and there is no list of the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.findings.globs import problem_with
from flake8_torchperf.findings.page import PageText, nearest
from flake8_torchperf.torch_compile.regions import SWITCHES

if TYPE_CHECKING:
    from flake8_torchperf.findings.rule import Rule

# Every trait that the interpreter gives a site; tests/lint/findings/test_pages_errors.py checks
# the list.
_OF_COPIES = ("to-device", "to-host", "non-blocking", "pinned", "pageable", "kept", "scalar",
              "varying", "strided", "from-factory", "from-numpy", "from-python", "host-only",
              "as-another", "by-stated", "device-object", "host-table",
              "repeated", "flag-dropped")  # fmt: skip
_OF_CODE = ("compiled", "compiler-only", "fullgraph", "vmap", *SWITCHES)
_OF_COMPILING = ("compiled-inside", "over-compiled", "row-by-row", "loop", "step", "number",
                 "append", "counter", "global", "leak")  # fmt: skip
_OF_TRAINING = ("feeds-steps", "no-pin", "no-workers", "option")
# Traits of the place of a site, and of the evidence for its tensor.
_OF_PLACES = ("as-array", "base", "beside-list", "bounded",
              "compiling-guard", "counted", "default-accelerator", "default-device",
              "error-message", "given-away", "in-helper", "keyed",
              "made-text", "message", "named-host", "no-gradients", "of-bools",
              "of-numbers", "opaque-body", "recorded", "sized", "syncs", "traced", "uses-streams",
              "whole")  # fmt: skip
TRAITS = frozenset((*_OF_COPIES, *_OF_CODE, *_OF_COMPILING, *_OF_TRAINING, *_OF_PLACES))


def check_words(text: PageText, rule: Rule) -> None:
    """Raise PageError for an unknown trait, or a glob that no function's name can match."""
    for glob in rule.hot:
        problem = problem_with(glob)
        if problem:
            raise text.error(problem, "hot")
    for index, match in enumerate(rule.matches):
        for key, traits in (("traits", match.traits), ("not_traits", match.not_traits)):
            for trait in sorted(traits - TRAITS):
                problem = f"unknown trait {trait!r}{nearest(trait, sorted(TRAITS))}"
                raise text.error(problem, key, "match", index)
