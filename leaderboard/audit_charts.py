"""Charts of the task audit as SVG text."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from leaderboard.audit import Finding

BINS = 10
WIDTH, HEIGHT = 480, 200
LEFT, RIGHT, TOP, BOTTOM = 44, 16, 14, 34


def histogram(found: Sequence[Finding]) -> SafeString:
    """Tasks by the mean pass rate of all models, in tenths."""
    means = [one.mean for one in found if one.mean is not None]
    counts = [0] * BINS
    for mean in means:
        counts[min(int(mean * BINS), BINS - 1)] += 1
    most = max([*counts, 1])
    width = (WIDTH - LEFT - RIGHT) / BINS
    bars = format_html_join(
        "",
        '<rect class="hbar" x="{}" y="{}" width="{}" height="{}"/>'
        '<text class="tick" x="{}" y="{}" text-anchor="middle">{}</text>',
        [
            (
                f"{LEFT + i * width + 2:.1f}",
                f"{_y(count / most):.1f}",
                f"{width - 4:.1f}",
                f"{_y(0) - _y(count / most):.1f}",
                f"{LEFT + (i + 0.5) * width:.1f}",
                f"{max(_y(count / most) - 3, 9):.1f}",
                count or "",
            )
            for i, count in enumerate(counts)
        ],
    )
    easy, hard = counts[-1], counts[0]
    label = f"Tasks by mean pass rate: {hard} of {len(means)} below 10 %, {easy} at 90 % or above"
    return _plot(label, bars, "mean pass rate, percent", "tasks")


def scatter(found: Sequence[Finding]) -> SafeString:
    """Mean pass rate against discrimination; the negative side is shaded."""
    known = [one for one in found if one.discrimination is not None and one.mean is not None]
    dots = format_html_join(
        "",
        '<circle class="sdot{}" cx="{}" cy="{}" r="3"><title>{}</title></circle>',
        [
            (
                " bad" if "suspect" in one.flags else "",
                f"{_x(one.mean or 0):.1f}",
                f"{_y(_unit(one.discrimination or 0)):.1f}",
                one.task_id,
            )
            for one in known
        ],
    )
    middle = _y(_unit(0))
    ground = format_html(
        '<rect class="shade" x="{}" y="{}" width="{}" height="{}"/>'
        '<line class="gl zero" x1="{}" x2="{}" y1="{}" y2="{}"/>',
        LEFT,
        middle,
        WIDTH - LEFT - RIGHT,
        _y(0) - middle,
        LEFT,
        WIDTH - RIGHT,
        middle,
        middle,
    )
    negative = sum((one.discrimination or 0) < 0 for one in known)
    label = (
        f"Discrimination of {len(known)} tasks against their mean pass rate: {negative} negative, "
        "where better models do worse"
    )
    return _plot(label, ground + dots, "mean pass rate, percent", "discrimination, −1 to 1")


def _plot(label: str, inside: SafeString, across: str, up: str) -> SafeString:
    ticks = format_html_join(
        "",
        '<text class="tick" x="{}" y="{}" text-anchor="middle">{}</text>',
        [(f"{_x(i / 4):.1f}", HEIGHT - BOTTOM + 14, 25 * i) for i in range(5)],
    )
    return format_html(
        '<svg class="plot" viewBox="0 0 {w} {h}" role="img" aria-label="{label}">{inside}'
        '<line class="gl zero" x1="{left}" x2="{right}" y1="{base}" y2="{base}"/>{ticks}'
        '<text class="tick" x="{mid}" y="{low}" text-anchor="middle">{across}</text>'
        '<text class="tick" transform="rotate(-90 14 {centre})" x="14" y="{centre}" '
        'text-anchor="middle">{up}</text></svg>',
        w=WIDTH,
        h=HEIGHT,
        label=label,
        inside=inside,
        left=LEFT,
        right=WIDTH - RIGHT,
        base=HEIGHT - BOTTOM,
        ticks=ticks,
        mid=(LEFT + WIDTH - RIGHT) // 2,
        low=HEIGHT - 4,
        across=across,
        centre=(HEIGHT - BOTTOM + TOP) // 2,
        up=up,
    )


def _x(share: float) -> float:
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def _y(share: float) -> float:
    return HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)


def _unit(discrimination: float) -> float:
    return (discrimination + 1) / 2
