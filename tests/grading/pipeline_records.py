"""Small stored submissions, made-up verdicts and a worker for tests of the pipeline."""

from __future__ import annotations

import itertools
import platform
import signal
from collections.abc import Callable
from contextlib import nullcontext
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from django.contrib.auth import get_user_model
from django.utils import timezone

from evalsite import queueing
from grading import chunks
from grading.engine.limits import Limits
from grading.engine.outcome import (
    Extraction,
    Failure,
    Label,
    Outcome,
    Stream,
    TargetResult,
    Verdict,
)
from grading.models import (
    Benchmark,
    BenchmarkVersion,
    Chunk,
    Generation,
    LanguageModel,
    Sample,
    Submission,
    Task,
)

PASSING = "def add(a, b):\n    return a + b\n"
_numbers = itertools.count()


def stored_version(tasks: int) -> BenchmarkVersion:
    """A version with ``tasks`` tasks that each ask for ``add`` by three targets."""
    number = next(_numbers)
    benchmark = Benchmark.objects.create(slug=f"b{number}", title=f"Benchmark {number}")
    version = BenchmarkVersion.objects.create(
        benchmark=benchmark, number=1, content_hash=f"{number:064x}"
    )
    for position in range(tasks):
        Task.objects.create(
            version=version,
            task_id=f"T/{position}",
            slug=f"t-{position}",
            position=position,
            prompt="Write add(a, b).",
            targets=["add(1, 2) == 3", "add(2, 2) == 4", "add(0, 0) == 0"],
            entry_points=["add"],
            content_hash=f"{position:064x}",
        )
    return version


def stored_submission(
    tasks: int = 2, per_task: int = 3, per_chunk: int = 4, text: str = PASSING
) -> Submission:
    """A submission as an upload leaves it, its chunks waiting."""
    version = stored_version(tasks)
    number = next(_numbers)
    user, _ = get_user_model().objects.get_or_create(username="uploader")
    submission = Submission.objects.create(
        version=version,
        language_model=LanguageModel.objects.create(slug=f"m{number}", name=f"Model {number}"),
        uploader=user,
        file_hash=f"{number:064x}",
        sample_count=tasks * per_task,
    )
    places = itertools.product(version.tasks.all(), range(per_task))
    chunk: Chunk | None = None
    for at, (task, index) in enumerate(places):
        if at % per_chunk == 0:
            chunk = Chunk.objects.create(submission=submission, position=at // per_chunk)
        sample = Sample.objects.create(submission=submission, chunk=chunk, task=task, index=index)
        Generation.objects.create(sample=sample, text=text)
    return submission


def first_lease(submission: Submission, worker: str = "w0-1") -> chunks.Lease:
    """The lease on the submission's first chunk, as the job of ``worker`` takes it."""
    chunk = submission.chunks.order_by("position")[0]
    chunks.ring(chunk.pk)
    lease = chunks.take(chunk.pk, worker)
    assert lease is not None
    return lease


def age_chunks() -> None:
    """Let every queued chunk have been queued, and every lease run out, a minute ago."""
    past = timezone.now() - timedelta(minutes=1)
    Chunk.objects.filter(queued_at__isnull=False).update(queued_at=past)
    Chunk.objects.filter(lease_until__isnull=False).update(lease_until=past)


def work(name: str = "w0-1", before_fork: Callable[[], None] | None = None) -> None:
    """Run everything in the queue in forked horses, as `manage.py worker --burst` does."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        queueing.worker(name, before_fork).work(burst=True, logging_level="CRITICAL")
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def unstarted_sandbox() -> Any:
    """What records of a run are made of, for runs that never happen."""
    return SimpleNamespace(
        python_version=platform.python_version(),
        environment=SimpleNamespace(stamp=""),
        variables={},
        tier="bwrap",
        hardening=["seccomp"],
        address_space_limit=None,
        warm=nullcontext,
    )


def verdict(outcome: Outcome = Outcome.PASS, passed: int = 3, **changes: Any) -> Verdict:
    """A verdict over three targets; ``changes`` replace single fields."""
    facts: dict[str, Any] = {
        "outcome": outcome,
        "passed": passed,
        "total": 3,
        "targets": [TargetResult(at, at < passed, Label.SEALED) for at in range(3)],
        "detail": "",
        "failure": None,
        "denied": [],
        "stdout": Stream(),
        "stderr": Stream(),
        "wall_s": 0.1,
        "cpu_s": 0.05,
        "peak_bytes": 10_000_000,
        "starved": False,
        "tier": "bwrap",
        "hardening": [],
        "python": "3.11.7",
        "limits": Limits().as_dict(),
        "extraction": Extraction("whole", None, 0),
        "program": PASSING,
    }
    return Verdict(**(facts | changes))


def failure(exception: str = "ValueError") -> Failure:
    return Failure("target", exception, "no", [(2, "add")])
