"""How figures are written: exact, one decimal in percent, never rounded up to a whole."""

from __future__ import annotations

from datetime import UTC, datetime
from math import ceil

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()

NBSP = "\N{NO-BREAK SPACE}"
DASH = "\N{EN DASH}"


def percent_text(fraction: float) -> str:
    """``0.562`` -> ``56.2``; only 1 prints as 100.0 and only 0 as 0.0."""
    text = f"{fraction * 100:.1f}"
    if text == "100.0" and fraction < 1:
        return ">99.9"
    if text == "0.0" and fraction > 0:
        return "<0.1"
    return text


@register.filter
def percent_figure(fraction: float | None) -> str:
    """Without the unit, for columns that name it in their header."""
    return DASH if fraction is None else percent_text(fraction)


@register.filter
def percent(fraction: float | None) -> str:
    return DASH if fraction is None else f"{percent_text(fraction)}{NBSP}%"


@register.filter
def decimal(value: float | None, places: int = 3) -> str:
    """Fixed places; a fraction below 1 never prints as 1 and one above 0 never as 0."""
    if value is None:
        return DASH
    step = 10**-places
    if 0 < value < step / 2:
        return f"<{step:.{places}f}"
    if value < 1 <= float(f"{value:.{places}f}"):
        return f">{1 - step:.{places}f}"
    return f"{value:.{places}f}"


@register.filter
def count(value: int | None) -> str:
    return DASH if value is None else f"{value:,}"


@register.filter
def seconds(value: float | None) -> str:
    """Wall or CPU seconds; milliseconds below a tenth."""
    if value is None:
        return DASH
    if value < 0.0995:
        return f"{value * 1000:.0f}{NBSP}ms"
    return f"{value:.2f}{NBSP}s"


@register.filter
def limit(value: float | None) -> str:
    """A limit in seconds, unrounded."""
    return DASH if value is None else f"{value:g}{NBSP}s"


@register.filter
def size(value: int | None) -> str:
    """Bytes in steps of 1024."""
    if value is None:
        return DASH
    amount, unit = float(value), "B"
    for bigger in ("KB", "MB", "GB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, bigger
    return f"{amount:.1f}".removesuffix(".0") + f"{NBSP}{unit}"


def duration_text(total_s: float) -> str:
    """``190`` -> ``3 min``; whole units, the largest that fits."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if total_s >= length:
            return f"{int(total_s // length)}{NBSP}{unit}"
    return f"{max(int(total_s), 0)}{NBSP}s"


@register.filter
def duration(total_s: float | None) -> str:
    return DASH if total_s is None else duration_text(total_s)


@register.simple_tag
def age(moment_: datetime | None) -> SafeString | str:
    """``2 s ago``, with the absolute time behind it."""
    if moment_ is None:
        return DASH
    passed = (timezone.now() - moment_).total_seconds()
    said = "just now" if passed < 1 else f"{duration_text(passed)} ago"
    return format_html('<time datetime="{}">{}</time>', _iso(moment_), said)


@register.simple_tag
def moment(value: datetime | None) -> SafeString | str:
    """``21 Nov 2026, 09:14 UTC``."""
    if value is None:
        return DASH
    utc = value.astimezone(UTC)
    said = f"{utc.day} {utc:%b %Y, %H:%M} UTC"
    return format_html('<time datetime="{}">{}</time>', _iso(value), said)


@register.simple_tag
def day(value: datetime) -> SafeString:
    """``21 Nov 2026``, with the moment for machines."""
    utc = value.astimezone(UTC)
    said = f"{utc.day} {utc:%b %Y}"
    return format_html('<time datetime="{}">{}</time>', _iso(value), said)


def _iso(value: datetime) -> str:
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@register.simple_tag
def missing(reason: str) -> SafeString:
    """A value that does not exist: a grey dash, and why in words."""
    return format_html(
        '<span class="na" title="{}"><span aria-hidden="true">{}</span>'
        '<span class="vh">no value: {}</span></span>',
        reason,
        DASH,
        reason,
    )


@register.filter
def rate(value: float | None) -> str:
    """Samples per second: one decimal below ten."""
    if value is None:
        return DASH
    return f"{value:.1f}" if value < 9.95 else f"{value:,.0f}"


@register.simple_tag
def eta(range_s: tuple[float, float]) -> str:
    """``2 to 4 min``: both ends rounded outwards, in the unit of the larger."""
    low, high = range_s
    unit, length = "s", 1
    for bigger, seconds_in in (("min", 60), ("h", 3_600)):
        if high >= seconds_in:
            unit, length = bigger, seconds_in
    start, end = int(low // length), ceil(high / length)
    return f"{start} to {end} {unit}" if 0 < start < end else f"up to {end} {unit}"
