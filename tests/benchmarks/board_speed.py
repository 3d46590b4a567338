# ruff: noqa: E402
"""Time the snapshot and the board page of a large board on generated scores.

.venv/bin/python tests/benchmarks/board_speed.py [MODELS TASKS SAMPLES]

In a database of its own, which is removed: SQLite, or what EVALSITE_DATABASE_URL names (its user
must be allowed to make databases). Prints the board page's server time as a multiple of one plain
read of every task score.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
DATA = tempfile.TemporaryDirectory()
os.environ["EVALSITE_DATA_DIR"] = DATA.name
os.environ["DJANGO_SETTINGS_MODULE"] = "evalsite.settings"

import django

django.setup()

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext, setup_databases, teardown_databases

from grading.models import BenchmarkVersion, Submission, TaskScore
from leaderboard import snapshots
from tests.leaderboard import builders

MOST_SNAPSHOT_S, MOST_PAGE_S = 10.0, 0.150
ROUNDS = 7


def fill(models: int, tasks: int, samples: int) -> BenchmarkVersion:
    """Models of rising skill on tasks of all difficulties."""
    dice = random.Random(0)
    version = builders.version(tasks=tasks)
    ease = [dice.betavariate(0.7, 0.7) for _ in range(tasks)]
    for i in range(models):
        skill = 0.3 + 0.7 * i / models
        scores = [_score(dice, samples, min(1.0, skill * 1.3 * one)) for one in ease]
        builders.submission(version, f"Model {i:03}", scores, settings={"temperature": 0.2})
    return version


def _score(dice: random.Random, n: int, rate: float) -> dict[str, float]:
    passed = sum(dice.random() < rate for _ in range(n))
    timeout = sum(dice.random() < 0.03 for _ in range(n - passed))
    partial = (n - passed - timeout) * dice.random() / 2
    return {"n": n, "c": passed, "timeout": timeout, "fraction_sum": passed + partial}


def seconds(work: Callable[[], object]) -> float:
    """Of this process on a core with SQLite, which is all of its time; else by the clock."""
    clock = time.process_time if connection.vendor == "sqlite" else time.perf_counter
    began = clock()
    work()
    return clock() - began


def page(client: Client, path: str) -> float:
    """Server time of a page, warm: the best of some rounds, for other programs run here too."""

    def get() -> None:
        assert client.get(path).status_code == 200

    get()
    return min(seconds(get) for _ in range(ROUNDS))


def queries(client: Client, path: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        client.get(path)
    return len(captured)


def main() -> None:
    models, tasks, samples = [int(word) for word in sys.argv[1:4]] or [100, 1000, 10]
    held = setup_databases(0, False)
    try:
        measure(models, tasks, samples)
    finally:
        teardown_databases(held, verbosity=0)


def measure(models: int, tasks: int, samples: int) -> None:
    version = fill(models, tasks, samples)
    print(f"{connection.vendor}: {models} models, {tasks} tasks, {samples} samples each")
    snapshot = seconds(lambda: snapshots.take(version))
    print(f"first snapshot      {snapshot:8.2f} s")
    newest = Submission.objects.order_by("pk").last()
    TaskScore.objects.filter(submission=newest, task__position=0).update(c=0)
    again = seconds(lambda: snapshots.take(version))
    print(f"one run changed     {again:8.2f} s")
    columns = ("submission_id", "task_id", "n", "c", "timeout", "fraction_sum")
    scan = seconds(lambda: list(TaskScore.objects.values_list(*columns)))
    print(f"read every score    {scan:8.3f} s")
    client, slug = Client(SERVER_NAME="localhost"), version.benchmark.slug
    times = {}
    for path in (
        f"/b/{slug}/",
        f"/b/{slug}/?score=10&sort=name",
        f"/b/{slug}/?without={slug}-3",
        f"/b/{slug}/compare/model-000...model-{models - 1:03}/",
        "/",
    ):
        times[path] = page(client, path)
        ratio = times[path] / scan
        print(f"{times[path]:8.3f} s {ratio:6.2f} reads {queries(client, path):3} queries  {path}")
    board = times[f"/b/{slug}/"]
    if max(snapshot, again) > MOST_SNAPSHOT_S or board > MOST_PAGE_S:
        sys.exit(f"more than {MOST_SNAPSHOT_S:g} s for a snapshot or {MOST_PAGE_S:g} s for a board")


if __name__ == "__main__":
    main()
