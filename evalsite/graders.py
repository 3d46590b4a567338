"""Workers for one command: those of a running instance, else own ones that end with it."""

from __future__ import annotations

import contextlib

import redis
from django.conf import settings

from evalsite import instance, queueing
from evalsite.supervisor import Log, Supervisor


class Graders:
    """Call :meth:`ensure` before enqueueing and while waiting; ``stack`` ends what it started."""

    def __init__(self, stack: contextlib.ExitStack, what: str, log: Log) -> None:
        self._stack = stack
        self._what = what
        self._log = log
        self._own: Supervisor | None = None

    def ensure(self) -> None:
        """Start broker, workers and sweep unless somebody's are running.

        A running instance may end while a command waits for it: then the command goes on with
        its own. Raises `instance.CannotStart`, `supervisor.StartFailed`.
        """
        if self._own is not None:
            self._own.check()
            return
        if _outside_workers():
            return
        try:
            self._stack.enter_context(instance.sole(self._what))
        except instance.AlreadyRunning:
            return
        plan = instance.Plan(instance.default_workers())
        self._own = self._stack.enter_context(instance.running(plan, self._log))


def _outside_workers() -> bool:
    """Do workers listen on the outside broker?"""
    try:
        return bool(settings.REDIS_URL) and queueing.worker_count() > 0
    except redis.RedisError as problem:
        raise instance.CannotStart(f"The broker does not answer: {problem}") from None
