"""The heatmap as SVG text: one path per level of colour, however many cells there are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from grading.templatetags.figures import percent_text
from leaderboard.charts import level
from leaderboard.heatmap import Heatmap

WIDTH, RIGHT = 1196, 46
TOP, BARS, ROW, GAP = 42, 30, 20, 2
# Names stand left of the cells, cut in the middle: what tells runs apart may be at either end.
NAME_CHARS, CHAR_WIDTH, LEAST_LEFT = 34, 8.2, 149


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the cells stand, in units of the box."""

    rows: int
    columns: int
    left: int = LEAST_LEFT

    @property
    def cell_width(self) -> float:
        return (WIDTH - self.left - RIGHT) / max(self.columns, 1)

    @property
    def height(self) -> int:
        return TOP + ROW * self.rows + 22

    def x(self, column: int) -> float:
        return self.left + column * self.cell_width

    def y(self, row: int) -> int:
        return TOP + ROW * row


def chart(shown: Heatmap) -> SafeString:
    """Rows are models, columns tasks; above them a bar per task with its mean."""
    layout = Layout(len(shown.rows), len(shown.columns), _left(shown))
    return format_html(
        '<svg viewBox="0 0 {w} {h}" role="img" aria-labelledby="hm-t hm-d" data-x="{x}" '
        'data-y="{y}" data-cell="{cell}" data-row="{row}"><title id="hm-t">{title}</title>'
        '<desc id="hm-d">{desc}</desc>{bars}{paths}{names}{ends}</svg>',
        w=WIDTH,
        h=layout.height,
        x=layout.left,
        y=TOP,
        cell=f"{layout.cell_width:.4f}",
        row=ROW,
        title=f"Pass rates of {layout.rows} models on {layout.columns} tasks",
        desc=_finding(shown),
        bars=_bars(shown, layout),
        paths=_paths(shown.values, layout),
        names=_names(shown, layout),
        ends=_ends(shown, layout),
    )


def _finding(shown: Heatmap) -> str:
    means = [column.mean for column in shown.columns if column.mean is not None]
    easy, hard = sum(mean > 0.95 for mean in means), sum(mean < 0.1 for mean in means)
    return (
        f"{easy} tasks have a mean over 95 % of all models together, {hard} one under 10 %. "
        "The table below holds the same numbers."
    )


def _bars(shown: Heatmap, layout: Layout) -> SafeString:
    width = f"{layout.cell_width * 0.7:.2f}"
    return format_html_join(
        "",
        '<rect class="hardest" x="{}" y="{}" width="{}" height="{}"/>',
        [
            (f"{layout.x(place):.2f}", f"{TOP - 4 - BARS * mean:.1f}", width, f"{BARS * mean:.1f}")
            for place, column in enumerate(shown.columns)
            if (mean := column.mean)
        ],
    )


def _paths(values: Sequence[Sequence[float | None]], layout: Layout) -> SafeString:
    """Runs of cells of one level in a row are one rectangle of that level's path."""
    parts: dict[int, list[str]] = defaultdict(list)
    for row, line in enumerate(values):
        for shade, first, length in _runs(line):
            width = f"{layout.cell_width * length:.2f}"
            start = f"M{layout.x(first):.2f} {layout.y(row)}"
            parts[shade].append(f"{start}h{width}v{ROW - GAP}h-{width}z")
    return format_html_join(
        "",
        '<path class="h{}" d="{}"/>',
        [(shade, mark_safe("".join(parts[shade]))) for shade in sorted(parts)],
    )


def _runs(line: Sequence[float | None]) -> Iterator[tuple[int, int, int]]:
    """Level, first cell and length; cells without a value are left open."""
    place = 0
    for shade, cells in groupby(-1 if value is None else level(value) for value in line):
        length = len(list(cells))
        if shade >= 0:
            yield shade, place, length
        place += length


def _names(shown: Heatmap, layout: Layout) -> SafeString:
    return format_html_join(
        "",
        '<text class="name" x="{}" y="{}" text-anchor="end">{}</text>'
        '<text class="val" x="{}" y="{}" text-anchor="end">{}</text>',
        [
            (
                layout.left - 8,
                layout.y(row) + 13,
                _short(one.model),
                WIDTH - 4,
                layout.y(row) + 13,
                "–" if one.value is None else percent_text(one.value),
            )
            for row, one in enumerate(shown.rows)
        ],
    )


def _ends(shown: Heatmap, layout: Layout) -> SafeString:
    if not shown.columns:
        return SafeString()
    y = layout.height - 8
    return format_html_join(
        "",
        '<text class="tick" x="{}" y="{}" text-anchor="{}">{}</text>',
        [
            (layout.left - 8, TOP - 8, "end", "mean"),
            (WIDTH - 4, TOP - 8, "end", "pass@1"),
            (layout.left, y, "start", shown.columns[0].task_id),
            (WIDTH - RIGHT, y, "end", shown.columns[-1].task_id),
        ],
    )


def _left(shown: Heatmap) -> int:
    longest = max((len(_short(one.model)) for one in shown.rows), default=0)
    return max(LEAST_LEFT, round(CHAR_WIDTH * longest) + 12)


def _short(name: str) -> str:
    if len(name) <= NAME_CHARS:
        return name
    half = (NAME_CHARS - 1) // 2
    return f"{name[: NAME_CHARS - 1 - half]}…{name[-half:]}"
