"""Charts of the task audit as SVG text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from grading.templatetags.figures import percent_text
from leaderboard.audit import Finding
from leaderboard.plots import Frame, across, dots, level_line, plot, turned

BINS = 10
FRAME = Frame()
QUARTERS = [(i / 4, 25 * i) for i in range(5)]
ACROSS = "mean pass rate, percent"


def bins(found: Sequence[Finding]) -> list[tuple[str, int]]:
    """Tenths of the mean pass rate of all models, in words, and how many tasks are in each."""
    counts = [0] * BINS
    for one in found:
        if one.mean is not None:
            counts[min(int(one.mean * BINS), BINS - 1)] += 1
    names = [f"{10 * i} to under {10 * i + 10} %" for i in range(BINS - 1)]
    return list(zip([*names, "90 to 100 %"], counts, strict=True))


def histogram(found: Sequence[Finding]) -> SafeString:
    """Tasks by the mean pass rate of all models, in tenths."""
    held = bins(found)
    counts = [count for _, count in held]
    return plot(
        FRAME,
        "difficulty",
        "Tasks by mean pass rate",
        f"Tasks by mean pass rate: {counts[0]} of {sum(counts)} below 10 %, "
        f"{counts[-1]} at 90 % or above",
        _bars(held)
        + level_line(FRAME, 0)
        + across(FRAME, QUARTERS, ACROSS)
        + turned(FRAME, "tasks"),
    )


def _bars(held: Sequence[tuple[str, int]]) -> SafeString:
    most = max(1, *(count for _, count in held))
    width = FRAME.inner / BINS
    return format_html_join(
        "",
        '<rect class="hbar" x="{}" y="{}" width="{}" height="{}" data-mark>'
        "<title>{}: {} task{}</title></rect>"
        '<text class="tick" x="{}" y="{}" text-anchor="middle">{}</text>',
        [
            (
                f"{FRAME.left + i * width + 2:.1f}",
                FRAME.y(count / most),
                f"{width - 4:.1f}",
                f"{FRAME.base - FRAME.y(count / most):.1f}",
                name,
                count,
                "" if count == 1 else "s",
                f"{FRAME.left + (i + 0.5) * width:.1f}",
                max(FRAME.y(count / most) - 3, 9),
                count or "",
            )
            for i, (name, count) in enumerate(held)
        ],
    )


def scatter(
    found: Sequence[Finding], address: Callable[[str], str] = lambda slug: ""
) -> SafeString:
    """Mean pass rate against discrimination; the negative side is shaded.

    ``address``: of the page of the task with that slug.
    """
    known = [one for one in found if one.discrimination is not None and one.mean is not None]
    known.sort(key=lambda one: (one.mean, one.discrimination))
    suspect = [one for one in known if "suspect" in one.flags]
    others = [one for one in known if "suspect" not in one.flags]
    negative = sum((one.discrimination or 0) < 0 for one in known)
    return plot(
        FRAME,
        "discrimination",
        "Discrimination of tasks against their mean pass rate",
        f"Discrimination of {len(known)} tasks against their mean pass rate: {negative} negative, "
        "where better models do worse",
        _shade()
        + dots("sdot", 3, [_mark(one, address) for one in others])
        + dots("sdot bad", 3, [_mark(one, address) for one in suspect])
        + level_line(FRAME, 0)
        + across(FRAME, QUARTERS, ACROSS)
        + turned(FRAME, "discrimination, −1 to 1"),
    )


def _shade() -> SafeString:
    middle = FRAME.y(_unit(0))
    ground = format_html(
        '<rect class="shade" x="{}" y="{}" width="{}" height="{}"/>',
        FRAME.left,
        middle,
        FRAME.inner,
        FRAME.base - middle,
    )
    return ground + level_line(FRAME, _unit(0))


def _mark(one: Finding, address: Callable[[str], str]) -> tuple[float, float, str, str]:
    mean, discrimination = one.mean or 0, one.discrimination or 0
    signed = f"{discrimination:+.2f}".replace("-", "−")
    said = f"{one.task_id}: mean pass rate {percent_text(mean)} %, discrimination {signed}"
    return FRAME.x(mean), FRAME.y(_unit(discrimination)), said, address(one.slug)


def _unit(discrimination: float) -> float:
    return (discrimination + 1) / 2
