"""The curve of what is told against what is worth telling, as an SVG picture."""

from __future__ import annotations

from collections.abc import Sequence

from worth_table.evaluation import KEPT, Judged, by_default, threshold, told

WIDTH, HEIGHT = 640, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 20, 60
Point = tuple[float, float]


def picture(judged: Sequence[Judged]) -> str:
    """Return the picture for places of applications that the model has not seen."""
    shown = by_default(judged)
    every = told(judged)[0]
    today = _point(told(shown), every)
    chosen = _point(told(shown, threshold(shown, KEPT)), every)
    parts = [
        *_axes(),
        _line(_curve(judged, every), "#8a8a8a"),
        _line(_curve(shown, every), "#1f6fb2"),
        *_mark(chosen, "#1f6fb2", f"--min-worth of the table: {chosen[1]:.0%}"),
        *_mark(today, "#b2401f", f"default scope without one: {today[1]:.0%}"),
        *_legend((("#1f6fb2", "told by default, by worth"), ("#8a8a8a", "all places, by worth"))),
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif" font-size="13" role="img">\n'
        "<title>Share worth telling of what is told, by the share of all worth telling</title>\n"
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>\n'
        + "".join(f"{part}\n" for part in parts)
        + "</svg>\n"
    )


def _point(counts: tuple[int, int, int], every: int) -> Point:
    return counts[0] / every, counts[0] / sum(counts)


def _curve(judged: Sequence[Judged], every: int) -> list[Point]:
    """Return a point for each worth from which a place of A is told, the highest first."""
    worths = sorted({one.worth for one in judged if one.is_worth}, reverse=True)
    return [_point(told(judged, least), every) for least in worths]


def _at(point: Point) -> Point:
    across, up = point
    return (
        LEFT + across * (WIDTH - LEFT - RIGHT),
        HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM),
    )


def _line(points: Sequence[Point], colour: str) -> str:
    # The share of the first few places says little.
    listed = " ".join("{:.1f},{:.1f}".format(*_at(one)) for one in points if one[0] >= 0.02)
    return f'<polyline points="{listed}" fill="none" stroke="{colour}" stroke-width="2"/>'


def _mark(point: Point, colour: str, text: str) -> tuple[str, str]:
    x, y = _at(point)
    end = "end" if point[0] > 0.5 else "start"
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{colour}"/>',
        f'<text x="{x:.1f}" y="{y - 12:.1f}" text-anchor="{end}" fill="{colour}">{text}</text>',
    )


def _axes() -> list[str]:
    parts = []
    for tenths in range(0, 11, 2):
        share = tenths / 10
        (x, low), (left, y) = _at((share, 0)), _at((0, share))
        right, high = _at((1, 1))
        parts += [
            f'<path d="M{x:.1f} {low:.1f}V{high:.1f}M{left:.1f} {y:.1f}H{right:.1f}" '
            'stroke="#dddddd"/>',
            f'<text x="{x:.1f}" y="{low + 18:.1f}" text-anchor="middle">{share:.0%}</text>',
            f'<text x="{left - 8:.1f}" y="{y + 4:.1f}" text-anchor="end">{share:.0%}</text>',
        ]
    middle = (HEIGHT - BOTTOM + TOP) / 2
    parts += [
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.1f}" y="{HEIGHT - 16}" text-anchor="middle">'
        "share of all that is worth telling</text>",
        f'<text transform="translate(18 {middle:.1f}) rotate(-90)" text-anchor="middle">'
        "worth telling among what is told</text>",
    ]
    return parts


def _legend(rows: Sequence[tuple[str, str]]) -> list[str]:
    parts = []
    for number, (colour, text) in enumerate(rows):
        y = HEIGHT - BOTTOM - 40 + 20 * number
        parts += [
            f'<path d="M{LEFT + 14} {y - 4}h24" stroke="{colour}" stroke-width="2"/>',
            f'<text x="{LEFT + 46}" y="{y}">{text}</text>',
        ]
    return parts
