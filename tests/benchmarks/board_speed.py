# ruff: noqa: E402
"""Time the snapshot and the board page of a large board on generated scores.

.venv/bin/python tests/benchmarks/board_speed.py [MODELS TASKS SAMPLES]

In a database of its own, which is removed: SQLite, or what EVALSITE_DATABASE_URL names (its user
must be allowed to make databases). Prints each page's server time, as a multiple of one plain read
of every task score too, and its queries beside those of a small board. Time is processor time.
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
ROUNDS = 25
# Of the board that a large one may not ask more queries than.
SMALL_MODELS, SMALL_TASKS = 5, 20


def fill(models: int, tasks: int, samples: int, slug: str = "tidepool") -> BenchmarkVersion:
    """Models of rising skill on tasks of all difficulties."""
    dice = random.Random(0)
    version = builders.version(tasks, slug)
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
    """Processor time of this process and of the database process that serves it.

    The clock would measure whatever else this machine does. Where the database runs elsewhere its
    part is missing.
    """
    began = time.process_time() + database_s()
    work()
    return time.process_time() + database_s() - began


def database_s() -> float:
    """Processor time of the server process of the connection; SQLite has none."""
    if connection.vendor != "postgresql":
        return 0.0
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        pid = cursor.fetchone()[0]
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    except OSError:
        return 0.0


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


def paths(slug: str, models: int) -> tuple[str, ...]:
    """The board first; `/` last, which shows all benchmarks."""
    return (
        f"/b/{slug}/",
        f"/b/{slug}/?score=10&sort=name",
        f"/b/{slug}/?without={slug}-3",
        f"/b/{slug}/v1/heatmap/",
        f"/b/{slug}/compare/model-000...model-{models - 1:03}/",
        "/",
    )


def change_newest() -> None:
    """One task score of the newest run, so that the next snapshot differs."""
    newest = Submission.objects.order_by("pk").last()
    TaskScore.objects.filter(submission=newest, task__position=0).update(c=0, fraction_sum=0)


def measure(models: int, tasks: int, samples: int) -> None:
    small = fill(SMALL_MODELS, SMALL_TASKS, samples, "brook")
    snapshots.take(small)
    change_newest()
    snapshots.take(small)
    version = fill(models, tasks, samples)
    print(f"{connection.vendor}: {models} models, {tasks} tasks, {samples} samples each")
    snapshot = seconds(lambda: snapshots.take(version))
    print(f"first snapshot      {snapshot:8.2f} s")
    change_newest()
    again = seconds(lambda: snapshots.take(version))
    print(f"one run changed     {again:8.2f} s")
    columns = ("submission_id", "task_id", "n", "c", "timeout", "fraction_sum")
    scan = seconds(lambda: list(TaskScore.objects.values_list(*columns)))
    print(f"read every score    {scan:8.3f} s")
    client = Client(SERVER_NAME="localhost")
    few = [queries(client, path) for path in paths("brook", SMALL_MODELS)]
    found = {path: page(client, path) for path in paths("tidepool", models)}
    print(f"  server time   of a read   queries   with {SMALL_MODELS} models, {SMALL_TASKS} tasks")
    for (path, taken), with_few in zip(found.items(), few, strict=True):
        counted = queries(client, path)
        print(f"{taken:11.3f} s {taken / scan:11.2f} {counted:9} {with_few:9}   {path}")
    board = found["/b/tidepool/"]
    if max(snapshot, again) > MOST_SNAPSHOT_S or board > MOST_PAGE_S:
        sys.exit(f"more than {MOST_SNAPSHOT_S:g} s for a snapshot or {MOST_PAGE_S:g} s for a board")
    if queries(client, "/b/tidepool/") != few[0]:
        sys.exit("a larger board asks more queries")


if __name__ == "__main__":
    main()
