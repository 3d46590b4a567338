"""The frame that plots of one kind share, as SVG text: box, scales, words.

A mark is an element with the attribute ``data-mark``: its text is its ``<title>``, and where
``data-href`` is set, there is more to it at that address. ``chart.js`` walks over the marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString


@dataclass(frozen=True, slots=True)
class Frame:
    """The box in its own units, with room for words at its sides."""

    width: int = 480
    height: int = 200
    left: int = 44
    right: int = 16
    top: int = 14
    bottom: int = 34

    @property
    def base(self) -> int:
        return self.height - self.bottom

    @property
    def inner(self) -> int:
        return self.width - self.left - self.right

    def x(self, share: float) -> float:
        """``share`` 0..1 of the way from left to right."""
        return round(self.left + share * self.inner, 1)

    def y(self, share: float) -> float:
        """``share`` 0..1 of the way from the bottom up."""
        return round(self.base - share * (self.base - self.top), 1)


def plot(frame: Frame, key: str, title: str, desc: str, inside: SafeString) -> SafeString:
    """``title`` names what is drawn, ``desc`` says what it shows; ``key`` is unique on a page."""
    return format_html(
        '<svg class="plot" viewBox="0 0 {w} {h}" role="img" aria-labelledby="{key}-t" '
        'aria-describedby="{key}-d"><title id="{key}-t">{title}</title>'
        '<desc id="{key}-d">{desc}</desc>{inside}</svg>',
        w=frame.width,
        h=frame.height,
        key=key,
        title=title,
        desc=desc,
        inside=inside,
    )


def dots(css: str, radius: float, marks: Iterable[tuple[float, float, str, str]]) -> SafeString:
    """Marks as (x, y, text, address); an empty address leads nowhere."""
    return format_html_join(
        "",
        '<circle class="{}" cx="{}" cy="{}" r="{}" data-mark{}><title>{}</title></circle>',
        [(css, x, y, radius, href(address), text) for x, y, text, address in marks],
    )


def href(address: str) -> SafeString:
    return format_html(' data-href="{}"', address) if address else SafeString()


def across(frame: Frame, ticks: Iterable[tuple[float, object]], name: str) -> SafeString:
    """Words under the base line, at shares of its width; ``name`` below them."""
    below, middle = frame.base + 14, frame.left + frame.inner // 2
    return _texts([(frame.x(share), below, "middle", said) for share, said in ticks]) + _texts(
        [(middle, frame.height - 4, "middle", name)]
    )


def up(frame: Frame, ticks: Sequence[tuple[float, object]]) -> SafeString:
    """Words left of lines across, at shares of the height."""
    lines = format_html_join(
        "",
        '<line class="gl" x1="{0}" x2="{1}" y1="{2}" y2="{2}"/>',
        [(frame.left, frame.width - frame.right, frame.y(share)) for share, _ in ticks],
    )
    return lines + _texts(
        [(frame.left - 6, frame.y(share) + 4, "end", said) for share, said in ticks]
    )


def turned(frame: Frame, name: str) -> SafeString:
    """The name of the axis that goes up, along it."""
    return format_html(
        '<text class="tick" transform="rotate(-90 14 {0})" x="14" y="{0}" '
        'text-anchor="middle">{1}</text>',
        (frame.base + frame.top) // 2,
        name,
    )


def level_line(frame: Frame, share: float) -> SafeString:
    """A line across that stands out."""
    return format_html(
        '<line class="gl zero" x1="{0}" x2="{1}" y1="{2}" y2="{2}"/>',
        frame.left,
        frame.width - frame.right,
        frame.y(share),
    )


def _texts(texts: Iterable[tuple[float, float, str, object]]) -> SafeString:
    return format_html_join(
        "", '<text class="tick" x="{}" y="{}" text-anchor="{}">{}</text>', texts
    )
