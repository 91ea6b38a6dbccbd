"""Fitting counts and judging them, without running anything."""

from fractions import Fraction

import pytest

from flake8_torchperf.runtime.confirm.child.search import AssignmentSearch, Dimension
from flake8_torchperf.runtime.confirm.scaling import fit
from flake8_torchperf.runtime.confirm.specs.input_specs import (
    INPUT_SHAPES,
    describe,
    listing,
    tensor,
    value,
)


def test_a_constant():
    law = fit([(16, 3), (64, 3), (256, 3)])
    assert (law.kind, law.per_call, law.per_element, law.at(10**6)) == ("constant", 3, 0, 3)


def test_a_line_is_exact():
    law = fit([(16, 145), (64, 577), (256, 2305)])
    assert (law.kind, law.per_call, law.per_element) == ("linear", 1, 9)
    assert law.at(320_008) == 2_880_073


def test_thirds_stay_rational():
    law = fit([(3, 1), (6, 2), (9, 3)])
    assert law.per_element == Fraction(1, 3)
    assert law.exact


def test_nested_loops_are_quadratic():
    law = fit([(4, 16 + 1), (8, 64 + 1), (16, 256 + 1)])
    assert (law.kind, law.curvature, law.at(100)) == ("quadratic", 1, 10_001)


def test_noise_around_a_line_is_said_to_be_about():
    law = fit([(16, 32), (64, 129), (256, 511)])
    assert law.kind == "about linear"
    assert float(law.per_element) == pytest.approx(2, rel=0.02)


def test_counts_that_vary_without_growing_are_constant():
    law = fit([(16, 9), (64, 3), (256, 5)])
    assert (law.kind, law.at(10**6)) == ("about constant", 9)


def test_no_counts_are_no_law():
    with pytest.raises(ValueError, match="at least one"):
        fit([])


def test_a_search_combines_what_no_single_change_improves():
    options = [tensor(shape) for shape in INPUT_SHAPES]

    def evaluate(assignment):
        done = assignment[0] == assignment[1] == 5
        return (int(done), done, 0, 0)

    search = AssignmentSearch(
        [Dimension("a", options), Dimension("b", options)], evaluate, lambda s: s[1], 5.0
    )
    assert search.run() == (5, 5)


def test_specs_are_told_in_words():
    assert describe(listing(tensor(("n",)), 1)) == "list of 1 x float tensor (n)"
    assert describe(value("mean")) == "'mean'"
