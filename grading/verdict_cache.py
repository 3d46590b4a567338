"""Verdicts that are known already: the same program on the same task under the same conditions.

Of several samples for a task a quarter to a half are the same program: the same code on the same
lines, whatever its comments say. A verdict is reused within one benchmark version only, and only
while all runs of that program agree: one that comes out now so, now so, is run every time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict

from django.conf import settings

from grading.engine.code_key import code_key
from grading.engine.outcome import GRADER_VERSION
from grading.engine.sandbox import Sandbox
from grading.engine.task import Task
from grading.models import Attempt

# The host may have ended it for its own reasons, such as a lack of memory.
HOSTS_DOING = "killed by SIGKILL"


def run_key(task_pk: int, task: Task, program: str, sandbox: Sandbox) -> str:
    """SHA-256, in hex, of all that decides a verdict but chance.

    The task's row stands for its benchmark version, ``task`` for the targets and policies in
    force, ``sandbox`` for environment, tier, hardening and memory.
    """
    decisive = [
        task_pk,
        asdict(task),
        code_key(program, sandbox.python_version),
        GRADER_VERSION,
        sandbox.python_version,
        sandbox.environment.stamp,
        sandbox.variables,
        sandbox.tier,
        sandbox.hardening,
        sandbox.address_space_limit,
    ]
    return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode("ascii")).hexdigest()


def find(keys: Iterable[str]) -> dict[str, Attempt]:
    """The newest run, with its text, under each key that has one; one query.

    A key whose runs disagree has none.
    """
    if not settings.VERDICT_CACHE:
        return {}
    runs = Attempt.objects.filter(run_key__in=set(keys), repeats=None).exclude(detail=HOSTS_DOING)
    found: dict[str, Attempt] = {}
    disagreeing: set[str] = set()
    for run in runs.select_related("text").order_by("pk"):
        before = found.setdefault(run.run_key, run)
        if (before.outcome, before.passed) != (run.outcome, run.passed):
            disagreeing.add(run.run_key)
        found[run.run_key] = run
    return {key: run for key, run in found.items() if key not in disagreeing}
