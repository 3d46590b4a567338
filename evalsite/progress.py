"""Waiting for submissions, with a progress line."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from django.db.models import Count

from evalsite.console import Console
from grading import queue_control
from grading.models import Sample, Submission

POLL_S, LONGEST_POLL_S = 0.5, 5.0
# A look at a large submission is not free: it gets no more than this share of the time.
LOOK_SHARE = 0.05


def wait(submissions: Sequence[Submission], console: Console, tick: Callable[[], None]) -> None:
    """Return when no submission is being graded any more; ``tick`` is called at every look.

    The database is asked rather than told: the verdicts come from other processes.
    """
    began = time.monotonic()
    while True:
        looked = time.monotonic()
        tick()
        done, total = _counts(submissions)
        line = f"Graded {done:,} of {total:,} samples"
        if not _open(submissions):
            console.progress_done(f"{line} in {time.monotonic() - began:.0f} s.")
            return
        stopped = queue_control.stopped()
        console.progress(f"{line}, {stopped.mode}: {stopped.reason}" if stopped else f"{line} ...")
        cost_s = time.monotonic() - looked
        time.sleep(min(max(POLL_S, cost_s / LOOK_SHARE), LONGEST_POLL_S))


def _open(submissions: Sequence[Submission]) -> bool:
    mine = Submission.objects.filter(pk__in=[submission.pk for submission in submissions])
    return mine.filter(state=Submission.State.GRADING).exists()


def _counts(submissions: Sequence[Submission]) -> tuple[int, int]:
    """Samples that wait no longer, and all."""
    samples = Sample.objects.filter(submission__in=submissions).order_by()
    states = dict(samples.values_list("state").annotate(count=Count("pk")))
    total = sum(states.values())
    return total - states.get(Sample.State.QUEUED, 0), total
