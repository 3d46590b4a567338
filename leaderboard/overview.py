"""What the home page shows: every benchmark at a glance, the queue, the newest results."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Min, Sum

from grading.models import Attempt, BenchmarkVersion, Chunk, Sample, Submission, TaskScore
from grading.permissions import Viewer, visible_versions
from leaderboard.ranking import Standings
from leaderboard.rows import (
    Row,
    public_submissions,
    ranked,
    representing,
    rows_of,
    task_counts,
)
from leaderboard.standings import standings_of
from leaderboard.words import Finding, finding

NEWEST = 8


@dataclass(frozen=True, slots=True)
class BenchmarkLine:
    """The newest version of a benchmark. ``ranked``: its ranked rows."""

    title: str
    slug: str
    version: int
    published: bool
    tasks: int
    ranked: tuple[Row, ...]
    unranked: int
    finding: Finding
    last_result: datetime | None


@dataclass(frozen=True, slots=True)
class Queue:
    """What is being graded. ``grading`` submissions hold ``waiting`` samples without outcome.

    ``workers`` hold a chunk now; ``oldest`` is when the chunk that waits longest was queued;
    ``tier`` and ``hardening`` are those of the newest attempt.
    """

    grading: int
    samples: int
    waiting: int
    workers: int
    oldest: datetime | None
    tier: str
    hardening: tuple[str, ...]


def benchmark_lines(viewer: Viewer) -> list[BenchmarkLine]:
    """One line per benchmark that ``viewer`` may see, in order of title."""
    newest = {
        version.benchmark_id: version
        for version in visible_versions(viewer).select_related("benchmark").order_by("number")
    }
    versions = sorted(newest.values(), key=lambda version: version.benchmark.title.casefold())
    tasks = task_counts([version.pk for version in versions])
    submissions = public_submissions().filter(version__in=[version.pk for version in versions])
    scores = TaskScore.objects.filter(submission__in=submissions.order_by().values("pk"))
    rows: dict[str, list[Row]] = defaultdict(list)
    for row in rows_of(submissions, scores, tasks):
        rows[row.benchmark_slug].append(row)
    boards = [ranked(representing(rows[one.benchmark.slug])) for one in versions]
    return [
        _line(one, tasks.get(one.pk, 0), shown, tested, rows[one.benchmark.slug])
        for one, shown, tested in zip(versions, boards, standings_of(boards), strict=True)
    ]


def _line(
    version: BenchmarkVersion,
    tasks: int,
    shown: list[Row],
    tested: Standings,
    submissions: list[Row],
) -> BenchmarkLine:
    placed = [row for row in shown if row.rank is not None]
    return BenchmarkLine(
        title=version.benchmark.title,
        slug=version.benchmark.slug,
        version=version.number,
        published=version.published,
        tasks=tasks,
        ranked=tuple(placed),
        unranked=len(shown) - len(placed),
        finding=finding(shown, "pass@1", tested),
        last_result=max((one.finished_at for one in submissions if one.finished_at), default=None),
    )


def newest_results() -> list[Row]:
    """The public submissions that finished last."""
    submissions = list(
        public_submissions()
        .filter(state=Submission.State.DONE, version__published=True)
        .order_by("-finished_at", "-pk")[:NEWEST]
    )
    scores = TaskScore.objects.filter(submission__in=[one.pk for one in submissions])
    tasks = task_counts({one.version_id for one in submissions})
    return rows_of(submissions, scores, tasks)


def queue() -> Queue:
    """Counts only: private submissions are in them, and nothing about them is."""
    grading = Submission.objects.filter(state=Submission.State.GRADING)
    totals = grading.aggregate(n=Count("pk"), samples=Sum("sample_count"))
    chunks = Chunk.objects.filter(submission__in=grading.values("pk"))
    running = chunks.filter(state=Chunk.State.RUNNING)
    queued = chunks.filter(state=Chunk.State.QUEUED)
    latest = Attempt.objects.order_by("-pk").values_list("tier", "hardening").first()
    return Queue(
        grading=totals["n"],
        samples=totals["samples"] or 0,
        waiting=Sample.objects.filter(state=Sample.State.QUEUED).count(),
        workers=running.aggregate(n=Count("worker", distinct=True))["n"],
        oldest=queued.aggregate(at=Min("queued_at"))["at"],
        tier=latest[0] if latest else "",
        hardening=tuple(latest[1]) if latest else (),
    )
