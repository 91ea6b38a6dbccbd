"""The table of calls that wait, held against torch: every distribution is made, asked and counted."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from flake8_torchperf.knowledge import call_waits  # noqa: E402
from flake8_torchperf.knowledge.call_waits import Asked, Way  # noqa: E402
from flake8_torchperf.knowledge.table import load  # noqa: E402
from flake8_torchperf.runtime import DispatchCounter  # noqa: E402

HALF, ONE, THREE = torch.full((3,), 0.5), torch.ones(3), torch.full((3,), 3.0)
EYE = torch.eye(3)
ROW = torch.full((3,), 1 / 3)

# What each distribution is made of, and a value that it can be asked about.
MADE: dict[str, tuple[dict[str, Any], Any]] = {
    "Bernoulli": ({"probs": HALF}, ONE),
    "Beta": ({"concentration1": ONE, "concentration0": ONE}, HALF),
    "Binomial": ({"total_count": 3, "probs": HALF}, ONE),
    "Categorical": ({"probs": ROW}, torch.tensor(1)),
    "Cauchy": ({"loc": HALF, "scale": ONE}, ONE),
    "Chi2": ({"df": THREE}, ONE),
    "ContinuousBernoulli": ({"probs": HALF}, HALF),
    "Dirichlet": ({"concentration": ONE}, ROW),
    "Exponential": ({"rate": ONE}, ONE),
    "FisherSnedecor": ({"df1": THREE, "df2": THREE}, ONE),
    "Gamma": ({"concentration": ONE, "rate": ONE}, ONE),
    "Geometric": ({"probs": HALF}, ONE),
    "Gumbel": ({"loc": HALF, "scale": ONE}, ONE),
    "HalfCauchy": ({"scale": ONE}, ONE),
    "HalfNormal": ({"scale": ONE}, ONE),
    "InverseGamma": ({"concentration": ONE, "rate": ONE}, ONE),
    "Kumaraswamy": ({"concentration1": ONE, "concentration0": ONE}, HALF),
    "LKJCholesky": ({"dim": 3, "concentration": torch.tensor(1.0)}, EYE),
    "Laplace": ({"loc": HALF, "scale": ONE}, ONE),
    "LogNormal": ({"loc": HALF, "scale": ONE}, ONE),
    "LowRankMultivariateNormal": (
        {"loc": HALF, "cov_factor": torch.ones(3, 1), "cov_diag": ONE},
        ONE,
    ),
    "Multinomial": ({"total_count": 3, "probs": ROW}, ONE),
    "MultivariateNormal": ({"loc": HALF, "covariance_matrix": EYE}, ONE),
    "NegativeBinomial": ({"total_count": THREE, "probs": HALF}, ONE),
    "Normal": ({"loc": HALF, "scale": ONE}, ONE),
    "OneHotCategorical": ({"probs": ROW}, torch.tensor([0.0, 1.0, 0.0])),
    "Pareto": ({"scale": ONE, "alpha": ONE}, THREE),
    "Poisson": ({"rate": ONE}, ONE),
    "RelaxedBernoulli": ({"temperature": torch.tensor(1.0), "probs": HALF}, HALF),
    "RelaxedOneHotCategorical": ({"temperature": torch.tensor(1.0), "probs": ROW}, ROW),
    "StudentT": ({"df": THREE}, ONE),
    "Uniform": ({"low": torch.zeros(3), "high": THREE}, ONE),
    "VonMises": ({"loc": HALF, "concentration": ONE}, ONE),
    "Weibull": ({"scale": ONE, "concentration": ONE}, ONE),
    "Wishart": ({"df": torch.tensor(4.0), "covariance_matrix": EYE}, EYE),
}


def waits(call: Callable[[], object]) -> bool:
    """Does a call read a value, as if its tensors stood on a device?"""
    with DispatchCounter("reads", host_as_device=True) as counter:
        call()
    return counter.evidence.totals.host_reads > 0


def foretold(
    ways: tuple[Way, ...], given: Mapping[str, object], own: Mapping[str, object]
) -> bool | None:
    """Does the table say that a call with these arguments waits?

    None where it waits in a kernel, as cholesky does to check its result: only a device shows that.
    """

    def holds(asked: Asked) -> bool:
        arguments = own if asked.own else given
        name = asked.parameter.name
        if name not in arguments:
            return asked.absent
        value = arguments[name]
        tensor = isinstance(value, torch.Tensor)
        return asked.asks in ("given", "tensor") if tensor else asked.holds_for(value)

    met = [way for way in ways if all(map(holds, way.asked))]
    return None if any(way.operation.startswith("linalg.") for way in met) else bool(met)


def ways_of(name: str, method: str) -> tuple[Way, ...]:
    klass = load().klass(f"torch.distributions.{name}")
    assert klass is not None
    return call_waits.load().method((klass.qualified, *klass.bases), method)


# What the table leaves out: the distribution inside has options of its own.
LEFT_OUT = {("OneHotCategorical", False), ("RelaxedBernoulli", False)}


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("checks", [None, True, False])
def test_a_distribution_waits_where_it_is_foretold(name: str, checks: bool | None) -> None:
    arguments, value = MADE[name]
    given = {**arguments, "validate_args": checks}
    cls = getattr(torch.distributions, name)
    made_waits = foretold(ways_of(name, "__init__"), given, {})
    assert made_waits in (waits(lambda: cls(**given)), None)
    made = cls(**given)
    asked_waits = foretold(ways_of(name, "log_prob"), {"value": value}, given)
    seen = waits(lambda: made.log_prob(value))
    assert asked_waits in (seen, None) or (not asked_waits and (name, checks) in LEFT_OUT)


def test_every_distribution_of_the_table_is_tried() -> None:
    here = {
        name
        for name, cls in vars(torch.distributions).items()
        if inspect.isclass(cls) and ways_of_public(name)
    }
    assert here - set(MADE) <= {"GeneralizedPareto", "LogisticNormal"}


def ways_of_public(name: str) -> tuple[Way, ...]:
    klass = load().klass(f"torch.distributions.{name}")
    if klass is None or klass.kind != "distribution":
        return ()
    return call_waits.load().method((klass.qualified,), "__init__")


def test_the_options_of_clipping() -> None:
    weight = torch.nn.Parameter(torch.ones(3))
    weight.grad = torch.ones(3)
    ways = call_waits.load().function("torch.nn.utils.clip_grad_norm_")
    for options in ({}, {"error_if_nonfinite": True}, {"error_if_nonfinite": False}):
        seen = waits(lambda o=options: torch.nn.utils.clip_grad_norm_([weight], 1.0, **o))  # type: ignore[misc]
        assert seen is foretold(ways, options, {})


def test_a_plateau_reads_a_tensor() -> None:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(3))], lr=0.1)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
    lineage = ("torch.optim.lr_scheduler.ReduceLROnPlateau",)
    ways = call_waits.load().method(lineage, "step")
    for loss in (torch.tensor(0.5), 0.5):
        assert waits(lambda x=loss: plateau.step(x)) is foretold(ways, {"metrics": loss}, {})  # type: ignore[misc]
