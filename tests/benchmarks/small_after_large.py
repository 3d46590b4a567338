"""How soon ten samples are graded that come in behind fifty thousand.

    .venv/bin/python tests/benchmarks/small_after_large.py [SAMPLES]

In a data directory of its own, with real workers: HumanEval's reference solutions, each made
different so that none repeats the verdict of another. Stops as soon as the ten are done, so the
large submission is not graded to its end. Exits 1 where it ended first, or the ten take over
`MOST_S` seconds.
"""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

LARGE, SMALL = 50_000, 10
UNDER_WAY = 40
MOST_S = 60.0
LOOK_S = 0.2


def main() -> int:
    samples = int(sys.argv[1]) if len(sys.argv) > 1 else LARGE
    with tempfile.TemporaryDirectory(prefix="evalsite-bench-") as data:
        os.environ["EVALSITE_DATA_DIR"] = data
        os.environ["DJANGO_SETTINGS_MODULE"] = "evalsite.settings"
        os.environ.setdefault("EVALSITE_LOG_LEVEL", "ERROR")
        import django

        django.setup()
        return measure(samples)


def measure(samples: int) -> int:
    from django.contrib.auth import get_user_model
    from django.core.management import call_command

    from evalsite import instance
    from grading import uploads
    from grading.models import BenchmarkVersion

    call_command("import_benchmark", "humaneval", skip_references=True, stdout=io.StringIO())
    version = BenchmarkVersion.objects.get()
    user = get_user_model().objects.create_user("uploader")

    def accept(model: str, count: int) -> tuple[float, int]:
        """Seconds, and the submission's key."""
        began, file = time.monotonic(), io.BytesIO(_lines(version, model, count))
        made = uploads.accept(file, f"{model}.jsonl", version, model, user).submission
        return time.monotonic() - began, made.pk

    plan = instance.Plan(instance.default_workers())
    with ExitStack() as stack:
        stack.enter_context(instance.sole("small after large"))
        stack.enter_context(instance.running(plan, lambda name, line: None))
        took, large = accept("large", samples)
        print(f"{samples:,} samples stored and queued in {took:.1f} s")
        while _graded(large) < UNDER_WAY:
            time.sleep(LOOK_S)
        before, began = _graded(large), time.monotonic()
        _, small = accept("small", SMALL)
        while _graded(small) < SMALL:
            time.sleep(LOOK_S)
        waited, after = time.monotonic() - began, _graded(large)
    print(
        f"{SMALL} samples sent then were graded in {waited:.1f} s; of the large one {before:,} "
        f"were done before, {after:,} after; load {os.getloadavg()[0]:.0f}"
    )
    return 0 if after < samples and waited < MOST_S else 1


def _lines(version: object, model: str, count: int) -> bytes:
    """``count`` samples as a file, the tasks in turn."""
    from grading.models import Task

    tasks = list(Task.objects.filter(version=version).values_list("task_id", "reference"))
    turns = zip(range(count), cycle(tasks), strict=False)
    rows = (
        {"task_id": task_id, "solution": f"{reference}\n# {model} {number}\n"}
        for number, (task_id, reference) in turns
    )
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def _graded(submission: int) -> int:
    from grading.models import Sample

    return Sample.objects.filter(submission=submission, state=Sample.State.DONE).count()


if __name__ == "__main__":
    sys.exit(main())
