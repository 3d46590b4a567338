"""The job that makes runs of a regrade. Every run is a run: no verdict is taken over."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import ExitStack

from evalsite import queueing
from grading import environments, grader, queue_control, regrade_runs
from grading.engine.outcome import PlatformError
from grading.models import Regrade

RENEW_S = 3.0

log = logging.getLogger(__name__)


def regrade(regrade_id: int) -> None:
    """Make the next few runs and ring for the rest.

    Does nothing for a regrade that has ended, and while grading is stopped.
    Where the platform cannot grade, no run is charged: the sweep rings again.
    """
    if queue_control.stopped():
        return
    with ExitStack() as stack:
        try:
            for environment in environments.of_regrade(regrade_id):
                grader.check(environment)
                stack.enter_context(grader.sandbox_of(environment).warm())
        except PlatformError as problem:
            log.error("regrade %s is held: %s", regrade_id, problem)
            return
        if not _make_runs(regrade_id):
            return
    if Regrade.objects.filter(pk=regrade_id, state=Regrade.State.RUNNING).exists():
        queueing.enqueue(queueing.REGRADE, regrade_id)


def _make_runs(regrade_id: int) -> bool:
    """Whether there may be more to make."""
    for _ in range(regrade_runs.RUNS_PER_JOB):
        if queueing.stopping():
            break
        claim = regrade_runs.claim(regrade_id, queueing.worker_name())
        if claim is None:
            return False
        _run(claim)
    return True


def _run(claim: regrade_runs.Claim) -> None:
    prepared = grader.prepared(claim.run.sample, claim.run.task)
    try:
        verdict = grader.run(prepared, _renewing(claim))
    except PlatformError as problem:
        log.error("regrade of sample %s: platform failure: %s", claim.run.sample_id, problem)
        regrade_runs.fail(claim, str(problem))
        return
    regrade_runs.record(claim, verdict, prepared.key)


def _renewing(claim: regrade_runs.Claim) -> Callable[[], None]:
    last = time.monotonic()

    def tick() -> None:
        nonlocal last
        if time.monotonic() - last >= RENEW_S:
            last = time.monotonic()
            regrade_runs.renew(claim)

    return tick
