"""Records for leaderboard tests, made directly: what grading would have left behind."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.utils.text import slugify

from grading.models import (
    Attempt,
    Benchmark,
    BenchmarkVersion,
    LanguageModel,
    Sample,
    Submission,
    Task,
    TaskScore,
)

START = datetime(2026, 11, 1, 12, tzinfo=UTC)


def version(tasks: int = 4, slug: str = "tidepool", number: int = 1) -> BenchmarkVersion:
    """A version with ``tasks`` tasks named Tidepool/0, Tidepool/1, ..."""
    benchmark, _ = Benchmark.objects.get_or_create(slug=slug, title=slug.capitalize())
    made = BenchmarkVersion.objects.create(
        benchmark=benchmark, number=number, content_hash=f"{slug}{number}"
    )
    Task.objects.bulk_create(
        Task(
            version=made,
            task_id=f"{benchmark.title}/{i}",
            slug=f"{slug}-{i}",
            position=i,
            prompt="def f(): ...",
            targets=["f() == 1"],
            content_hash=str(i),
        )
        for i in range(tasks)
    )
    return made


def user(name: str = "rosa") -> User:
    return User.objects.get_or_create(username=name)[0]


def submission(
    of: BenchmarkVersion,
    model: str = "Heron 27B",
    scores: Sequence[tuple[int, int] | dict[str, Any] | None] = (),
    *,
    state: str = "done",
    sample_count: int | None = None,
    age_h: float = 1,
    organisation: str = "Fenland",
    synthetic: bool = False,
    **fields: Any,
) -> Submission:
    """A submission with a score per task: ``(n, c)``, the fields of a `TaskScore`, or None.

    Samples that do not pass count as assertion_fail with fraction 0 unless the fields say
    otherwise. ``age_h``: hours before `START` + 1 day at which it was uploaded.
    """
    language_model, _ = LanguageModel.objects.get_or_create(
        name=model,
        defaults={
            "slug": slugify(model, allow_unicode=True),
            "organisation": organisation,
            "synthetic": synthetic,
        },
    )
    rows = [_score(score) for score in scores if score is not None]
    made = Submission.objects.create(
        version=of,
        language_model=language_model,
        uploader=fields.pop("uploader", None) or user(),
        state=state,
        sample_count=sum(row["n"] for row in rows) if sample_count is None else sample_count,
        file_hash="0",
        created_at=START + timedelta(days=1, hours=-age_h),
        finished_at=START + timedelta(days=1, hours=-age_h, minutes=5) if state == "done" else None,
        **fields,
    )
    tasks = [task for task, score in zip(of.tasks.all(), scores, strict=False) if score is not None]
    TaskScore.objects.bulk_create(
        TaskScore(submission=made, task=task, **row) for task, row in zip(tasks, rows, strict=True)
    )
    return made


def score(of: Submission, task: Task | None, result: tuple[int, int]) -> TaskScore:
    """A further task's score."""
    return TaskScore.objects.create(submission=of, task=task, **_score(result))


def solving(solved: int, of: int, first: int = 0) -> list[tuple[int, int]]:
    """One sample per task, passing on ``solved`` of them in a row."""
    return [(1, int(first <= i < first + solved)) for i in range(of)]


def _score(score: tuple[int, int] | dict[str, Any]) -> dict[str, Any]:
    row = score if isinstance(score, dict) else {"n": score[0], "c": score[1]}
    named = sum(row.get(outcome, 0) for outcome in ("c", "syntax_error", "timeout", "error"))
    return {"fraction_sum": float(row["c"]), "assertion_fail": row["n"] - named, **row}


def attempt(sample: Sample, sealed: int, total: int, **fields: Any) -> Attempt:
    """A passing current attempt for ``sample``."""
    facts: dict[str, Any] = {
        "outcome": "pass",
        "wall_s": 0.1,
        "cpu_s": 0.1,
        "peak_bytes": 1,
        "tier": "bwrap",
        "python": "3.11.7",
        "grader_version": 1,
        "worker": "w0-1",
    }
    made = Attempt.objects.create(
        sample=sample,
        number=1,
        passed=total,
        total=total,
        score=1,
        sealed=sealed,
        **(facts | fields),
    )
    Sample.objects.filter(pk=sample.pk).update(current_attempt=made, state=Sample.State.DONE)
    return made
