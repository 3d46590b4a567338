"""Pause, resume, drain: whether workers begin anything, as an operator said last.

The database is the record. The broker holds RQ's own suspension, which workers heed between two
jobs; every sweep sets it anew, so that neither a lost nor a forgotten one lasts. A worker that was
already waiting for a job when it was set asks the record as its job starts, and leaves the chunk as
it was: queued, and not counted as tried.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

import redis
from django.contrib.auth.models import User
from django.db import transaction

from evalsite import broker, queueing
from grading import bells
from grading.fields import plain
from grading.models import QueueChange

Mode = QueueChange.Mode
REASON_CHARS = 300

log = logging.getLogger(__name__)


def stopped() -> QueueChange | None:
    """The change that keeps workers from beginning anything; None while they work. One query."""
    newest = QueueChange.objects.select_related("by").first()
    return None if newest is None or newest.mode == Mode.RUNNING else newest


def change(mode: QueueChange.Mode, by: User, reason: str = "") -> bool:
    """Put ``mode`` in force; False, changing nothing, where it is. Whoever stops says why.

    Raises ValueError for a stop without a reason, and for one that is too long.
    """
    reason = reason.strip()
    if mode != Mode.RUNNING and not reason:
        raise ValueError("Say why: people who wait read it.")
    if len(reason) > REASON_CHARS:
        raise ValueError(f"The reason has more than {REASON_CHARS} characters.")
    with transaction.atomic():
        now = stopped()
        if (now.mode if now else Mode.RUNNING) == mode:
            return False
        QueueChange.objects.create(mode=mode, by=by, reason=plain(reason))
        transaction.on_commit(tell)
    if mode == Mode.RUNNING:
        _ring()
    return True


def as_dict(stopped: QueueChange | None) -> dict[str, Any]:
    """``stopped`` for machines: mode, and since when, by whom and why where it is not running."""
    if stopped is None:
        return {"mode": Mode.RUNNING.value}
    return {
        "mode": stopped.mode,
        "since": stopped.at.isoformat(),
        "by": stopped.by.get_username() if stopped.by else None,
        "reason": stopped.reason,
    }


def tell() -> None:
    """Have the workers heed the record; where the broker is away, the next sweep does it.

    While draining, workers that were there before and hold nothing are asked to end.
    """
    now = stopped()
    try:
        if now is None:
            queueing.resume()
            return
        queueing.suspend()
        if now.mode == Mode.DRAINING:
            queueing.end_idle(now.at)
    except (redis.RedisError, broker.NoBroker) as problem:
        log.warning("workers are not told yet: %s", problem)


def _ring() -> None:
    try:
        bells.ring_missing(timedelta(0))
    except (redis.RedisError, broker.NoBroker) as problem:
        log.warning("the queue is not filled yet: %s", problem)
