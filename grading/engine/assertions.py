"""Judging a program by assertions: one run in which a judge asks the cell for values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grading.engine import session
from grading.engine.denylist import DEFAULT
from grading.engine.judged import (
    MESSAGE_CHARS,
    Judged,
    failure_of,
    not_reached,
    signal_name,
    starved,
    told,
)
from grading.engine.limits import Limits
from grading.engine.outcome import Failure, Label, Outcome, PlatformError, TargetResult, Trick
from grading.engine.program import prompt_helpers
from grading.engine.run import (
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
from grading.engine.task import Task
from grading.engine.text import clean


def judge(
    task: Task,
    program: str,
    sandbox: Sandbox,
    limits: Limits,
    tick: Callable[[], None] | None = None,
) -> Judged:
    """Run ``program`` and evaluate the task's assertions. Raises PlatformError."""
    run = _run(task, program, sandbox, limits, tick)
    outcome, detail, failure = _outcome(task, run, limits)
    return Judged(
        outcome=outcome,
        detail=detail,
        failure=failure,
        targets=_target_results(task, run),
        denied=run.denied,
        tricks=_tricks(run, failure),
        stdout=run.stdout,
        stderr=run.stderr,
        wall_s=run.wall_s,
        usage=run.usage,
        starved=starved(run, limits),
    )


def _run(
    task: Task,
    program: str,
    sandbox: Sandbox,
    limits: Limits,
    tick: Callable[[], None] | None,
) -> Run:
    names = task.names()
    order = Order(
        code=program,
        targets=task.assertions,
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
            run = session.run(order, sandbox, limits, tick, patient=True)
    return run


def _outcome(task: Task, run: Run, limits: Limits) -> tuple[Outcome, str, Failure | None]:
    """(outcome, detail, failure) of a run; the tree is drawn in :mod:`outcome`."""
    if isinstance(run.ended, Timeout):
        detail = f"no verdict within {limits.timeout_s:g} s"
        return Outcome.TIMEOUT, detail, Failure(phase=_phase(run))
    if run.ended is not None:
        return Outcome.ERROR, *_ended(run)
    if run.loaded is None:
        raise PlatformError("the cell answered nothing")
    failure = run.loaded["failure"]
    if failure is not None:
        cause = failure_of(failure, failure.get("phase", "import"))
        outcome = Outcome.SYNTAX_ERROR if cause.phase == "compile" else Outcome.ERROR
        return outcome, told(failure), cause
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
    return detail, failure_of(first["failure"] or {}, "entry" if missing else "target")


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
        name = signal_name(-code)
        return f"killed by {name}", Failure(phase=phase, signal=name)
    if code is None:
        return "closed its pipes before it was asked everything", Failure(phase=phase)
    return f"exited with status {code} before it was asked everything", Failure(
        phase=phase, exit_status=code
    )


def _phase(run: Run) -> str:
    return "target" if run.loaded and run.loaded["failure"] is None else "import"


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
            results.append(not_reached(index))
            continue
        results.append(
            TargetResult(
                index,
                report["true"] is True,
                Label(report["label"]),
                clean(str(report["detail"]), MESSAGE_CHARS),
                report["duration_s"],
            )
        )
    return results
