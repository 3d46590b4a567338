"""How much sooner a real set with ten samples per task is graded with the verdict cache.

The whole way, twice: import, upload, queue, workers, database; each in a data directory of its own.
The time is that between the upload and the last verdict. Needs the reference data directory beside
the checkout:

    .venv/bin/python tests/benchmarks/verdict_cache.py
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT.parent / "shared/data/derived/upload_mistral7b_humaneval_n10.jsonl.gz"
BAR = 1.5
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


def graded(cache: bool) -> tuple[float, int, dict[str, Any]]:
    """Seconds, programs that were run, and what came out."""
    with tempfile.TemporaryDirectory(prefix="evalsite-bench-") as data:
        manage(data, cache, "import_benchmark", "humaneval", "--skip-references")
        options = ["--benchmark", "humaneval", "--model", "m", "--wait", "--json"]
        result = json.loads(manage(data, cache, "submit", str(FILE), *options))
        start, end, own = manage(data, cache, "shell", "--no-imports", "-c", SPAN).split()
        span = datetime.fromisoformat(end) - datetime.fromisoformat(start)
        return span.total_seconds(), int(own), result


def main() -> int:
    if not FILE.exists():
        print("verdict cache: skipped, needs the reference data directory ../shared")
        return 0
    (without_s, every, plain), (with_s, own, cached) = graded(False), graded(True)
    print(f"without: {without_s:.1f} s, {every:,} programs run; {every / without_s:.1f} samples/s")
    print(f"with:    {with_s:.1f} s, {own:,} programs run; {every / with_s:.1f} samples/s")
    print(f"ratio:   {without_s / with_s:.2f}; the bar is {BAR}")
    # A sum of fractions depends in its last bit on the order in which the verdicts came.
    near = abs(plain["mean_fraction"] - cached["mean_fraction"]) < 1e-12
    same = near and all(plain[name] == cached[name] for name in ("outcomes", "pass_at_k"))
    print("same verdicts" if same else f"DIFFERENT VERDICTS: {plain} {cached}")
    return 0 if same and without_s / with_s >= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
