"""Two models of one board, task by task: the tests and counts behind the compare page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.http import Http404

from grading.engine.outcome import Outcome
from grading.engine.passk import Counts
from grading.models import BenchmarkVersion, Sample, TaskScore
from grading.permissions import Viewer, submission_or_404
from leaderboard.cards import TaskLine, task_lines_of
from leaderboard.discordance import TwoByTwo, sign_flip_p, two_by_two
from leaderboard.queries import Board, board
from leaderboard.ranking import LEAST_TASKS
from leaderboard.rows import Row, rows_of, with_integrity
from leaderboard.separation import Separation, separation
from leaderboard.statistics import Paired, paired

ANYBODY = AnonymousUser()
OUTCOMES = tuple(outcome.value for outcome in Outcome)
SHOWN = ("different", "all", "both", "only_a", "only_b", "neither")


@dataclass(frozen=True, slots=True)
class TaskPair:
    """A task that both have graded samples for."""

    a: TaskLine
    b: TaskLine

    @property
    def difference(self) -> Fraction:
        """Of the shares of samples that pass, a minus b."""
        return Fraction(self.a.c, self.a.n) - Fraction(self.b.c, self.b.n)

    @property
    def solved(self) -> tuple[bool, bool]:
        """Whether more than half of the samples pass, by a and by b."""
        return 2 * self.a.c > self.a.n, 2 * self.b.c > self.b.n

    @property
    def outcomes(self) -> tuple[str, str]:
        """The most frequent of a and of b; of equally frequent ones the first in fixed order."""
        return _usual(self.a), _usual(self.b)


@dataclass(frozen=True, slots=True)
class Setting:
    """What both runs were made with; empty text where a run does not say."""

    name: str
    a: str
    b: str

    @property
    def differs(self) -> bool:
        return self.a != self.b


@dataclass(frozen=True, slots=True)
class Comparison:
    """``paired`` compares pass@1 over ``tasks``, None below `LEAST_TASKS` of them.

    So is ``separation``. ``adjusted_p`` is Holm's among the ``board``'s pairs; None where one of
    the two has no rank.
    ``one_sample``: no task has more than one sample of either, so that McNemar's test holds.
    """

    version: BenchmarkVersion
    board: Board
    a: Row
    b: Row
    tasks: tuple[TaskPair, ...]
    paired: Paired | None
    flips_p: float | None
    adjusted_p: float | None
    separation: Separation | None
    solved: TwoByTwo
    settings: tuple[Setting, ...]

    @property
    def one_sample(self) -> bool:
        return all(pair.a.n == pair.b.n == 1 for pair in self.tasks)

    @property
    def settings_differing(self) -> int:
        return sum(one.differs for one in self.settings)

    @property
    def a_better(self) -> int:
        return sum(pair.difference > 0 for pair in self.tasks)

    @property
    def b_better(self) -> int:
        return sum(pair.difference < 0 for pair in self.tasks)

    @property
    def equal(self) -> int:
        return len(self.tasks) - self.a_better - self.b_better

    def matrix(self) -> list[list[int]]:
        """Numbers of tasks by most frequent outcome, rows a and columns b in fixed order."""
        seen = [pair.outcomes for pair in self.tasks]
        return [[seen.count((mine, other)) for other in OUTCOMES] for mine in OUTCOMES]


def compare(
    version: BenchmarkVersion, a: str = "", b: str = "", viewer: Viewer = ANYBODY
) -> Comparison | None:
    """Compare two of a version's runs: those that stand for models (slugs), or by their ids.

    Without a name the highest row of the board that is left; Http404 for what is neither on the
    board nor a submission that ``viewer`` may see, None where there are fewer than two.
    """
    shown = board(version)
    sides = sides_of(shown, version, a, b, viewer)
    return _compared(version, shown, *sides) if sides else None


def sides_of(
    shown: Board, version: BenchmarkVersion, a: str, b: str, viewer: Viewer
) -> tuple[Row, Row] | None:
    """The rows that `compare` takes."""
    rows = {row.model_slug: row for row in (*shown.ranked, *shown.unranked)}
    for name in {a, b} - {""} - rows.keys():
        rows[name] = _run(version, name, viewer, shown.all_tasks)
    if len(rows) < 2:
        return None
    first = rows[a or next(slug for slug in rows if slug != b)]
    second = rows[b or next(slug for slug, row in rows.items() if row is not first)]
    return first, second


def _run(version: BenchmarkVersion, public_id: str, viewer: Viewer, tasks: int) -> Row:
    """A submission that is not on the board."""
    submission = submission_or_404(viewer, public_id)
    if submission.version_id != version.pk:
        raise Http404("a submission to another version")
    scores = TaskScore.objects.filter(submission=submission)
    return with_integrity(rows_of([submission], scores, {version.pk: tasks}))[0]


def chosen(pairs: Iterable[TaskPair], show: str, outcomes: tuple[str, str]) -> list[TaskPair]:
    """The tasks to list, largest difference first: `SHOWN`, and only those with ``outcomes``.

    An empty outcome stands for any.
    """
    kept = [
        pair
        for pair in pairs
        if _kept(pair, show)
        and all(want in ("", got) for want, got in zip(outcomes, pair.outcomes, strict=True))
    ]
    return sorted(kept, key=lambda pair: -abs(pair.difference))


def _kept(pair: TaskPair, show: str) -> bool:
    solved = {
        "both": (True, True),
        "only_a": (True, False),
        "only_b": (False, True),
        "neither": (False, False),
    }
    if show == "different":
        return pair.difference != 0 or pair.outcomes[0] != pair.outcomes[1]
    return show == "all" or pair.solved == solved[show]


def _compared(version: BenchmarkVersion, shown: Board, a: Row, b: Row) -> Comparison:
    lines = task_lines_of(version.pk, [a.public_id, b.public_id])
    pairs = [TaskPair(*both) for both in zip(*lines, strict=True) if all(one.n for one in both)]
    test = _paired(pairs) if len(pairs) >= LEAST_TASKS else None
    return Comparison(
        version=version,
        board=shown,
        a=a,
        b=b,
        tasks=tuple(pairs),
        paired=test,
        flips_p=sign_flip_p([pair.difference for pair in pairs]) if test else None,
        adjusted_p=shown.standings.adjusted_p(a.public_id, b.public_id) if test else None,
        separation=separation(test, *_counts(pairs)) if test else None,
        solved=two_by_two(pair.solved for pair in pairs),
        settings=tuple(sorted(_settings(a, b), key=lambda one: not one.differs)),
    )


def _paired(pairs: Sequence[TaskPair]) -> Paired:
    return paired([one.a.c / one.a.n for one in pairs], [one.b.c / one.b.n for one in pairs])


def _counts(pairs: Sequence[TaskPair]) -> tuple[list[Counts], list[Counts]]:
    return [(one.a.n, one.a.c) for one in pairs], [(one.b.n, one.b.c) for one in pairs]


def _usual(line: TaskLine) -> str:
    return max(OUTCOMES, key=lambda outcome: line.outcomes[outcome])


def _settings(a: Row, b: Row) -> list[Setting]:
    """Samples per task, grader and isolation as graded, then what the uploads say."""
    named = sorted({*a.settings, *b.settings} - {"n"})
    graders = _graders(a.public_id, b.public_id)
    return [
        Setting("samples per task", _samples(a), _samples(b)),
        Setting("grader", graders[a.public_id], graders[b.public_id]),
        Setting("isolation", ", ".join(a.integrity.tiers), ", ".join(b.integrity.tiers)),
        *(
            Setting(
                name.replace("_", " "), _text(a.settings.get(name)), _text(b.settings.get(name))
            )
            for name in named
        ),
    ]


def _graders(*public_ids: str) -> dict[str, str]:
    """By submission the versions of the grader that its verdicts are of."""
    graded = Sample.objects.filter(
        submission__public_id__in=public_ids, current_attempt__isnull=False
    )
    read = graded.order_by("current_attempt__grader_version").values_list(
        "submission__public_id", "current_attempt__grader_version"
    )
    found: dict[str, list[str]] = {public_id: [] for public_id in public_ids}
    for public_id, version in read.distinct():
        found[public_id].append(str(version))
    return {public_id: ", ".join(versions) for public_id, versions in found.items()}


def _samples(row: Row) -> str:
    low, high = row.figures.n_min, row.figures.n_max
    return str(low) if low == high else f"{low}–{high}"


def _text(value: Any) -> str:
    return "" if value is None else str(value)
