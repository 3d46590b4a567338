"""The functions that jobs in the queue call, with record ids only."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import ExitStack

from evalsite import queueing
from grading import (
    benchmarks,
    chunks,
    environments,
    grader,
    queue_control,
    references,
    verdict_cache,
    verdicts,
)
from grading.engine.outcome import PlatformError
from grading.fields import plain
from grading.models import BenchmarkVersion

RENEW_S = 3.0
# Then a chunk lets others pass: one of endless programs would keep a worker for minutes.
BUDGET_S = 30.0

log = logging.getLogger(__name__)


def grade_chunk(chunk_id: int) -> None:
    """Grade what is still queued in a chunk, writing each verdict at once.

    Samples whose verdict is known from an equal run come first, all together.

    Does nothing when grading is stopped or the chunk is not there to be taken. Ends early, with the
    rest back in the queue, when the worker is asked to stop or ``BUDGET_S`` seconds have passed.
    """
    if queue_control.stopped():
        return
    lease = chunks.take(chunk_id, queueing.worker_name())
    if lease is None:
        return
    environment = environments.of_submission(lease.submission_id)
    with ExitStack() as stack:
        try:
            sandbox = grader.sandbox_of(environment, tick=_renewing(lease))
            stack.enter_context(sandbox.warm())
            grader.check(environment)
        except PlatformError as problem:
            log.error("chunk %s is held: %s", chunk_id, problem)
            chunks.hold(lease, plain(f"Held: {problem}"))
            return
        graded = _grade_queued(lease)
    chunks.finish(lease)
    log.info("%s graded %s samples of chunk %s", lease.worker, graded, chunk_id)


def grade_references(version_id: int) -> None:
    """Grade the reference solutions of a benchmark version that have no verdict yet.

    Does nothing while grading is stopped.
    """
    if queue_control.stopped():
        return
    version = BenchmarkVersion.objects.select_related("environment").get(pk=version_id)
    benchmarks.grade_references(version, grader.sandbox_of(version.environment))
    references.answered(version)


def _grade_queued(lease: chunks.Lease) -> int:
    """How many verdicts were recorded."""
    prepared = grader.prepare(chunks.queued_samples(lease))
    repeated = _repeat_known(lease, prepared)
    graded = len(repeated)
    deadline = time.monotonic() + BUDGET_S
    for sample_id, one in prepared.items():
        if queueing.stopping() or (graded and time.monotonic() > deadline):
            break
        graded += sample_id not in repeated and _grade_sample(lease, sample_id, one)
    return graded


def _repeat_known(lease: chunks.Lease, prepared: dict[int, grader.Prepared]) -> set[int]:
    """Ids of the samples that now have the verdict of an equal run."""
    known = verdict_cache.find(one.key for one in prepared.values())
    repeats = {
        sample_id: verdicts.Repeat(known[one.key], one.program)
        for sample_id, one in prepared.items()
        if one.key in known
    }
    return verdicts.repeat(lease, repeats) if repeats else set()


def _grade_sample(lease: chunks.Lease, sample_id: int, prepared: grader.Prepared) -> bool:
    """Was a verdict recorded?"""
    if not chunks.begin(lease, sample_id):
        return False
    try:
        verdict = grader.run(prepared, _renewing(lease))
    except PlatformError as problem:
        log.error("sample %s: platform failure: %s", sample_id, problem)
        verdicts.record_platform_failure(sample_id, lease.token, str(problem))
        return False
    return verdicts.record(sample_id, lease.token, verdict, lease.worker, prepared.key)


def _renewing(lease: chunks.Lease) -> Callable[[], None]:
    """A function that renews the lease when called, at most every ``RENEW_S`` seconds."""
    last = time.monotonic()

    def tick() -> None:
        nonlocal last
        if time.monotonic() - last >= RENEW_S:
            last = time.monotonic()
            chunks.renew(lease)

    return tick
