"""Outcomes on a page: fixed order, letter, colour class and pattern; never colour alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from grading.engine.outcome import Outcome
from grading.templatetags.figures import percent_text

register = template.Library()


@dataclass(frozen=True, slots=True)
class Mark:
    """``css`` is the suffix of the classes ``oc-*`` and of the pattern ids ``p-*``."""

    letter: str
    css: str


MARKS = {
    Outcome.PASS.value: Mark("P", "pass"),
    Outcome.ASSERTION_FAIL.value: Mark("A", "fail"),
    Outcome.ERROR.value: Mark("E", "error"),
    Outcome.TIMEOUT.value: Mark("T", "time"),
    Outcome.SYNTAX_ERROR.value: Mark("S", "syn"),
}
PLATFORM = Mark("I", "platform")


@register.simple_tag
def outcome(value: str, word: str = "") -> SafeString:
    """Letter tile and word; anything but the five outcomes is the platform's."""
    mark = MARKS.get(value, PLATFORM)
    return format_html(
        '<span class="oc oc-{}"><b aria-hidden="true">{}</b>{}</span>',
        mark.css,
        mark.letter,
        word or value,
    )


@register.simple_tag
def mix(counts: Mapping[str, int], big: bool = False) -> SafeString:
    """Bar of outcome shares; the label says the shares in words."""
    total = sum(counts.get(value, 0) for value in MARKS)
    if not total:
        return mark_safe('<span class="na">–<span class="vh"> no outcome yet</span></span>')
    said = ", ".join(
        f"{value} {percent_text(counts[value] / total)} %" for value in MARKS if counts.get(value)
    )
    # Digits and our own names alone: a page has a bar per row, and escaping is most of its time.
    bars = mark_safe("".join(_bars(counts, total)))
    return format_html(
        '<svg class="mix{}" role="img" aria-label="Outcome mix: {}" data-mark>{}</svg>',
        " big" if big else "",
        said,
        bars,
    )


def _bars(counts: Mapping[str, int], total: int) -> Iterator[str]:
    left = 0.0
    for value, mark in MARKS.items():
        width = 100 * counts.get(value, 0) / total
        if width:
            yield (
                f'<rect x="{left:.2f}%" width="{width:.2f}%" height="100%"'
                f' fill="url(#p-{mark.css})"/>'
            )
        left += width


@register.inclusion_tag("partials/legend.html")
def legend(counts: Mapping[str, int], url: str = "", platform: int = 0) -> dict[str, Any]:
    """Count of each outcome; with ``url`` each links to ``url?outcome=...``."""
    rows = [(value, counts.get(value, 0)) for value in MARKS]
    return {"rows": rows, "url": url, "platform": platform}
