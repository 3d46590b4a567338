"""From a generation to a verdict."""

from __future__ import annotations

from collections.abc import Callable

from grading.engine import assertions, exchanges
from grading.engine.judged import NAME_CHARS, Judged
from grading.engine.limits import DETAIL_BYTES, Limits
from grading.engine.outcome import Outcome, Stream, Verdict
from grading.engine.program import Program, build_program
from grading.engine.run import Captured
from grading.engine.sandbox import Sandbox
from grading.engine.task import Generation, Kind, Task
from grading.engine.text import clean

STREAM_CHARS = 4096
JUDGES = {Kind.ASSERTION: assertions.judge, Kind.STDIO: exchanges.judge}


def grade(
    task: Task,
    generation: Generation,
    sandbox: Sandbox,
    tick: Callable[[], None] | None = None,
) -> Verdict:
    """Grade one generation. ``tick`` is called about once a second while it runs.

    Never raises for what a candidate or a task does; PlatformError when the platform fails.
    """
    return grade_program(task, build_program(task, generation), sandbox, tick)


def grade_program(
    task: Task,
    program: Program,
    sandbox: Sandbox,
    tick: Callable[[], None] | None = None,
) -> Verdict:
    """Grade the program of a generation; otherwise as :func:`grade`."""
    limits = Limits(
        timeout_s=task.timeout_s,
        address_space_bytes=sandbox.address_space_limit,
        allow_processes=task.allow_processes,
    )
    if task.targets:
        judged = JUDGES[task.kind](task, program.text, sandbox, limits, tick)
    else:
        judged = Judged(Outcome.ERROR, "no targets", None)
    return _verdict(task, program, sandbox, limits, judged)


def _verdict(
    task: Task, program: Program, sandbox: Sandbox, limits: Limits, judged: Judged
) -> Verdict:
    return Verdict(
        outcome=judged.outcome,
        passed=sum(target.true for target in judged.targets),
        total=len(task.targets),
        targets=judged.targets,
        detail=clean(judged.detail, DETAIL_BYTES // 4),
        failure=judged.failure,
        denied=[clean(name, NAME_CHARS) for name in judged.denied[:50]],
        stdout=_stream(judged.stdout),
        stderr=_stream(judged.stderr),
        wall_s=judged.wall_s,
        cpu_s=judged.usage.cpu_s,
        peak_bytes=judged.usage.peak_bytes,
        starved=judged.starved,
        tier=sandbox.tier,
        hardening=list(sandbox.hardening),
        python=sandbox.python_version,
        environment=sandbox.environment.stamp,
        limits=limits.as_dict(),
        extraction=program.extraction,
        program=program.text,
        tricks=judged.tricks,
    )


def _stream(captured: Captured) -> Stream:
    head = clean(captured.head.decode("utf-8", "replace"), STREAM_CHARS)
    tail = clean(captured.tail.decode("utf-8", "replace"), STREAM_CHARS)
    return Stream(head, tail, captured.size)
