"""The programs two runs wrote for one task: one sample of each, chosen so that they tell most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grading.engine.outcome import Outcome
from grading.models import AttemptText, Sample, Submission, Task
from grading.permissions import Viewer, sees_generations, sees_targets
from grading.queries.targets import TargetLine, target_lines
from leaderboard.comparison import Comparison, TaskPair
from leaderboard.program_diff import Diff, side_by_side

MOST_TARGETS = 3


@dataclass(frozen=True, slots=True)
class Shown:
    """A graded sample and where it stands."""

    submission: str
    index: int
    attempt: int
    outcome: str
    passed: int
    total: int


@dataclass(frozen=True, slots=True)
class Split:
    """A target that holds for one program only; ``detail`` says why it does not for the other."""

    target: TargetLine
    holds_for: str
    detail: str


@dataclass(frozen=True, slots=True)
class ProgramPair:
    """``rule`` says which samples these are. ``hidden``: the sides whose programs are not shown.

    ``diff`` is None where a program is hidden. ``splits``: the first few targets that both were
    asked and one holds; none where the targets are not for this viewer.
    """

    pair: TaskPair
    a: Shown
    b: Shown
    rule: str
    hidden: tuple[str, ...]
    diff: Diff | None
    splits: tuple[Split, ...] = ()


def program_pair(found: Comparison, pair: TaskPair, viewer: Viewer) -> ProgramPair | None:
    """For one task of a comparison, in at most four queries; None without stored samples."""
    ids = found.a.public_id, found.b.public_id
    samples = _samples(ids, found.version.pk, pair.a.slug)
    mine, others = ([one for one in samples if one.submission == public_id] for public_id in ids)
    if not mine or not others:
        return None
    a, b, rule = _chosen(mine, others, pair)
    runs = Submission.objects.in_bulk(ids, field_name="public_id")
    sides = [("A", ids[0]), ("B", ids[1])]
    hidden = tuple(name for name, one in sides if not sees_generations(viewer, runs[one]))
    if hidden:
        return ProgramPair(pair, a, b, rule, hidden, None)
    texts = AttemptText.objects.in_bulk([a.attempt, b.attempt])
    both = [texts.get(one.attempt) for one in (a, b)]
    return ProgramPair(
        pair,
        a,
        b,
        rule,
        hidden,
        side_by_side(_program(both[0]), _program(both[1]), _hits(both[0]), _hits(both[1])),
        _splits(found, pair, both) if sees_targets(viewer, found.version.benchmark) else (),
    )


def _samples(public_ids: Sequence[str], version: int, task_slug: str) -> list[Shown]:
    rows = Sample.objects.filter(
        submission__public_id__in=public_ids,
        task__version=version,
        task__slug=task_slug,
        current_attempt__isnull=False,
    ).order_by("index")
    read = rows.values_list(
        "submission__public_id",
        "index",
        "current_attempt",
        "current_attempt__outcome",
        "current_attempt__passed",
        "current_attempt__total",
    )
    return [Shown(*row) for row in read]


def _chosen(a: list[Shown], b: list[Shown], pair: TaskPair) -> tuple[Shown, Shown, str]:
    if not pair.difference:
        return a[0], b[0], "Both pass equally often: the first sample of each."
    better = "A" if pair.difference > 0 else "B"
    said = (
        f"{better} passes more often: its first sample that passes, the other’s first that fails."
    )
    ahead = pair.difference > 0
    return _first(a, passing=ahead), _first(b, passing=not ahead), said


def _first(samples: list[Shown], passing: bool) -> Shown:
    """The first of all where none is as wanted: scores may be newer than what was read here."""
    wanted = (one for one in samples if (one.outcome == Outcome.PASS) == passing)
    return next(wanted, samples[0])


def _program(text: AttemptText | None) -> str:
    return text.program if text else ""


def _hits(text: AttemptText | None) -> set[int]:
    failure = text.failure if text else None
    return {int(line) for line, _ in failure["frames"]} if failure else set()


def _splits(
    found: Comparison, pair: TaskPair, texts: Sequence[AttemptText | None]
) -> tuple[Split, ...]:
    task = Task.objects.get(version=found.version.pk, slug=pair.a.slug)
    lines = zip(*(target_lines(task, text) for text in texts), strict=True)
    found_ = [
        Split(mine, "A", other.detail or "false")
        if mine.true
        else Split(mine, "B", mine.detail or "false")
        for mine, other in lines
        if None not in (mine.true, other.true) and mine.true != other.true
    ]
    return tuple(found_[:MOST_TARGETS])
