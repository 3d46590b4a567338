"""Charts as SVG text; positions in percent of their box, colours by class."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from grading.templatetags.figures import percent_text
from leaderboard.ranking import Standing
from leaderboard.statistics import Interval

PAD = 6.0  # percent of the box left free at both ends, so that dots are not cut
LEVELS = 5


@dataclass(frozen=True, slots=True)
class Axis:
    """The shared axis of a column; ``low`` and ``high`` are scores 0..1 on its ticks."""

    low: float = 0.0
    high: float = 1.0

    def x(self, value: float) -> float:
        """Position of a score, in percent of the box."""
        return PAD + (100 - 2 * PAD) * (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        tenths = range(round(self.low * 10), round(self.high * 10) + 1)
        step = 1 if len(tenths) <= 6 else 2
        return [tenth / 10 for tenth in tenths if tenth % step == 0]


def axis_for(intervals: Iterable[Interval | None]) -> Axis:
    """The narrowest axis in whole fifths that holds every interval; none has zero width."""
    known = [interval for interval in intervals if interval]
    if not known:
        return Axis()
    low = math.floor(min(one.low for one in known) * 5) / 5
    high = math.ceil(max(one.high for one in known) * 5) / 5
    return Axis(low, high)


def axis_header(axis: Axis) -> SafeString:
    """Tick labels in percent, for the head of the column."""
    marks = format_html_join(
        "",
        '<text class="tick" x="{0}%" y="78%" text-anchor="middle">{1}</text>'
        '<line class="gl" x1="{0}%" x2="{0}%" y1="88%" y2="100%"/>',
        [(_at(axis.x(tick)), round(tick * 100)) for tick in axis.ticks()],
    )
    return format_html('<svg aria-hidden="true">{}</svg>', marks)


def whisker(
    value: float | None, interval: Interval | None, axis: Axis, hollow: bool = False
) -> SafeString:
    """Dot and 95 % interval of one row; hollow where the run is not ranked."""
    grid = _grid(axis.x(tick) for tick in axis.ticks())
    if value is None or interval is None:
        return format_html('<svg aria-hidden="true">{}</svg>', grid)
    label = "{} %{}, 95 % interval {} to {}".format(
        percent_text(value),
        " on the tasks attempted" if hollow else "",
        percent_text(interval.low),
        percent_text(interval.high),
    )
    return format_html(
        '<svg role="img" aria-label="{0}" data-mark>{1}'
        '<line class="whisk" x1="{2}%" x2="{3}%" y1="50%" y2="50%"/>'
        '<line class="cap" x1="{2}%" x2="{2}%" y1="43%" y2="57%"/>'
        '<line class="cap" x1="{3}%" x2="{3}%" y1="43%" y2="57%"/>'
        '<circle class="dot{4}" cx="{5}%" cy="50%" r="4.5"/></svg>',
        label,
        grid,
        _at(axis.x(interval.low)),
        _at(axis.x(interval.high)),
        " hollow" if hollow else "",
        _at(axis.x(value)),
    )


def standing_text(standing: Standing) -> str:
    return (
        f"better than {standing.better}, worse than {standing.worse},"
        f" not separated from {standing.level}"
    )


def rank_strip(standing: Standing) -> SafeString:
    """The rank range on an axis of all ranks, one step wide each."""
    models = standing.better + standing.worse + standing.level + 1
    return format_html(
        '<svg class="strip" aria-hidden="true" data-mark="Rank {} to {}: {}">'
        '<rect class="bg" width="100%" height="100%"/>'
        '<rect class="rg" x="{}%" width="{}%" height="100%"/></svg>',
        standing.low,
        standing.high,
        standing_text(standing),
        _at(100 * (standing.low - 1) / models),
        _at(100 * (standing.high - standing.low + 1) / models),
    )


def spread(values: Sequence[tuple[float, bool]], names: Sequence[str] = ()) -> SafeString:
    """Every model of a benchmark on one axis from 0 to 100 %; filled if it shares the top.

    ``names`` of the models in the order of ``values``, where they are to be read out.
    """
    if not values:
        return mark_safe('<svg aria-hidden="true"></svg>')
    known = names or [""] * len(values)
    pips = format_html_join(
        "",
        '<circle class="pip{}" cx="{}%" cy="50%" r="{}" data-mark><title>{}{} %</title></circle>',
        [
            (
                " top" if top else "",
                _at(_wide(value)),
                4.5 if top else 3.6,
                f"{name} " if name else "",
                percent_text(value),
            )
            for (value, top), name in sorted(zip(values, known, strict=True))
        ],
    )
    models = "1 model" if len(values) == 1 else f"{len(values)} models"
    low, high = percent_text(min(values)[0]), percent_text(max(values)[0])
    label = f"pass@1 of {models}, best {high} %, lowest {low} %"
    grid = _grid(_wide(i / 4) for i in range(5))
    return format_html('<svg role="img" aria-label="{}">{}{}</svg>', label, grid, pips)


def task_strip(fractions: Sequence[float | None]) -> SafeString:
    """One cell per task in task order, stronger for a higher fraction; missing tasks left open."""
    width = 100 / max(len(fractions), 1)
    cells = format_html_join(
        "",
        '<rect class="h{}" x="{}%" width="{}%" height="100%"/>',
        [
            (level(value), _at(i * width), _at(width))
            for i, value in enumerate(fractions)
            if value is not None
        ],
    )
    full = sum(value == 1 for value in fractions)
    none = sum(value == 0 for value in fractions)
    missing = sum(value is None for value in fractions)
    label = (
        f"Mean fraction of {len(fractions)} tasks: {full} at 1, "
        f"{len(fractions) - full - none - missing} between, {none} at 0, {missing} not graded"
    )
    return format_html('<svg class="tasks" role="img" aria-label="{}">{}</svg>', label, cells)


def level(fraction: float) -> int:
    """0 only for none of it, 5 only for all of it."""
    return LEVELS if fraction == 1 else math.ceil(fraction * (LEVELS - 1))


def _at(percent: float) -> SafeString:
    # Digits alone: escaping them takes a large board's page a tenth longer.
    return mark_safe(f"{percent:.2f}")


def _wide(value: float) -> float:
    return 3 + 94 * value


def _grid(positions: Iterable[float]) -> SafeString:
    return _lines(tuple(positions))


@lru_cache(maxsize=64)
def _lines(positions: tuple[float, ...]) -> SafeString:
    """All rows of a table share them."""
    return format_html_join(
        "",
        '<line class="gl" x1="{0}%" x2="{0}%" y1="0" y2="100%"/>',
        [(_at(x),) for x in positions],
    )
