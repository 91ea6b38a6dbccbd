"""Each feature of a finding has a sentence, for `torchperf why`."""

from __future__ import annotations

import ast

import pytest

from flake8_torchperf.findings.catalogue import load_catalogue
from flake8_torchperf.findings.vocabulary import TRAITS
from flake8_torchperf.judgement.heat import Cost
from flake8_torchperf.judgement.rows import ROWS
from flake8_torchperf.judgement.worth import features
from flake8_torchperf.judgement.worth.fitted import weights
from flake8_torchperf.judgement.worth.queue import LARGE, LITTLE, SMALL, Queue
from flake8_torchperf.judgement.worth.sentences import sentence_of
from flake8_torchperf.values.provenance import Strength
from flake8_torchperf.values.site import SiteKind

NAMES = {rule.code: rule.name for rule in load_catalogue().rules}
LEADERS = (None, ast.Pass())
QUEUES = [Queue(work, node) for work in (0, SMALL, LITTLE + 1, LARGE) for node in LEADERS]
PLACES = [name for name in vars(features).values() if isinstance(name, str) and ":" in name]
EVERY = sorted({
    *(f"kind:{kind.value}" for kind in SiteKind),
    *(f"trait:{trait.replace(' ', '-')}" for trait in TRAITS),
    *(f"cost:{cost.value.replace(' ', '-')}" for cost in Cost),
    *(f"{family}:{row.id}" for family in ("row", "runs", "left-out") for row in ROWS),
    *(f"rule:{code}" for code in NAMES),
    *(f"sure:{strength.name.lower()}" for strength in Strength),
    *(name for queue in QUEUES for wait in LEADERS[1:] for name in queue.features(wait)),
    *(name for queue in QUEUES for name in queue.features(ast.Pass())),
    *(name for name in PLACES if " " not in name),
})  # fmt: skip


@pytest.mark.parametrize("feature", EVERY)
def test_a_feature_has_a_sentence(feature: str) -> None:
    sentence = sentence_of(feature, NAMES)
    assert sentence == sentence.strip()
    assert not sentence.endswith(".")
    assert "\n" not in sentence


def test_all_features_of_the_table_have_one() -> None:
    assert all(sentence_of(feature, NAMES) for feature in weights().of)


def test_a_rule_is_named() -> None:
    assert sentence_of("rule:TPF101", NAMES) == "it is a finding of TPF101 read-of-a-tensor-value"
    assert sentence_of("rule:TPF901", NAMES) == "it is a finding of TPF901"


def test_an_unknown_feature_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        sentence_of("kind:Nothing", NAMES)
