"""From a generation to a verdict."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

from grading.engine import session
from grading.engine.denylist import DEFAULT
from grading.engine.limits import DETAIL_BYTES, Limits
from grading.engine.outcome import (
    Failure,
    Label,
    Outcome,
    PlatformError,
    Stream,
    TargetResult,
    Trick,
    Verdict,
)
from grading.engine.program import Program, build_program, prompt_helpers
from grading.engine.run import (
    Captured,
    CellDied,
    JudgeDied,
    Order,
    Overflow,
    Run,
    Timeout,
    Violation,
    WorkFull,
)
from grading.engine.sandbox import Sandbox
from grading.engine.task import Generation, Task
from grading.engine.text import clean

STARVED_SHARE = 0.2
STREAM_CHARS = 4096
NAME_CHARS = 120
FRAMES = 10
MAX_LINE = 10**9


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
    run = _run(task, program, sandbox, limits, tick) if task.targets else Run()
    outcome, detail, failure = _judge_run(task, run, limits)
    return _verdict(task, program, sandbox, limits, run, outcome, detail, failure)


def _run(
    task: Task,
    program: Program,
    sandbox: Sandbox,
    limits: Limits,
    tick: Callable[[], None] | None,
) -> Run:
    names = task.names()
    order = Order(
        code=program.text,
        targets=task.targets,
        setup=task.setup,
        helpers=prompt_helpers(task.prompt, names),
        entry_points=names,
        in_place=task.in_place,
        denied=DEFAULT if task.denylist is None else task.denylist,
    )
    run = session.run(order, sandbox, limits, tick)
    if isinstance(run.ended, JudgeDied):
        # Once may be bad luck; a second time it is the program's doing.
        run = session.run(order, sandbox, limits, tick)
    elif starved(run, limits):
        with sandbox.solo(tick):
            run = session.run(order, sandbox, limits, tick)
    return run


def starved(run: Run, limits: Limits) -> bool:
    """Whether a timeout is the host's load: the cell waited for a core over 20 % of the limit.

    Where the kernel does not count that: it had a core for less than half of the limit.
    """
    if not isinstance(run.ended, Timeout):
        return False
    if run.usage.wait_s is None:
        return run.usage.cpu_s < limits.timeout_s / 2
    return run.usage.wait_s > STARVED_SHARE * limits.timeout_s


def _judge_run(task: Task, run: Run, limits: Limits) -> tuple[Outcome, str, Failure | None]:
    """(outcome, detail, failure) of a run; the tree is drawn in :mod:`outcome`."""
    if not task.targets:
        return Outcome.ERROR, "no targets", None
    if isinstance(run.ended, Timeout):
        detail = f"no verdict within {limits.timeout_s:g} s"
        return Outcome.TIMEOUT, detail, Failure(phase=_phase(run))
    if run.ended is not None:
        return Outcome.ERROR, *_ended(run)
    if run.loaded is None:
        raise PlatformError("the cell answered nothing")
    failure = run.loaded["failure"]
    if failure is not None:
        told = _failure(failure, failure.get("phase", "import"))
        outcome = Outcome.SYNTAX_ERROR if told.phase == "compile" else Outcome.ERROR
        return outcome, _told(failure), told
    wrong = [report for report in run.targets if report["true"] is not True]
    if not wrong and len(run.targets) == len(task.targets):
        return Outcome.PASS, "", None
    return Outcome.ASSERTION_FAIL, *_first_wrong(task, run, wrong)


def _first_wrong(task: Task, run: Run, wrong: list[dict[str, Any]]) -> tuple[str, Failure | None]:
    if not wrong:
        raise PlatformError("the judge did not report every target")
    first = wrong[0]
    detail = f"target {first['index'] + 1} of {len(task.targets)}: {first['detail']}"
    defined = {name for name, _ in run.loaded["names"]} if run.loaded else set()
    missing = [name for name in task.names() if name not in defined]
    return detail, _failure(first["failure"] or {}, "entry" if missing else "target")


def _ended(run: Run) -> tuple[str, Failure]:
    """Detail and failure of a run that the program ended."""
    phase = _phase(run)
    if isinstance(run.ended, Overflow):
        return "output overflow", Failure(phase=phase)
    if isinstance(run.ended, WorkFull):
        return "work directory full", Failure(phase=phase)
    if isinstance(run.ended, Violation):
        return f"broke the protocol: {run.ended}", Failure(phase=phase)
    if isinstance(run.ended, JudgeDied):
        return "judge ended", Failure(phase=phase)
    code = run.returncode
    if code is not None and code < 0:
        name = _signal_name(-code)
        return f"killed by {name}", Failure(phase=phase, signal=name)
    if code is None:
        return "closed its pipes before it was asked everything", Failure(phase=phase)
    return f"exited with status {code} before it was asked everything", Failure(
        phase=phase, exit_status=code
    )


def _phase(run: Run) -> str:
    return "target" if run.loaded and run.loaded["failure"] is None else "import"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _told(failure: dict[str, Any]) -> str:
    """One line for a failure that the cell described."""
    if failure.get("denied"):
        return f"denied: {failure['denied']}"
    frames: Any = failure.get("frames")
    # Python's own message of a syntax error names the line already.
    told_line = failure.get("phase") == "compile" or not _is_frames(frames) or not frames
    line = "" if told_line else f" (line {frames[-1][0]})"
    name, message = failure.get("exception", ""), failure.get("message", "")
    return f"{name}: {message}{line}" if message else f"{name}{line}"


def _failure(told: dict[str, Any], phase: str) -> Failure:
    """A failure from what cell or judge said; nothing of it is trusted to have a form."""
    frames: Any = told.get("frames")
    lines = frames[-FRAMES:] if _is_frames(frames) else []
    return Failure(
        phase=phase if phase in ("compile", "import", "entry", "target") else "import",
        exception=clean(str(told.get("exception", "")), NAME_CHARS),
        message=clean(str(told.get("message", "")), 500),
        frames=[(min(max(line, 0), MAX_LINE), clean(name, 100)) for line, name in lines],
    )


def _is_frames(frames: Any) -> bool:
    return isinstance(frames, list) and all(
        isinstance(frame, list)
        and len(frame) == 2
        and isinstance(frame[0], int)
        and isinstance(frame[1], str)
        for frame in frames
    )


def _verdict(
    task: Task,
    program: Program,
    sandbox: Sandbox,
    limits: Limits,
    run: Run,
    outcome: Outcome,
    detail: str,
    failure: Failure | None,
) -> Verdict:
    targets = _target_results(task, run)
    return Verdict(
        outcome=outcome,
        passed=sum(target.true for target in targets),
        total=len(task.targets),
        targets=targets,
        detail=clean(detail, DETAIL_BYTES // 4),
        failure=failure,
        denied=[clean(name, NAME_CHARS) for name in run.denied[:50]],
        stdout=_stream(run.stdout),
        stderr=_stream(run.stderr),
        wall_s=run.wall_s,
        cpu_s=run.usage.cpu_s,
        peak_bytes=run.usage.peak_bytes,
        starved=starved(run, limits),
        tier=sandbox.tier,
        hardening=list(sandbox.hardening),
        python=sandbox.python_version,
        limits=limits.as_dict(),
        extraction=program.extraction,
        program=program.text,
        tricks=_tricks(run, failure),
    )


def _tricks(run: Run, failure: Failure | None) -> list[Trick]:
    found = {trick for trick in Trick if trick.value in run.tricks}
    found -= {Trick.EARLY_EXIT, Trick.OUT_OF_TURN}
    if isinstance(run.ended, Violation):
        found.add(Trick.OUT_OF_TURN)
    left = isinstance(run.ended, CellDied) and run.returncode == 0
    if left or (failure is not None and failure.exception == "SystemExit"):
        found.add(Trick.EARLY_EXIT)
    return sorted(found)


def _target_results(task: Task, run: Run) -> list[TargetResult]:
    """One result per target, in order; targets that were not reached are not true."""
    reports = {report["index"]: report for report in run.targets}
    results = []
    for index in range(len(task.targets)):
        report = reports.get(index)
        if report is None:
            results.append(TargetResult(index, False, Label.SEALED, "not reached"))
            continue
        results.append(
            TargetResult(
                index,
                report["true"] is True,
                Label(report["label"]),
                clean(str(report["detail"]), 500),
                report["duration_s"],
            )
        )
    return results


def _stream(captured: Captured) -> Stream:
    head = clean(captured.head.decode("utf-8", "replace"), STREAM_CHARS)
    tail = clean(captured.tail.decode("utf-8", "replace"), STREAM_CHARS)
    return Stream(head, tail, captured.size)
