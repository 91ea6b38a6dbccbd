"""Fits counts at several sizes: constant per call, linear per element, or quadratic.

The result is exact, in rationals, where the counts lie on a line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

# A line is "about" right where no point is further from it than this share of the largest count.
TOLERANCE = Fraction(1, 20)
LARGEST_DENOMINATOR = 8


@dataclass(frozen=True)
class Law:
    """``count = per_call + per_element * n + curvature * n * n``.

    ``exact`` says that every count lies on the curve.
    """

    per_call: Fraction
    per_element: Fraction
    curvature: Fraction = Fraction(0)
    exact: bool = True

    def at(self, n: int) -> int:
        """Return the count that the law gives at size ``n``; never below zero."""
        value = self.per_call + self.per_element * n + self.curvature * n * n
        return max(0, round(value))

    @property
    def kind(self) -> str:
        """ "constant", "linear" or "quadratic", with "about " where it is not exact."""
        name = "quadratic" if self.curvature else "linear" if self.per_element else "constant"
        return name if self.exact else f"about {name}"


def fit(points: Sequence[tuple[int, int]]) -> Law:
    """Return the simplest law that the counts follow. Raises ValueError without any counts."""
    known = sorted(dict(points).items())
    if not known:
        raise ValueError("a law needs at least one count")
    if len(known) == 1 or all(count == known[0][1] for _, count in known):
        return Law(Fraction(known[0][1]), Fraction(0))
    line = _through(known[0], known[-1])
    if all(line.per_call + line.per_element * n == count for n, count in known):
        return line
    least = _least_squares(known)
    if _close(least, known):
        return least
    curve = _parabola(known[-3:])
    # Only growth that accelerates is worth a curve; anything else is noise around a line.
    if curve is not None and curve.curvature > 0 and _plausible(curve):
        exact = all(curve.at(n) == count for n, count in known)
        return Law(curve.per_call, curve.per_element, curve.curvature, exact)
    return least


def _through(first: tuple[int, int], last: tuple[int, int]) -> Law:
    slope = Fraction(last[1] - first[1], last[0] - first[0])
    return Law(first[1] - slope * first[0], slope)


def _least_squares(points: Sequence[tuple[int, int]]) -> Law:
    mean_n = Fraction(sum(n for n, _ in points), len(points))
    mean_count = Fraction(sum(count for _, count in points), len(points))
    spread = sum(((n - mean_n) ** 2 for n, _ in points), Fraction(0))
    shared = ((n - mean_n) * (count - mean_count) for n, count in points)
    slope = sum(shared, Fraction(0)) / spread
    if slope <= 0:  # counts that vary without growing: expect the largest
        return Law(Fraction(max(count for _, count in points)), Fraction(0), exact=False)
    return Law(mean_count - slope * mean_n, slope, exact=False)


def _close(law: Law, points: Sequence[tuple[int, int]]) -> bool:
    allowed = TOLERANCE * max(count for _, count in points)
    return all(abs(law.per_call + law.per_element * n - count) <= allowed for n, count in points)


def _plausible(curve: Law) -> bool:
    """True if a parabola has small fractions, as nested loops give; any three counts lie on one."""
    parts = (curve.per_call, curve.per_element, curve.curvature)
    return all(part.denominator <= LARGEST_DENOMINATOR for part in parts)


def _parabola(points: Sequence[tuple[int, int]]) -> Law | None:
    """Fit a parabola to three points by Newton's divided differences."""
    if len(points) < 3:
        return None
    (a, fa), (b, fb), (c, fc) = points
    first = Fraction(fb - fa, b - a)
    second = (Fraction(fc - fb, c - b) - first) / (c - a)
    return Law(fa - first * a + second * a * b, first - second * (a + b), second)
