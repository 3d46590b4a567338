"""Are verdicts the same alone and under load? The same real samples graded four times.

    python tests/benchmarks/load_independence.py                2,000 samples
    python tests/benchmarks/load_independence.py --samples 60

Graded by one worker, by two, by four on two cores, and by two beside processes that take every
core. Outcome and the result of each target have to be equal. A program whose time lies near the
limit may go either way on any machine: those are counted apart and listed. Exits 1 where others
differ, 0 with a note where the reference data is absent.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "benchmarks")]

from agreement import sets  # noqa: E402
from real_samples import Sample, selection  # noqa: E402

from grading.engine.grade import grade  # noqa: E402
from grading.engine.sandbox import Sandbox  # noqa: E402
from grading.engine.spread import spread  # noqa: E402

SAMPLES = 2_000
NEAR = 0.2
HOG = "while True: pass"


@dataclass(frozen=True, slots=True)
class Mode:
    """``workers`` grade at the same time, beside ``hogs`` processes that only burn time."""

    name: str
    workers: int
    hogs: int = 0


def modes() -> list[Mode]:
    cores = len(os.sched_getaffinity(0))
    return [
        Mode("alone, 1 worker", 1),
        Mode(f"{cores} workers", cores),
        Mode(f"{2 * cores} workers on {cores} cores", 2 * cores),
        Mode(f"{cores} workers beside {2 * cores} busy processes", cores, 2 * cores),
    ]


@dataclass(frozen=True, slots=True)
class Seen:
    """What is to be equal, and what decides whether the limit was near."""

    name: str
    outcome: str
    held: list[bool]
    cpu_s: float
    wall_s: float
    starved: bool

    def same(self, other: Seen) -> bool:
        return (self.outcome, self.held) == (other.outcome, other.held)


def see(sample: Sample, sandbox: Sandbox) -> Seen:
    verdict = grade(sample.task, sample.generation, sandbox)
    held = [target.true for target in verdict.targets]
    times = round(verdict.cpu_s, 3), round(verdict.wall_s, 3)
    return Seen(sample.name, verdict.outcome.value, held, *times, verdict.starved)


@contextmanager
def hogs(count: int) -> Iterator[None]:
    with ExitStack() as stack:
        for _ in range(count):
            hog = stack.enter_context(subprocess.Popen([sys.executable, "-S", "-c", HOG]))
            stack.callback(hog.kill)
        yield


def run(mode: Mode, samples: list[Sample], sandbox: Sandbox) -> list[Seen]:
    with hogs(mode.hogs):
        return list(spread(see, samples, sandbox, mode.workers))


def near_limit(samples: list[Sample], alone: list[Seen], sandbox: Sandbox) -> set[str]:
    """Programs that end within NEAR of their limit, from below or, given more time, above."""
    below = {
        seen.name
        for sample, seen in zip(samples, alone, strict=True)
        if seen.outcome != "timeout" and seen.cpu_s > (1 - NEAR) * sample.task.timeout_s
    }
    late = [
        replace(sample, task=replace(sample.task, timeout_s=sample.task.timeout_s * (1 + NEAR)))
        for sample, seen in zip(samples, alone, strict=True)
        if seen.outcome == "timeout"
    ]
    above = {seen.name for seen in spread(see, late, sandbox, 1) if seen.outcome != "timeout"}
    return below | above


def main() -> int:
    options = _options()
    if not sets.VERDICTS.is_dir():
        print("load: skipped, needs the reference data directory ../shared")
        return 0
    samples = selection(options.samples)
    sandbox = Sandbox("load")
    sandbox.ensure()
    told: dict[str, list[Seen]] = {}
    for mode in modes():
        started = time.monotonic()
        told[mode.name] = run(mode, samples, sandbox)
        seconds = time.monotonic() - started
        starved = sum(seen.starved for seen in told[mode.name])
        print(f"{mode.name}: {seconds:.0f} s, {starved} starved to the end", flush=True)
        if options.keep:
            rows = [json.dumps({"mode": mode.name, **asdict(seen)}) for seen in told[mode.name]]
            with options.keep.open("a") as file:
                file.write("\n".join(rows) + "\n")
    alone, *others = told.values()
    near = near_limit(samples, alone, sandbox)
    return report(list(told)[1:], alone, others, near)


def report(names: list[str], alone: list[Seen], others: list[list[Seen]], near: set[str]) -> int:
    """Print the comparison; 1 where verdicts differ that are not near their limit."""
    timeouts = sum(seen.outcome == "timeout" for seen in alone)
    print(f"{len(alone)} samples, {timeouts} timeouts, {len(near)} near their limit")
    for name in sorted(near):
        print(f"  near its limit: {name}")
    failed = False
    for mode, seen in zip(names, others, strict=True):
        differ = [(one, two) for one, two in zip(alone, seen, strict=True) if not one.same(two)]
        apart = [pair for pair in differ if pair[0].name in near]
        failed = failed or len(differ) > len(apart)
        print(f"{mode}: {len(differ) - len(apart)} verdicts differ, {len(apart)} near their limit")
        for one, two in differ:
            print(f"  {one.name}: {one.outcome} {sum(one.held)}, {one.cpu_s} s; now {two}")
    return int(failed)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--keep", type=Path, help="append every verdict to this file")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
