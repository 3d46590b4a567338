# ruff: noqa: E402
"""How long applying a large regrade holds the database.

    .venv/bin/python tests/benchmarks/apply_speed.py [SAMPLES]

Records of samples that all failed, in ten submissions, and of a regrade by which every second one
passes, made directly in a database of its own; then the one transaction that applies it. Other
writers wait for that: SQLite gives them `WAIT_S` seconds, which is the bar.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
DATA = tempfile.TemporaryDirectory()
os.environ["EVALSITE_DATA_DIR"] = DATA.name
os.environ["DJANGO_SETTINGS_MODULE"] = "evalsite.settings"

import django

django.setup()

from benchmarks.made_verdicts import attempts_of, fail
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import setup_databases, teardown_databases

from grading import regrade_apply
from grading.models import Regrade, RegradeRun, Sample
from tests.leaderboard import builders

TASKS, SUBMISSIONS = 164, 10
WAIT_S = 20.0
BATCH = 1_000


def fill(count: int) -> Regrade:
    """A regrade of ``count`` samples, all of its runs made."""
    version = builders.version(tasks=TASKS)
    tasks = list(version.tasks.all())
    made = [builders.submission(version, f"Model {i}") for i in range(SUBMISSIONS)]
    for start in range(0, count, BATCH):
        samples = Sample.objects.bulk_create(
            Sample(
                submission=made[number % SUBMISSIONS],
                task=tasks[number // SUBMISSIONS % TASKS],
                index=number,
                state=Sample.State.DONE,
            )
            for number in range(start, min(start + BATCH, count))
        )
        fail(samples)
    regrade = Regrade.objects.create(
        state=Regrade.State.READY, reason="measured", asked_by=builders.user()
    )
    for start in range(0, count, BATCH):
        _regrade(regrade, list(Sample.objects.order_by("pk")[start : start + BATCH]))
    return regrade


def _regrade(regrade: Regrade, samples: list[Sample]) -> None:
    outcomes = [["pass"], ["assertion_fail"]]
    attempts = [
        attempt
        for part, (outcome,) in zip((samples[::2], samples[1::2]), outcomes, strict=True)
        for attempt in attempts_of(part, outcome, 2)
    ]
    before = {sample.pk: sample.current_attempt_id for sample in samples}
    RegradeRun.objects.bulk_create(
        RegradeRun(
            regrade=regrade,
            sample_id=attempt.sample_id,
            task_id=attempt.sample.task_id,
            repeat=0,
            before_id=before[attempt.sample_id],
            attempt=attempt,
            state=RegradeRun.State.DONE,
        )
        for attempt in attempts
    )


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    held = setup_databases(0, False)
    try:
        regrade = fill(count)
        admin = User.objects.create(username="sam", is_superuser=True, is_staff=True)
        wall, busy = time.perf_counter(), time.process_time()
        applied = regrade_apply.apply(regrade, admin)
        wall, busy = time.perf_counter() - wall, time.process_time() - busy
    finally:
        teardown_databases(held, verbosity=0)
    took = busy if connection.vendor == "sqlite" else wall
    print(
        f"{connection.vendor}: {applied.applied:,} samples, {applied.changed:,} changed: "
        f"{wall:.1f} s, {busy:.1f} s of a core; load {os.getloadavg()[0]:.0f}"
    )
    return 0 if took < WAIT_S else 1


if __name__ == "__main__":
    sys.exit(main())
