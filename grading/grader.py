"""Grading one stored sample in this process's sandbox."""

from __future__ import annotations

import logging
import mmap
import os
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

from django.conf import settings
from django.db import DatabaseError

from evalsite import env
from grading import canaries, environments, verdict_cache
from grading.benchmarks import engine_task
from grading.engine import canary
from grading.engine.child import conceal
from grading.engine.grade import grade_program
from grading.engine.installer import Say
from grading.engine.isolation.findings import UNSAFE_FIX
from grading.engine.limits import affordable_address_space
from grading.engine.outcome import PlatformError, Verdict
from grading.engine.program import Program, build_program
from grading.engine.sandbox import Sandbox
from grading.engine.task import Format, Generation, Task
from grading.models import Environment, Sample
from grading.models import Task as TaskRow

_sandboxes: dict[int, Sandbox] = {}
# Key of the environment that was last looked for, in memory that a worker shares with its horses.
_NUMBER = struct.Struct("q")
_looked_for = mmap.mmap(-1, _NUMBER.size)

log = logging.getLogger(__name__)


@cache
def sandbox() -> Sandbox:
    """The sandbox of this process, probed on the first call. Raises PlatformError.

    A worker calls it once before its first fork, so that no job has to probe again, and before
    it reads a target: from here on no program can look into this process.
    """
    conceal()
    found = Sandbox("host", address_space_limit=_address_space())
    found.ensure()
    return found


def sandbox_of(
    environment: Environment | None,
    say: Say | None = None,
    tick: Callable[[], None] | None = None,
    force: bool = False,
) -> Sandbox:
    """The sandbox of an environment, one per process; None is the interpreter of this process.

    The environment is built where this host has it not, which may take minutes: ``say`` gets the
    installer's output by lines, ``tick`` is called about once a second, ``force`` builds it anew.
    Raises PlatformError.
    """
    if environment is None:
        return sandbox()
    known = _sandboxes.get(environment.pk)
    if known and not force:
        return known
    conceal()
    found = known or environments.sandbox(environment, _address_space())
    found.prepare(force, say, tick)
    if not known:
        _NUMBER.pack_into(_looked_for, 0, environment.pk)
    return _sandboxes.setdefault(environment.pk, found)


def keep_ready() -> None:
    """Have what the last job had to look for in this process, for those forked from it later.

    For a worker between its jobs: what a job finds out of an environment ends with it. Sandboxes
    whose environment was built anew or removed are forgotten. Never raises.
    """
    for pk, known in list(_sandboxes.items()):
        if known.outdated():
            _sandboxes.pop(pk).environment.release()
    (pk,) = _NUMBER.unpack_from(_looked_for)
    if not pk:
        return
    try:
        environment = Environment.objects.filter(pk=pk).first()
        if environment and environments.on_this_host(environment).built:
            sandbox_of(environment)
    except (PlatformError, DatabaseError) as problem:
        log.warning("environment %s is not kept ready: %s", pk, problem)
    _NUMBER.pack_into(_looked_for, 0, 0)


def _address_space() -> int:
    workers = env.integer("EVALSITE_WORKERS", os.cpu_count() or 1, minimum=1)
    return affordable_address_space(workers)


def refusal() -> str:
    """Why programs of others are not taken here, with the fix; empty where they are.

    A site that people off this host can reach has to keep their programs from its files. Where
    the workers run elsewhere, each refuses to start by this rule, and so does this process.
    Raises PlatformError where nothing can be run at all.
    """
    if not _is_for_strangers() or sandbox().safe_for_strangers:
        return ""
    return f"This site takes no uploads: {_weakness(sandbox())}"


def _is_for_strangers() -> bool:
    return bool(settings.FOR_OTHERS and not settings.ALLOW_UNSAFE)


def _weakness(found: Sandbox) -> str:
    return (
        f"others can reach it, and the sandbox tier {found.tier} is too weak here for their "
        f"programs. {UNSAFE_FIX}"
    )


def check(environment: Environment | None = None) -> None:
    """Have the environment ready and run its canaries, unless this worker did so just now.

    Raises PlatformError when it cannot be built, is too weak for the programs of others, or does
    not tell a right program from a wrong one.
    """
    found = sandbox_of(environment)
    if _is_for_strangers() and not found.safe_for_strangers:
        raise PlatformError(f"This site runs nothing here: {_weakness(found)}")
    key = environment.pk if environment else 0
    if canaries.are_due(key):
        canary.check(found)
        canaries.went_well(key)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A sample's program, ready to run; ``key`` as in :mod:`grading.verdict_cache`."""

    task: Task
    program: Program
    sandbox: Sandbox
    key: str


def prepare(sample_ids: Iterable[int]) -> dict[int, Prepared]:
    """Read samples and build their programs, in the order of the ids; one query.

    Their environments are ready, see :func:`check`.
    """
    ids = list(sample_ids)
    samples = Sample.objects.select_related(
        "generation", "task__version__benchmark", "task__version__environment"
    ).in_bulk(ids)
    return {pk: prepared(samples[pk], samples[pk].task) for pk in ids}


def prepared(sample: Sample, row: TaskRow) -> Prepared:
    """A sample's program as it runs against a task: its own, or that of another version."""
    task = engine_task(row)
    stored = sample.generation
    program = build_program(task, Generation(stored.text, Format(stored.format)))
    where = sandbox_of(row.version.environment)
    key = verdict_cache.run_key(row.pk, task, program.text, where)
    return Prepared(task, program, where, key)


def run(prepared: Prepared, tick: Callable[[], None]) -> Verdict:
    """Run a program; ``tick`` is called about every second meanwhile. Raises PlatformError."""
    return grade_program(prepared.task, prepared.program, prepared.sandbox, tick=tick)
