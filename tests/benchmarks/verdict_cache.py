"""How much sooner a real set with ten samples per task is graded with the verdict cache.

The whole way: import, upload, queue, workers, database; each time in a data directory of its own.
The time is that between the upload and the last verdict, without and with the cache in turn, and
the shortest of each counts: what else the machine does only ever adds. Needs the reference data
directory beside the checkout:

    .venv/bin/python tests/benchmarks/verdict_cache.py
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT.parent / "shared/data/derived/upload_mistral7b_humaneval_n10.jsonl.gz"
BAR = 1.5
ROUNDS = 3
SPAN = """
from grading.models import Attempt, Submission
one = Submission.objects.get()
own = Attempt.objects.filter(repeats=None).count()
print(one.created_at.isoformat(), one.finished_at.isoformat(), own)
"""


def manage(data: str, cache: bool, *arguments: str) -> str:
    environment = {
        **os.environ,
        "EVALSITE_DATA_DIR": data,
        "EVALSITE_VERDICT_CACHE": str(int(cache)),
    }
    command = [sys.executable, "manage.py", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


@dataclass(frozen=True, slots=True)
class Take:
    """``run``: programs that were run; ``result``: what came out."""

    seconds: float
    run: int
    result: dict[str, Any]


def graded(cache: bool) -> Take:
    with tempfile.TemporaryDirectory(prefix="evalsite-bench-") as data:
        manage(data, cache, "import_benchmark", "humaneval", "--skip-references")
        options = ["--benchmark", "humaneval", "--model", "m", "--wait", "--json"]
        result = json.loads(manage(data, cache, "submit", str(FILE), *options))
        start, end, own = manage(data, cache, "shell", "--no-imports", "-c", SPAN).split()
        span = datetime.fromisoformat(end) - datetime.fromisoformat(start)
        return Take(span.total_seconds(), int(own), result)


def said(name: str, takes: Sequence[Take]) -> float:
    """Print what took how long; returns the shortest time."""
    best = min(take.seconds for take in takes)
    times = ", ".join(f"{take.seconds:.1f}" for take in takes)
    rate = takes[0].result["samples"] / best
    run = max(take.run for take in takes)
    print(f"{name:8} {times} s; {run:,} programs run; {rate:.1f} samples/s at best")
    return best


def same_verdicts(one: Take, other: Take) -> bool:
    # A sum of fractions depends in its last bit on the order in which the verdicts came.
    near = abs(one.result["mean_fraction"] - other.result["mean_fraction"]) < 1e-12
    return near and all(one.result[key] == other.result[key] for key in ("outcomes", "pass_at_k"))


def main() -> int:
    if not FILE.exists():
        print("verdict cache: skipped, needs the reference data directory ../shared")
        return 0
    rounds = [(graded(False), graded(True)) for _ in range(ROUNDS)]
    without, cached = zip(*rounds, strict=True)
    ratio = said("without:", without) / said("with:", cached)
    print(f"ratio:   {ratio:.2f}; the bar is {BAR}")
    differing = [take for take in cached if not same_verdicts(take, without[0])]
    for take in differing:
        print(f"DIFFERENT VERDICTS: {without[0].result} {take.result}")
    return 1 if differing or ratio < BAR else 0


if __name__ == "__main__":
    sys.exit(main())
