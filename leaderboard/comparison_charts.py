"""Charts of the compare page as SVG text; positions in percent or in units of a fixed box."""

from __future__ import annotations

import math
from collections.abc import Sequence

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from leaderboard.comparison_words import signed
from leaderboard.statistics import Paired

WIDTH, MIDDLE, REACH = 1000, 70, 66
STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)


def difference(found: Paired) -> SafeString:
    """Difference with its 95 % interval on an axis that holds both and zero."""
    low, high = min(found.interval.low, 0.0), max(found.interval.high, 0.0)
    step = next((one for one in STEPS if high - low <= 5 * one), STEPS[-1])
    first, last = math.floor(low / step), math.ceil(high / step)

    def x(value: float) -> str:
        return f"{8 + 84 * (value / step - first) / (last - first):.2f}"

    grid = format_html_join(
        "",
        '<line class="gl{0}" x1="{1}%" x2="{1}%" y1="0" y2="66%"/>'
        '<text class="tick" x="{1}%" y="92%" text-anchor="middle">{2}</text>',
        [("" if i else " zero", x(i * step), _points(i * step)) for i in range(first, last + 1)],
    )
    return format_html(
        '<svg role="img" aria-label="Difference {0} points, 95 % interval {1} to {2}" data-mark>{3}'
        '<line class="whisk" x1="{4}%" x2="{5}%" y1="34%" y2="34%"/>'
        '<line class="cap" x1="{4}%" x2="{4}%" y1="26%" y2="42%"/>'
        '<line class="cap" x1="{5}%" x2="{5}%" y1="26%" y2="42%"/>'
        '<circle class="dot" cx="{6}%" cy="34%" r="5"/></svg>',
        signed(found.difference),
        signed(found.interval.low),
        signed(found.interval.high),
        grid,
        x(found.interval.low),
        x(found.interval.high),
        x(found.difference),
    )


def bars(differences: Sequence[float], label: str, names: Sequence[str] = ()) -> SafeString:
    """One bar per task, sorted, up where a passes more often; ``label`` says it in words.

    ``names``: ids of the tasks in the order of ``differences``.
    """
    known = names or ["a task"] * len(differences)
    named = sorted(zip(differences, known, strict=True), key=lambda one: -one[0])
    width = WIDTH / max(len(differences), 1)
    drawn = format_html_join(
        "",
        '<rect class="ab-{}" x="{}" y="{}" width="{}" height="{}" data-mark>'
        "<title>{}: {} points</title></rect>",
        [
            (
                "a" if value > 0 else "b",
                f"{(i + 0.1) * width:.1f}",
                f"{MIDDLE - REACH * max(value, 0):.1f}",
                f"{0.8 * width:.1f}",
                f"{REACH * abs(value):.1f}",
                task_id,
                _points(value),
            )
            for i, (value, task_id) in enumerate(named)
            if value
        ],
    )
    return format_html(
        '<svg class="diffbars" viewBox="0 0 {0} {1}" preserveAspectRatio="none" role="img" '
        'aria-label="{2}"><line class="gl zero" x1="0" x2="{0}" y1="{3}" y2="{3}" '
        'vector-effect="non-scaling-stroke"/>{4}</svg>',
        WIDTH,
        2 * MIDDLE,
        label,
        MIDDLE,
        drawn,
    )


def _points(value: float) -> str:
    sign = "+" if value > 0 else "−" if value < 0 else ""
    return f"{sign}{abs(value) * 100:.0f}"
