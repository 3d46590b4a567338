"""Grading one stored sample in this process's sandbox."""

from __future__ import annotations

import mmap
import os
import struct
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

from django.conf import settings

from evalsite import env
from grading import verdict_cache
from grading.benchmarks import engine_task
from grading.engine import canary
from grading.engine.child import conceal
from grading.engine.grade import grade_program
from grading.engine.isolation.findings import UNSAFE_FIX
from grading.engine.limits import affordable_address_space
from grading.engine.outcome import Verdict
from grading.engine.program import Program, build_program
from grading.engine.sandbox import Sandbox
from grading.engine.task import Format, Generation, Task
from grading.models import Sample
from grading.models import Task as TaskRow

CANARY_S = 10.0
# Monotonic time of the last check that went well, in memory that a worker shares with its horses.
_checked = mmap.mmap(-1, 8)


@cache
def sandbox() -> Sandbox:
    """The sandbox of this process, probed on the first call. Raises PlatformError.

    A worker calls it once before its first fork, so that no job has to probe again, and before
    it reads a target: from here on no program can look into this process.
    """
    conceal()
    workers = env.integer("EVALSITE_WORKERS", os.cpu_count() or 1, minimum=1)
    found = Sandbox("host", address_space_limit=affordable_address_space(workers))
    found.ensure()
    return found


def refusal() -> str:
    """Why programs of others are not taken here, with the fix; empty where they are.

    A site that people off this host can reach has to keep their programs from its files. Where
    the workers run elsewhere, each refuses to start by this rule, and so does this process.
    Raises PlatformError where nothing can be run at all.
    """
    if not settings.FOR_OTHERS or settings.ALLOW_UNSAFE or sandbox().safe_for_strangers:
        return ""
    return (
        f"This site takes no uploads: others can reach it, and the sandbox tier {sandbox().tier} "
        f"is too weak here for their programs. {UNSAFE_FIX}"
    )


def check() -> None:
    """Run the canaries, unless this worker did so within ``CANARY_S`` seconds.

    Raises PlatformError when the host does not tell a right program from a wrong one.
    """
    now = time.monotonic()
    (last,) = struct.unpack("d", _checked[:])
    if not last or now - last > CANARY_S:
        canary.check(sandbox())
        _checked[:] = struct.pack("d", now)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A sample's program, ready to run; ``key`` as in :mod:`grading.verdict_cache`."""

    task: Task
    program: Program
    key: str


def prepare(sample_ids: Iterable[int]) -> dict[int, Prepared]:
    """Read samples and build their programs, in the order of the ids; one query."""
    ids = list(sample_ids)
    samples = Sample.objects.select_related("generation", "task__version__benchmark").in_bulk(ids)
    return {pk: prepared(samples[pk], samples[pk].task) for pk in ids}


def prepared(sample: Sample, row: TaskRow) -> Prepared:
    """A sample's program as it runs against a task: its own, or that of another version."""
    task = engine_task(row)
    stored = sample.generation
    program = build_program(task, Generation(stored.text, Format(stored.format)))
    key = verdict_cache.run_key(row.pk, task, program.text, sandbox())
    return Prepared(task, program, key)


def run(prepared: Prepared, tick: Callable[[], None]) -> Verdict:
    """Run a program; ``tick`` is called about every second meanwhile. Raises PlatformError."""
    return grade_program(prepared.task, prepared.program, sandbox(), tick=tick)
