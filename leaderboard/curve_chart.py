"""The pass@k curve with its band as SVG text."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

from django.utils.html import format_html
from django.utils.safestring import SafeString

from grading.templatetags.figures import percent_text
from leaderboard.curves import Point
from leaderboard.plots import Frame, across, dots, plot, up

FRAME = Frame(left=40, top=10)
TICKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


def curve_chart(points: Sequence[Point]) -> SafeString:
    """k on an axis of logs; at least two points."""
    first, end = points[0], points[-1]

    def share(k: int) -> float:
        return log(k) / log(end.k)

    def at(k: int, value: float) -> str:
        return f"{FRAME.x(share(k))} {FRAME.y(value)}"

    upper = [at(one.k, one.interval.high) for one in points]
    lower = [at(one.k, one.interval.low) for one in reversed(points)]
    line = [at(one.k, one.value) for one in points]
    marks = [(FRAME.x(share(one.k)), FRAME.y(one.value), _said(one), "") for one in points]
    return plot(
        FRAME,
        "curve",
        "pass@k by number of samples drawn",
        f"pass@k in percent, from {percent_text(first.value)} at k = {first.k} "
        f"to {percent_text(end.value)} at k = {end.k}, with 95 % band",
        up(FRAME, [(i / 4, 25 * i) for i in range(5)])
        + format_html(
            '<path class="bandf" d="M{}z"/><path class="linef" d="M{}"/>',
            "L".join([*upper, *lower]),
            "L".join(line),
        )
        + dots("point", 2.5, marks)
        + across(FRAME, [(share(k), k) for k in TICKS if k <= end.k], "k, samples drawn"),
    )


def _said(one: Point) -> str:
    low, high = percent_text(one.interval.low), percent_text(one.interval.high)
    return f"pass@{one.k} {percent_text(one.value)} %, 95 % interval {low} to {high}"
