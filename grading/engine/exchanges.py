"""Judging a program by what it prints: one run of the whole script for each exchange.

The host compares; there is no judge, and the cell never holds an expected output. The limit holds
for each run. A run that passes the limit, is killed, floods its output or runs out of memory ends
the whole, as does a program that does not compile; every other way to fail makes its target false.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from grading.engine import script_run
from grading.engine.compare import first_difference
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
from grading.engine.outcome import Failure, Label, Outcome, Stream, TargetResult, Trick
from grading.engine.run import Overflow, Timeout, Violation, WorkFull
from grading.engine.sandbox import Sandbox
from grading.engine.script_run import ScriptRun
from grading.engine.task import Exchange, Task
from grading.engine.text import clean
from grading.engine.usage import Usage

PRINTED_CHARS = 1_000

# What ends the whole; the targets after it are not reached.
_FINAL = (Outcome.SYNTAX_ERROR, Outcome.TIMEOUT, Outcome.ERROR)


@dataclass(frozen=True, slots=True)
class _Answer:
    """What one run came to; ``outcome`` is that of a task with this target only."""

    run: ScriptRun
    outcome: Outcome
    detail: str = ""
    failure: Failure = field(default_factory=lambda: Failure(phase="target"))


def judge(
    task: Task,
    program: str,
    sandbox: Sandbox,
    limits: Limits,
    tick: Callable[[], None] | None = None,
) -> Judged:
    """Run ``program`` once for each of the task's exchanges. Raises PlatformError."""
    denied = DEFAULT if task.denylist is None else task.denylist

    def run_once(given: str) -> ScriptRun:
        run = script_run.run(program, given, denied, sandbox, limits, tick)
        if starved(run, limits):
            with sandbox.solo(tick):
                run = script_run.run(program, given, denied, sandbox, limits, tick, patient=True)
        return run

    answers: list[_Answer] = []
    for exchange in task.exchanges:
        answers.append(_answer(run_once(exchange.input), exchange, limits))
        if answers[-1].outcome in _FINAL:
            break
    return _judged(answers, len(task.targets), limits)


def _answer(run: ScriptRun, exchange: Exchange, limits: Limits) -> _Answer:
    if isinstance(run.ended, Timeout):
        return _Answer(run, Outcome.TIMEOUT, f"not finished within {limits.timeout_s:g} s")
    if run.ended is not None or (run.returncode or 0) < 0:
        return _Answer(run, Outcome.ERROR, *_broken(run))
    if run.failure is not None:
        return _raised(run, run.failure)
    if run.returncode:
        failure = Failure(phase="target", exit_status=run.returncode)
        detail = f"exited with status {run.returncode}"
        return _Answer(run, Outcome.ASSERTION_FAIL, detail, failure)
    difference = first_difference(_text(run), exchange.output)
    if difference is not None:
        return _Answer(run, Outcome.ASSERTION_FAIL, str(difference))
    return _Answer(run, Outcome.PASS)


def _broken(run: ScriptRun) -> tuple[str, Failure]:
    if isinstance(run.ended, Overflow):
        return "output overflow", Failure(phase="target")
    if isinstance(run.ended, WorkFull):
        return "work directory full", Failure(phase="target")
    if isinstance(run.ended, Violation):
        return f"broke the protocol: {run.ended}", Failure(phase="target")
    name = signal_name(-(run.returncode or 0))
    return f"killed by {name}", Failure(phase="target", signal=name)


def _raised(run: ScriptRun, failure: dict[str, object]) -> _Answer:
    if failure["phase"] == "compile":
        return _Answer(run, Outcome.SYNTAX_ERROR, told(failure), failure_of(failure, "compile"))
    memory = failure["exception"] == "MemoryError"
    outcome = Outcome.ERROR if memory else Outcome.ASSERTION_FAIL
    return _Answer(run, outcome, told(failure), failure_of(failure, "target"))


def _text(run: ScriptRun) -> str:
    # Bytes that are no UTF-8 equal no expected text.
    return run.output.decode("utf-8", "surrogateescape")


def _judged(answers: list[_Answer], total: int, limits: Limits) -> Judged:
    """The outcome is that of the run that ended the whole, else of the first that failed."""
    wrong = [answer for answer in answers if answer.outcome is not Outcome.PASS]
    final = [answer for answer in wrong if answer.outcome in _FINAL]
    deciding = (final or wrong or answers)[0]
    runs = [answer.run for answer in answers]
    waits = [run.usage.wait_s for run in runs if run.usage.wait_s is not None]
    return Judged(
        outcome=deciding.outcome,
        detail=_detail(deciding, answers.index(deciding), total),
        failure=deciding.failure if wrong else None,
        targets=[
            *(_result(index, answer) for index, answer in enumerate(answers)),
            *map(not_reached, range(len(answers), total)),
        ],
        denied=list(dict.fromkeys(name for run in runs for name in run.denied)),
        tricks=_tricks(runs),
        stdout=deciding.run.stdout,
        stderr=deciding.run.stderr,
        wall_s=sum(run.wall_s for run in runs),
        usage=Usage(
            cpu_s=sum(run.usage.cpu_s for run in runs),
            wait_s=max(waits, default=None),
            peak_bytes=max(run.usage.peak_bytes for run in runs),
        ),
        starved=any(starved(run, limits) for run in runs),
    )


def _detail(answer: _Answer, index: int, total: int) -> str:
    """In the words of any other run; which target it was is said where the others count."""
    if answer.outcome in (Outcome.ASSERTION_FAIL, Outcome.TIMEOUT):
        return f"target {index + 1} of {total}: {answer.detail}"
    return answer.detail


def _result(index: int, answer: _Answer) -> TargetResult:
    output = answer.run.output
    printed = clean(output[: 4 * PRINTED_CHARS].decode("utf-8", "replace"), PRINTED_CHARS)
    return TargetResult(
        index,
        answer.outcome is Outcome.PASS,
        Label.SEALED,
        clean(answer.detail, MESSAGE_CHARS),
        answer.run.wall_s,
        Stream(printed, "", len(output)),
    )


def _tricks(runs: list[ScriptRun]) -> list[Trick]:
    found = set()
    if any(Trick.PATCHED_BUILTINS.value in run.tricks for run in runs):
        found.add(Trick.PATCHED_BUILTINS)
    if any(isinstance(run.ended, Violation) for run in runs):
        found.add(Trick.OUT_OF_TURN)
    return sorted(found)
