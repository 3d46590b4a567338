"""Two hundred samples regraded by two workers, both of which are killed in the middle.

Everything is the real thing: commands as processes, sandboxes, HumanEval. What the board shows must
not move by a byte until the regrade is applied, and then exactly as the new verdicts say.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from grading.engine import humaneval
from tests.e2e.processes import ROOT, Instance, Store, kill_worker_in_flight, manage

pytestmark = [pytest.mark.slow, pytest.mark.broker, pytest.mark.sandbox]

TASKS, SAMPLES = 20, 200
GRADING_S = 600.0
IN_FLIGHT = (
    "SELECT sample_id FROM grading_regraderun WHERE worker = '{worker}' AND state = 'running'"
)
SUBMIT = ["manage.py", "submit", "--benchmark", "humaneval", "--model", "m"]
REGRADE = ["manage.py", "regrade", "--benchmark", "humaneval", "--reason", "why"]
DJANGO = "import django; django.setup()\n"
# Ten right programs that count as wrong: what the regrade is to find.
WRONGED = DJANGO + (
    "from grading import verdicts\n"
    "from grading.models import *\n"
    "task = Task.objects.get(task_id='HumanEval/0')\n"
    "Attempt.objects.filter(sample__task=task).update(outcome='assertion_fail', score=0.0)\n"
    "verdicts.recompute(Submission.objects.get().pk, [task.pk])\n"
)
BOARD = DJANGO + (
    "from grading.models import BenchmarkVersion\n"
    "from leaderboard import export, queries, snapshots\n"
    "version = BenchmarkVersion.objects.get()\n"
    "snapshots.take(version)\n"
    "print(export.to_json(queries.board(version)))\n"
)
APPLY = DJANGO + (
    "from django.contrib.auth.models import User\n"
    "from grading import regrade_apply\n"
    "from grading.models import Regrade\n"
    "regrade_apply.apply(Regrade.objects.get(), User.objects.get())\n"
)


@pytest.fixture
def instance(
    env: dict[str, str],
    server: list[subprocess.Popen[bytes]],
    database_url: str,
    tmp_path: Path,
) -> Iterator[Instance]:
    file = tmp_path / "samples.jsonl"
    rows = humaneval.load_rows()[:TASKS] * (SAMPLES // TASKS)
    samples = ({"task_id": x["task_id"], "completion": x["canonical_solution"]} for x in rows)
    file.write_text("".join(json.dumps(sample) + "\n" for sample in samples))
    manage(env, "manage.py", "import_benchmark", "humaneval", "--skip-references")
    manage(env, *SUBMIT, str(file))
    instance = Instance(Store(tmp_path / "data", database_url), env, tmp_path)
    yield instance
    instance.stop()


def board(env: dict[str, str]) -> bytes:
    command = [sys.executable, "-c", BOARD]
    return subprocess.run(command, cwd=ROOT, env=env, check=True, capture_output=True).stdout


def test_a_regrade_moves_nothing_until_it_is_applied_whatever_dies(
    instance: Instance, env: dict[str, str]
) -> None:
    store = instance.store
    instance.wait(lambda: store.decided() == SAMPLES, GRADING_S, "all graded")
    manage(env, "-c", WRONGED)
    before = board(env)
    manage(env, *REGRADE)

    def made(share: float) -> Callable[[], bool]:
        done = "SELECT count(*) FROM grading_regraderun WHERE state = 'done'"
        return lambda: store.number(done) >= share * SAMPLES

    killed = []
    for slot, share in ((0, 0.2), (1, 0.5)):
        instance.wait(made(share), GRADING_S, f"{share:.0%} regraded")
        killed.append(kill_worker_in_flight(instance, slot, IN_FLIGHT))
    assert board(env) == before
    ready = "SELECT count(*) FROM grading_regrade WHERE state = 'ready'"
    instance.wait(lambda: store.number(ready) == 1, GRADING_S, "all regraded")

    shadows = "FROM grading_attempt WHERE kind = 'regrade'"
    assert store.rows(f"SELECT count(*), count(DISTINCT sample_id) {shadows}") == [(200, 200)]
    assert store.number("SELECT count(*) FROM grading_regraderun WHERE state = 'done'") == SAMPLES
    for sample, worker in killed:
        ((other, losses),) = store.rows(
            f"SELECT worker, losses FROM grading_regraderun WHERE sample_id = {sample}"
        )
        assert (other != worker, losses) == (True, 1)
    assert board(env) == before

    manage(env, "-c", APPLY)
    current = "SELECT count(*) FROM grading_sample s JOIN grading_attempt a "
    assert store.number(f"{current} ON a.id = s.current_attempt_id WHERE a.kind = 'regrade'") == 200
    assert store.rows("SELECT sum(n), sum(c) FROM grading_taskscore") == [(SAMPLES, SAMPLES)]
    (line,) = store.rows("SELECT what FROM grading_changelogentry")
    assert line == ("200 samples regraded, 10 with another verdict",)
    assert board(env) != before
