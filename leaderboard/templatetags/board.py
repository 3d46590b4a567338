"""Parts of a leaderboard page."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from django import template
from django.http import QueryDict
from django.template import Context
from django.utils.html import format_html
from django.utils.safestring import SafeString

from grading.templatetags.figures import missing, percent_text
from leaderboard import charts, comparison_charts
from leaderboard.comparison import Comparison
from leaderboard.comparison_words import p_text, signed
from leaderboard.figures import Figures
from leaderboard.ranking import Standing
from leaderboard.rows import Row
from leaderboard.words import range_text, settings_text

register = template.Library()
register.filter("settings_text", settings_text)
register.filter("signed_points", signed)
register.filter("p_text", p_text)


@register.filter
def shade(value: float) -> int:
    """Level 0..5 of a score 0..1 on the scale of one hue."""
    return charts.level(value)


@register.filter
def percent_whole(value: float) -> str:
    """Without a decimal, yet 0 only for none and 100 only for all."""
    return str(min(max(round(100 * value), int(value > 0)), 100 - int(value < 1)))


@register.filter
def signed_decimal(value: float) -> str:
    """A correlation: ``+0.41``, ``−0.07``."""
    return f"{value:+.2f}".replace("-", "−")


@register.simple_tag
def axis_header(axis: charts.Axis) -> SafeString:
    return charts.axis_header(axis)


@register.simple_tag
def whisker(row: Row, axis: charts.Axis) -> SafeString:
    return charts.whisker(row.value, row.figures.interval, axis, hollow=row.rank is None)


@register.simple_tag
def rank_range(standing: Standing) -> SafeString:
    """``1–4`` in the words of the tests behind it, over its strip."""
    return format_html(
        '<b>{}</b><span class="vh">, {}</span>{}',
        range_text(standing),
        charts.standing_text(standing),
        charts.rank_strip(standing),
    )


@register.simple_tag
def difference_chart(found: Comparison) -> SafeString:
    return comparison_charts.difference(found.paired) if found.paired else SafeString()


@register.simple_tag
def difference_bars(found: Comparison) -> SafeString:
    label = (
        f"Difference in pass rate per task: A is higher on {found.a_better} tasks, "
        f"equal on {found.equal}, lower on {found.b_better}"
    )
    differences = [float(pair.difference) for pair in found.tasks]
    return comparison_charts.bars(differences, label, [pair.a.task_id for pair in found.tasks])


@register.simple_tag
def spread(rows: Sequence[Row], sharing: Collection[str]) -> SafeString:
    known = [(row.value, row) for row in rows if row.value is not None]
    return charts.spread(
        [(value, row.public_id in sharing) for value, row in known],
        [row.model for _, row in known],
    )


@register.simple_tag
def task_strip(fractions: Sequence[float | None]) -> SafeString:
    return charts.task_strip(fractions)


@register.simple_tag
def pass_at(figures: Figures, k: int) -> SafeString | str:
    """pass@k in percent, with a dagger where k = n makes every task count 0 or 1."""
    value = figures.pass_at[k]
    if value is None:
        return missing(figures.why_missing(k))
    if figures.n_min == k > 1:
        return format_html("{}<sup>†</sup>", percent_text(value))
    return percent_text(value)


@register.simple_tag
def interval(figures: Figures) -> str:
    """``85.1–92.0``; empty where there is none."""
    found = figures.interval
    return f"{percent_text(found.low)}–{percent_text(found.high)}" if found else ""


@register.filter
def n_range(figures: Figures) -> str:
    """Samples per task: ``10``, or ``1–10`` where tasks differ."""
    if figures.n_min == figures.n_max:
        return str(figures.n_max)
    return f"{figures.n_min}–{figures.n_max}"


@register.inclusion_tag("leaderboard/sort_header.html", takes_context=True)
def sort_header(context: Context, key: str, label: str, css: str = "") -> dict[str, Any]:
    """A column header whose link sorts by ``key``, or turns the order round if it already does."""
    current = context["board"].sort
    query: QueryDict = context["request"].GET.copy()
    query["sort"] = f"-{key}" if current == key else key
    return {
        "url": f"?{query.urlencode()}",
        "label": label,
        "css": css,
        "direction": _direction(key, current),
    }


def _direction(key: str, current: str) -> str:
    """Value of aria-sort: names start from A, everything else from the highest."""
    if current.removeprefix("-") != key:
        return ""
    return "ascending" if (key == "name") == (current == key) else "descending"
