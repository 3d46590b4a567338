"""A small picture of a model's score, for pages elsewhere. No style, no script, no font loaded."""

from __future__ import annotations

from django.utils.html import format_html
from django.utils.safestring import SafeString

from grading.templatetags.figures import percent_text
from leaderboard.rows import Row
from leaderboard.words import range_text

CHAR, PAD, HEIGHT = 6.6, 8, 20


def badge(row: Row) -> SafeString:
    """``Tidepool pass@1`` beside ``52.2 % (42.7–61.5), rank 1–2``."""
    left, right = f"{row.benchmark} pass@1", words(row)
    first, second = _width(left), _width(right)
    return format_html(
        '<svg xmlns="http://www.w3.org/2000/svg" width="{w}" height="{h}" role="img" '
        'aria-label="{left}: {right}"><title>{left}: {right}</title>'
        '<rect width="{first}" height="{h}" rx="3" fill="#333"/>'
        '<rect x="{first}" width="{second}" height="{h}" rx="3" fill="#1d4fbf"/>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
        '<text x="{pad}" y="14" textLength="{left_text}">{left}</text>'
        '<text x="{start}" y="14" textLength="{right_text}">{right}</text></g></svg>',
        w=first + second,
        h=HEIGHT,
        left=left,
        right=right,
        first=first,
        second=second,
        pad=PAD,
        start=first + PAD,
        left_text=first - 2 * PAD,
        right_text=second - 2 * PAD,
    )


def words(row: Row) -> str:
    """What the badge says of a row; why it has no rank, where it has none."""
    if row.value is None:
        return row.reason or "no score"
    held = row.figures.interval
    said = f"{percent_text(row.value)} %"
    if held:
        said += f" ({percent_text(held.low)}–{percent_text(held.high)})"
    return f"{said}, rank {range_text(row.standing)}" if row.standing else f"{said}, unranked"


def _width(text: str) -> int:
    return round(len(text) * CHAR) + 2 * PAD
