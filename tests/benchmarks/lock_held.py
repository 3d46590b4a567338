# ruff: noqa: E402
"""How long other writers wait while a large submission comes, grows and goes.

    .venv/bin/python tests/benchmarks/lock_held.py [SAMPLES]

Takes a file of that many samples, adds another one, makes verdicts for all of them directly, and
deletes the submission, in a database of its own; a thread tries to write all the while. SQLite lets
a writer wait `WAIT_S` seconds before it fails, which is the bar.
"""

from __future__ import annotations

import io
import json
import os
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
DATA = tempfile.TemporaryDirectory()
os.environ["EVALSITE_DATA_DIR"] = DATA.name
os.environ["DJANGO_SETTINGS_MODULE"] = "evalsite.settings"

import django

django.setup()

from benchmarks.made_verdicts import fail
from django.conf import settings
from django.core.management import call_command

from evalsite import queueing
from grading import additions, life, uploads
from grading.models import Sample, Submission
from tests.leaderboard import builders

TASKS = 164
BATCH = 1_000
WAIT_S = 20.0
LOOK_S = 0.02


class Writer(threading.Thread):
    """Begins to write again and again; ``worst`` is its longest wait in seconds."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.worst = 0.0
        self.ended = threading.Event()

    def run(self) -> None:
        name = settings.DATABASES["default"]["NAME"]
        connection = sqlite3.connect(name, timeout=3600, isolation_level=None)
        while not self.ended.wait(LOOK_S):
            start = time.monotonic()
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
            self.worst = max(self.worst, time.monotonic() - start)


def waited(name: str, call: Callable[[], Any]) -> float:
    writer = Writer()
    writer.start()
    start = time.monotonic()
    call()
    took = time.monotonic() - start
    writer.ended.set()
    writer.join()
    print(f"{name}: {took:.1f} s; another writer waited {writer.worst:.2f} s at most", flush=True)
    return writer.worst


def file(count: int, salt: str) -> io.BytesIO:
    rows = (
        {"task_id": f"Tidepool/{at % TASKS}", "generation": f"def f():\n    return {at}  # {salt}"}
        for at in range(count)
    )
    return io.BytesIO("".join(json.dumps(row) + "\n" for row in rows).encode())


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    call_command("migrate", verbosity=0)
    queueing.enqueue = lambda *_: None
    version, user = builders.version(tasks=TASKS), builders.user()
    user.is_staff = True  # who has no quota
    user.save()
    accept = waited(
        f"taking {count:,} samples",
        lambda: uploads.accept(file(count, "a"), "a.jsonl", version, "Heron 27B", user),
    )
    made = Submission.objects.get()
    add = waited(
        f"adding {count:,} more", lambda: additions.add(made, file(count, "b"), "b.jsonl", user)
    )
    samples = list(Sample.objects.order_by("pk"))
    for start in range(0, len(samples), BATCH):
        fail(samples[start : start + BATCH])
    delete = waited(f"deleting the {len(samples):,}, graded", lambda: life.delete(made))
    assert not Sample.objects.exists()
    return 0 if max(accept, add, delete) < WAIT_S else 1


if __name__ == "__main__":
    sys.exit(main())
