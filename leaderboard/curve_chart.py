"""The pass@k curve with its band as SVG text."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from grading.templatetags.figures import percent_text
from leaderboard.curves import Point

WIDTH, HEIGHT = 480, 200
LEFT, RIGHT, TOP, BOTTOM = 40, 16, 10, 30
TICKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


def curve_chart(points: Sequence[Point]) -> SafeString:
    """k on an axis of logs; at least two points."""
    last = points[-1].k

    def x(k: int) -> str:
        return f"{LEFT + (WIDTH - LEFT - RIGHT) * log(k) / log(last):.1f}"

    upper = [f"{x(one.k)} {_y(one.interval.high)}" for one in points]
    lower = [f"{x(one.k)} {_y(one.interval.low)}" for one in reversed(points)]
    line = [f"{x(one.k)} {_y(one.value)}" for one in points]
    across = format_html_join(
        "",
        '<text class="tick" x="{}" y="{}" text-anchor="middle">{}</text>',
        [(x(k), HEIGHT - BOTTOM + 14, k) for k in TICKS if k <= last],
    )
    up = format_html_join(
        "",
        '<line class="gl" x1="{0}" x2="{1}" y1="{2}" y2="{2}"/>'
        '<text class="tick" x="{3}" y="{2}" dy="4" text-anchor="end">{4}</text>',
        [(LEFT, WIDTH - RIGHT, _y(i / 4), LEFT - 6, 25 * i) for i in range(5)],
    )
    first, end = points[0], points[-1]
    return format_html(
        '<svg class="plot" viewBox="0 0 {} {}" role="img" aria-label="{}">{}'
        '<path class="bandf" d="M{}z"/><path class="linef" d="M{}"/>{}'
        '<text class="tick" x="{}" y="{}" text-anchor="middle">k, samples drawn</text></svg>',
        WIDTH,
        HEIGHT,
        f"pass@k in percent, from {percent_text(first.value)} at k = {first.k} "
        f"to {percent_text(end.value)} at k = {end.k}, with 95 % band",
        up,
        "L".join([*upper, *lower]),
        "L".join(line),
        across,
        (LEFT + WIDTH - RIGHT) // 2,
        HEIGHT - 2,
    )


def _y(share: float) -> str:
    return f"{HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP):.1f}"
