"""Two programs side by side: lines that differ are marked, gaps keep equal lines level."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import zip_longest

from django.utils.safestring import SafeString

from grading.hostile import CodeView, Line, code_view, split_lines

# Matching takes time that grows with the square of this.
COMPARED_LINES = 400
GAP = Line(None, SafeString(" "), " void")


@dataclass(frozen=True, slots=True)
class Diff:
    """``a`` and ``b`` have equally many lines; ``changed``: lines of each that differ."""

    a: CodeView
    b: CodeView
    changed: tuple[int, int]

    @property
    def same(self) -> bool:
        return not any(self.changed)


def side_by_side(
    a: str, b: str, hits_a: Collection[int] = (), hits_b: Collection[int] = ()
) -> Diff:
    """Of the first `COMPARED_LINES` lines; ``hits``: line numbers that a failure names."""
    views = _view(a, hits_a), _view(b, hits_b)
    lines = [split_lines(text)[: len(view.lines)] for text, view in zip((a, b), views, strict=True)]
    placed: tuple[list[Line], list[Line]] = [], []
    changed = [0, 0]
    for equal, *spans in _spans(*lines):
        parts = [view.lines[span] for view, span in zip(views, spans, strict=True)]
        for both in zip_longest(*parts):
            for side, line in enumerate(both):
                changed[side] += line is not None and not equal
                placed[side].append(line if equal and line else _marked(line))
    return Diff(
        CodeView(placed[0], views[0].cut),
        CodeView(placed[1], views[1].cut),
        (changed[0], changed[1]),
    )


def _spans(a: list[str], b: list[str]) -> Iterator[tuple[bool, slice, slice]]:
    """Stretches of lines of both, in order, and whether they are equal."""
    for kind, from_a, to_a, from_b, to_b in SequenceMatcher(None, a, b).get_opcodes():
        yield kind == "equal", slice(from_a, to_a), slice(from_b, to_b)


def _marked(line: Line | None) -> Line:
    return replace(line, css=f"{line.css} chg") if line else GAP


def _view(text: str, hits: Collection[int]) -> CodeView:
    whole = code_view(text, python=True, hits=hits)
    left_out = len(whole.lines) - COMPARED_LINES
    if left_out <= 0:
        return whole
    notes = (f"{left_out:,} more lines are not compared", whole.cut)
    return CodeView(whole.lines[:COMPARED_LINES], "; ".join(filter(None, notes)))
