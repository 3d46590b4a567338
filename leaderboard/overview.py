"""What the home page shows: every benchmark at a glance, the queue, the newest results."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Min, Sum

from grading.models import Attempt, BenchmarkVersion, Chunk, Sample, Submission, TaskScore
from grading.permissions import Viewer, visible_versions
from leaderboard import snapshots
from leaderboard.editions import Edition
from leaderboard.ranking import Standings
from leaderboard.rows import Row, public_submissions, rows_of, task_counts
from leaderboard.words import Finding, finding

NEWEST = 8
UNDERWAY = "The first results are on their way."


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
    keys = [version.pk for version in versions]
    tasks = task_counts(keys)
    editions = snapshots.newest_of(keys, score=1)
    finished = set(public_submissions().filter(version__in=keys).values_list("version", flat=True))
    return [
        _line(one, tasks.get(one.pk, 0), editions.get(one.pk), one.pk in finished)
        for one in versions
    ]


def _line(
    version: BenchmarkVersion, tasks: int, edition: Edition | None, submitted: bool
) -> BenchmarkLine:
    rows = edition.rows() if edition else []
    said = finding(rows, "pass@1", edition.tests(1) if edition else Standings())
    if not rows and submitted:
        said = Finding(UNDERWAY, top=UNDERWAY)
    placed = tuple(row for row in rows if row.rank is not None)
    return BenchmarkLine(
        title=version.benchmark.title,
        slug=version.benchmark.slug,
        version=version.number,
        published=version.published,
        tasks=tasks,
        ranked=placed,
        unranked=len(rows) - len(placed),
        finding=said,
        last_result=max((row.finished_at for row in rows if row.finished_at), default=None),
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
