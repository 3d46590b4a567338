"""The worker under attack: the real grader on one tier, or nothing but ``python file.py``.

Standard input: the case as JSON (with ``tier``), then one line to begin and one to end. Standard
output: one line when ready, one with the verdict.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from grading.engine import script_run, session
from grading.engine.cases import Case, read_case
from grading.engine.child import conceal
from grading.engine.grade import grade
from grading.engine.outcome import PlatformError
from grading.engine.program import build_program
from grading.engine.sandbox import Sandbox
from grading.engine.task import Generation, Kind, Task


def say(line: Any) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def timing(run: Any, times: list[float]) -> Any:
    def timed(*arguments: Any, **options: Any) -> Any:
        started = time.monotonic()
        try:
            return run(*arguments, **options)
        finally:
            # The clock of a second run stands still while others have the cores.
            if not options.get("patient"):
                times.append(time.monotonic() - started)

    return timed


def graded(case: Case, sandbox: Sandbox) -> dict[str, Any]:
    before = descriptors()
    times: list[float] = []
    session.run = timing(session.run, times)
    script_run.run = timing(script_run.run, times)
    try:
        for _ in range(case.repeat):
            verdict = grade(case.task, case.generation, sandbox)
    except PlatformError as problem:
        return {"outcome": "platform_error", "score": 0.0, "detail": str(problem), "shown": ""}
    failure = verdict.failure
    # The limit holds for the run, or for each of them.
    runs = [target.duration_s for target in verdict.targets]
    longest = runs if case.task.kind is Kind.STDIO else [verdict.wall_s]
    shown = [verdict.detail, verdict.stdout.head, verdict.stdout.tail, verdict.stderr.head]
    shown += [verdict.stderr.tail, *verdict.denied, *(target.detail for target in verdict.targets)]
    shown += [failure.exception, failure.message, str(failure.frames)] if failure else []
    return {
        "outcome": verdict.outcome.value,
        "score": verdict.score,
        "detail": verdict.detail,
        "shown": "\n".join(shown),
        "longest_s": max(times, default=0.0),
        "over_limit_s": max([0.0, *longest]) - case.task.timeout_s,
        "new_descriptors": descriptors() - before,
    }


def graded_between(case: Case, sandbox: Sandbox) -> dict[str, Any]:
    """As one of many programs that share a sandbox: ``next`` is the outcome of the one after."""
    honest = Task(("f(1) == 2", "left() == []"), entry_points=("f", "left"))
    program = Generation(
        "import os\n"
        "def f(x): return x + 1\n"
        "def left(): return [n for d in ('.', '/tmp', '/dev/shm') for n in os.listdir(d)]"
    )
    with sandbox.warm():
        grade(honest, program, sandbox)
        seen = graded(case, sandbox)
        return seen | {"next": grade(honest, program, sandbox).outcome.value}


def unprotected(case: Case) -> dict[str, Any]:
    """What many graders do: program and targets in one file, exit status 0 is a pass."""
    task = case.task
    targets = [f"assert ({text})" if is_expression(text) else text for text in task.assertions]
    program = build_program(task, case.generation).text
    source = "\n".join([program, task.setup, *targets])
    directory = tempfile.mkdtemp(prefix="unprotected-")
    path = Path(directory, "file.py")
    path.write_text(source, errors="surrogatepass")
    command = [sys.executable, "-S", str(path)]
    done = subprocess.run(command, capture_output=True, cwd=directory, check=False)
    shown = (done.stdout + done.stderr)[:100_000].decode(errors="replace")
    passed = done.returncode == 0
    outcome = "pass" if passed else "error"
    return {"outcome": outcome, "score": float(passed), "detail": shown, "shown": shown}


def is_expression(text: str) -> bool:
    try:
        compile(text.strip(), "target", "eval")
    except SyntaxError:
        return False
    return True


def main() -> None:
    row = json.loads(sys.stdin.readline())
    tier, kept = row.pop("tier"), row.pop("kept")
    case = read_case(1, json.dumps(row))
    sandbox = Sandbox("attacks", isolation=tier or "auto")
    if tier:
        conceal()
        try:
            sandbox.ensure()
        except PlatformError as problem:
            say({"problem": str(problem)})
            return
    say({"hardening": sandbox.hardening, "uid": os.getuid()})
    sys.stdin.readline()
    way = (graded_between if kept else graded) if tier else None
    say(way(case, sandbox) if way else unprotected(case))
    sys.stdin.readline()


if __name__ == "__main__":
    main()
