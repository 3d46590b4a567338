"""Auditing tasks by what models did on them: which say little, and which may be wrong.

`audit_due` is a step of the sweep process: it looks at each newest snapshot once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import fsum, sqrt
from statistics import fmean
from typing import Any

from django.db.models import Count, F, FloatField, OuterRef, Q, Subquery, Value
from django.db.models.functions import Coalesce, Greatest

from grading.engine import limits
from grading.engine.outcome import Outcome
from grading.flags import FLAGS
from grading.models import Attempt, BenchmarkVersion, Sample, Submission, Task, TaskFlag
from leaderboard import snapshots
from leaderboard.editions import Edition
from leaderboard.models import Audit, Snapshot

# Fewer models say nothing of how a task orders them.
LEAST_MODELS = 8
SUSPECT_BELOW = -0.1
CLOSE = 0.8
MOST_CLOSE = 0.05


@dataclass(frozen=True, slots=True)
class Finding:
    """One task. Shares are 0..1, None where there is nothing to take them of.

    ``solved_by``: models with a sample that passes; ``mean`` of their pass rates;
    ``discrimination``: correlation of the pass rate with that on all other tasks; ``flake``:
    samples run again whose outcomes differ; ``close``: passing runs that took over `CLOSE` of the
    limit.
    """

    task_id: str
    slug: str
    models: int
    solved_by: float | None
    mean: float | None
    discrimination: float | None
    flake: float | None
    close: float | None
    flags: list[str]


def audit_due() -> str:
    """Audit every newest snapshot that was not yet; which, in words.

    Flags are kept with the tasks as well, where triage finds them.
    """
    mine = Snapshot.objects.filter(version=OuterRef("version")).order_by("-number")
    newest = Snapshot.objects.filter(pk=Subquery(mine.values("pk")[:1]), audit__isnull=True)
    done = []
    for snapshot in newest.select_related("version__benchmark"):
        found = findings(snapshot.version, snapshots.load([snapshot])[0])
        Audit.objects.get_or_create(
            snapshot=snapshot, defaults={"tasks": [asdict(one) for one in found]}
        )
        TaskFlag.objects.replace(snapshot.version, {one.slug: one.flags for one in found})
        done.append(str(snapshot))
    return f"audited the tasks of {', '.join(done)}" if done else ""


def latest(version: BenchmarkVersion) -> list[Finding] | None:
    """Of the newest snapshot that was audited; None where there is none."""
    audits = Audit.objects.filter(snapshot__version=version).order_by("-snapshot__number")
    tasks = audits.values_list("tasks", flat=True).first()
    return None if tasks is None else [Finding(**one) for one in tasks]


def findings(version: BenchmarkVersion, edition: Edition) -> list[Finding]:
    """A finding per task in their order, from the ranked runs of an edition."""
    ranked = [row.public_id for row in edition.rows() if row.rank is not None]
    cells = [list(edition.sheets[public_id]) for public_id in ranked]
    rates = [[cell.c / cell.n for cell in line] for line in cells]
    totals = [fsum(line) for line in rates]
    repeated, close = _flakes(version), _close(version)
    tasks = Task.objects.filter(version=version).order_by("position")
    read = tasks.values_list("pk", "task_id", "slug", "status")
    return [
        _finding(
            (task_id, slug, status == Task.Status.SUSPECT),
            [line[place] for line in rates],
            [total - line[place] for total, line in zip(totals, rates, strict=True)],
            repeated.get(pk),
            close.get(pk),
        )
        for place, (pk, task_id, slug, status) in enumerate(read)
    ]


def _finding(
    task: tuple[str, str, bool],
    rates: Sequence[float],
    rest: Sequence[float],
    flake: float | None,
    close: float | None,
) -> Finding:
    task_id, slug, reference_fails = task
    discrimination = correlation(rates, rest) if len(rates) >= LEAST_MODELS else None
    signs = {
        "reference fails": reference_fails,
        "suspect": discrimination is not None and discrimination < SUSPECT_BELOW,
        "flaky": bool(flake),
        "limit too tight": close is not None and close > MOST_CLOSE,
        "unsolved": len(rates) > 1 and not any(rates),
        "saturated": len(rates) > 1 and min(rates) == 1,
    }
    return Finding(
        task_id=task_id,
        slug=slug,
        models=len(rates),
        solved_by=sum(rate > 0 for rate in rates) / len(rates) if rates else None,
        mean=fmean(rates) if rates else None,
        discrimination=discrimination,
        flake=flake,
        close=close,
        flags=[name for name in FLAGS if signs[name]],
    )


def correlation(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Pearson's; None where either does not vary."""
    middle_a, middle_b = fmean(a), fmean(b)
    da, db = [x - middle_a for x in a], [x - middle_b for x in b]
    spread = sum(x * x for x in da) * sum(x * x for x in db)
    if spread < 1e-18:
        return None
    return sum(x * y for x, y in zip(da, db, strict=True)) / sqrt(spread)


def _flakes(version: BenchmarkVersion) -> Mapping[int, float]:
    """By task: of the public samples that ran again, the share whose outcomes differ.

    Only runs of one grader under the same conditions are compared, not those of a regrade that
    changed them.
    """
    again = Attempt.objects.filter(
        number__gt=1,
        sample__submission__version=version,
        sample__submission__visibility=Submission.Visibility.PUBLIC,
    )
    alike = Attempt.objects.filter(sample__in=again.order_by().values("sample")).order_by()
    counted = (
        alike.values("sample_id", "sample__task_id", "grader_version", "run_key")
        .annotate(runs=Count("pk"), kinds=Count("outcome", distinct=True))
        .filter(runs__gt=1)
    )
    found: dict[int, list[bool]] = {}
    for one in counted:
        found.setdefault(one["sample__task_id"], []).append(one["kinds"] > 1)
    return {task: sum(differ) / len(differ) for task, differ in found.items()}


def _close(version: BenchmarkVersion) -> Mapping[int, float]:
    """By task: share of the public passing runs that took over `CLOSE` of the time limit."""
    measured = Coalesce(F("task__measured_timeout_s"), Value(0.0))
    least = Greatest(Value(float(limits.DEFAULT_TIMEOUT_S)), measured)
    limit: Any = Coalesce(F("task__timeout_s"), least, output_field=FloatField())
    passing = Sample.objects.filter(
        submission__version=version,
        submission__visibility=Submission.Visibility.PUBLIC,
        current_attempt__outcome=Outcome.PASS,
    ).annotate(limit=limit * CLOSE)
    counted = passing.order_by().values("task_id")
    counted = counted.annotate(
        runs=Count("pk"), near=Count("pk", filter=Q(current_attempt__wall_s__gt=F("limit")))
    )
    return {row["task_id"]: row["near"] / row["runs"] for row in counted}
