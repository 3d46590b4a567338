"""A model's score over time as SVG text: steps, and a dot with its interval for each move."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from grading.templatetags.figures import percent_text
from leaderboard.charts import Axis, axis_for
from leaderboard.history import Moment
from leaderboard.plots import Frame, across, dots, plot, up

FRAME = Frame(left=48, right=48, top=10)


def history_chart(moments: Sequence[Moment], address: Callable[[int], str]) -> SafeString:
    """``moments`` with a value, at least one, oldest first; ``address``: of a snapshot."""
    axis = axis_for(one.interval for one in moments)
    span = (moments[-1].at - moments[0].at).total_seconds()

    def x(one: Moment) -> float:
        passed = (one.at - moments[0].at).total_seconds()
        return FRAME.x(passed / span if span else 0.5)

    def y(value: float) -> float:
        return FRAME.y((value - axis.low) / (axis.high - axis.low))

    whiskers = format_html_join(
        "",
        '<line class="whisk" x1="{0}" x2="{0}" y1="{1}" y2="{2}"/>',
        [
            (x(one), y(one.interval.low), y(one.interval.high))
            for one in moments
            if one.interval is not None
        ],
    )
    marks = [(x(one), y(one.value or 0), _said(one), address(one.snapshot)) for one in moments]
    first, last = moments[0], moments[-1]
    return plot(
        FRAME,
        "history",
        "pass@1 from snapshot to snapshot",
        f"pass@1 in percent: {percent_text(first.value or 0)} in snapshot {first.snapshot}, "
        f"{percent_text(last.value or 0)} in snapshot {last.snapshot}; lines are 95 % intervals",
        up(FRAME, _ticks(axis))
        + format_html('<path class="linef" d="{}"/>', _steps([mark[:2] for mark in marks]))
        + whiskers
        + dots("dot", 4.5, marks)
        + across(FRAME, _dates(first.at, last.at), "date of the snapshot"),
    )


def _ticks(axis: Axis) -> list[tuple[float, object]]:
    span = axis.high - axis.low
    return [((tick - axis.low) / span, round(tick * 100)) for tick in axis.ticks()]


def _steps(places: Sequence[tuple[float, float]]) -> str:
    """A score holds until the next snapshot."""
    return f"M{places[0][0]} {places[0][1]}" + "".join(f"H{x}V{y}" for x, y in places[1:])


def _dates(first: datetime, last: datetime) -> list[tuple[float, object]]:
    if first == last:
        return [(0.5, _date(first))]
    return [(0.0, _date(first)), (1.0, _date(last))]


def _date(at: datetime) -> str:
    utc = at.astimezone(UTC)
    return f"{utc.day} {utc:%b %Y}"


def _said(one: Moment) -> str:
    said = f"Snapshot {one.snapshot}, {_date(one.at)}: {percent_text(one.value or 0)} %"
    if one.interval is not None:
        low, high = percent_text(one.interval.low), percent_text(one.interval.high)
        said += f", 95 % interval {low} to {high}"
    return f"{said}; {' '.join(one.reasons) or f'submission {one.submission}'}"
