"""What is found of keys that lead to one another does not depend on what was asked before."""

from __future__ import annotations

from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from flake8_torchperf.program.derivations import Derivations

KEYS = st.integers(0, 6)
# The keys that each key leads to.
GRAPHS = st.lists(st.lists(KEYS, max_size=3), min_size=7, max_size=7)
QUESTIONS = st.lists(st.tuples(KEYS, st.integers(1, 8)), min_size=1, max_size=8)
ITSELF = -1


class Walk:
    """Finds the keys that a key leads to in a number of steps; -2 where nothing is found."""

    def __init__(self, graph: list[list[int]]) -> None:
        self.graph = graph
        self.derived: Derivations[int] = Derivations(ITSELF)
        self.found = 0

    def of(self, key: int, steps: int) -> set[int]:
        if self.derived.are_spent(steps):
            return set()
        return self.derived.of(key, steps, partial(self.find, key, steps))

    def find(self, key: int, steps: int) -> set[int]:
        self.found += 1
        above = [self.of(one, steps - 1) for one in self.graph[key]]
        unknown = {-2} if not all(above) else set()
        return {key, *unknown, *(one for part in above for one in part)} - {ITSELF}


def plainly(graph: list[list[int]], key: int, steps: int) -> set[int]:
    if steps <= 0:
        return set()
    above = [plainly(graph, one, steps - 1) for one in graph[key]]
    return {key, *({-2} if not all(above) else ()), *(one for part in above for one in part)}


@given(GRAPHS, QUESTIONS)
def test_an_answer_is_that_of_the_question_alone(
    graph: list[list[int]], questions: list[tuple[int, int]]
) -> None:
    walk = Walk(graph)
    assert [walk.of(*one) for one in questions] == [Walk(graph).of(*one) for one in questions]


@given(GRAPHS, QUESTIONS)
def test_without_circles_it_is_what_the_rules_say(
    graph: list[list[int]], questions: list[tuple[int, int]]
) -> None:
    forward = [[one for one in to if one > key] for key, to in enumerate(graph)]
    walk = Walk(forward)
    assert [walk.of(*one) for one in questions] == [plainly(forward, *one) for one in questions]


def test_a_circle_is_found_once() -> None:
    walk = Walk([[1], [2], [0], [0], [], [], []])
    assert walk.of(3, 8) == {0, 1, 2, 3}
    found = walk.found
    assert walk.of(3, 9) == {0, 1, 2, 3}
    assert walk.found == found


def test_a_set_for_which_the_steps_ran_out_is_found_again_with_more() -> None:
    walk = Walk([[1], [2], [3], [], [], [], []])
    assert walk.of(0, 2) == {0, 1, -2}
    assert walk.of(0, 5) == {0, 1, 2, 3}
    found = walk.found
    assert walk.of(0, 2) == {0, 1, -2}
    assert walk.found == found


def test_keys_that_lead_to_each_other_are_found_once_for_each_way_to_get_there() -> None:
    """NM512/dreamerv3-torch, tools.py: the parameters of ten functions took a minute and more."""
    ring = [[(key + to) % 12 for to in (1, 2, 3)] for key in range(12)]
    walk = Walk(ring)
    for key in range(12):
        assert walk.of(key, 12) == {*range(12), -2}
    assert walk.found < 10_000  # 27,840 where one of these was kept
