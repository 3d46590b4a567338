"""Regrade a whole benchmark in the shadow, kill workers meanwhile, and look at what moved.

    python tests/benchmarks/crash_groups.py --data DIR        first, to have graded samples
    python tests/benchmarks/shadow_regrade.py --data DIR

Asks for a regrade of every sample of HumanEval in that instance, runs it with real workers, kills
two of them hard while samples are in flight, and takes the board as JSON again and again: it must
stay as it was, byte by byte, until the regrade is applied. Then every sample must have exactly one
new attempt. Exits 1 where anything of that is not so.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

if TYPE_CHECKING:
    from evalsite.supervisor import Supervisor
    from grading.models import BenchmarkVersion, Regrade

BENCHMARK = "humaneval"
KILLED_AT = (0.2, 0.5)
LOOK_S = 1.0
BOARD_S = 20.0


def main() -> int:
    options = _options()
    os.environ["EVALSITE_DATA_DIR"] = str(options.data.resolve())
    os.environ["DJANGO_SETTINGS_MODULE"] = "evalsite.settings"
    os.environ.setdefault("EVALSITE_LOG_LEVEL", "ERROR")
    import django

    django.setup()
    from django.contrib.auth import get_user_model

    from grading import regrades
    from grading.models import BenchmarkVersion

    version = BenchmarkVersion.objects.get(benchmark__slug=BENCHMARK)
    user = get_user_model().objects.get(username="admin")
    with _instance() as supervisor:
        asked, regrade = seconds(
            lambda: regrades.ask(regrades.Selection(benchmark=BENCHMARK), "measured", user)
        )
        print(f"asked for {regrade.runs.count():,} runs in {asked:.1f} s", flush=True)
        wrong = run(version, regrade, supervisor)
    return 1 if wrong + apply(version, regrade, user) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="of tests/benchmarks/crash_groups")
    return parser.parse_args()


@contextmanager
def _instance() -> Iterator[Supervisor]:
    from evalsite import instance

    def log(name: str, line: str) -> None:
        if name == "evalsite":
            print(f"  {line}", flush=True)

    plan = instance.Plan(instance.default_workers())
    with instance.sole("shadow regrade"), instance.running(plan, log) as supervisor:
        yield supervisor


def run(version: BenchmarkVersion, regrade: Regrade, supervisor: Supervisor) -> int:
    """Wait until all runs are made, killing workers; returns how often the board had moved."""
    before, started = board(version), time.monotonic()
    all_runs, kills, looked, moved = regrade.runs.count(), list(KILLED_AT), started, 0
    while regrade.state == regrade.State.RUNNING:
        time.sleep(LOOK_S)
        done = regrade.runs.exclude(state__in=["queued", "running"]).count()
        if kills and done >= kills[0] * all_runs and kill_in_flight(regrade, supervisor):
            kills.pop(0)
        if time.monotonic() - looked > BOARD_S:
            looked = time.monotonic()
            moved += board(version) != before
        regrade.refresh_from_db()
    moved += board(version) != before
    took = time.monotonic() - started
    print(f"{all_runs:,} runs in {took:,.0f} s, {all_runs / took:.1f} a second")
    print(
        f"board: {len(before):,} bytes, {hashlib.sha256(before.encode()).hexdigest()[:12]}, "
        f"{'the same at every look' if not moved else f'MOVED {moved} TIMES'}"
    )
    return moved + len(kills)


def kill_in_flight(regrade: Regrade, supervisor: Supervisor) -> bool:
    """SIGKILL one worker that has a sample in flight; its child ends with it."""
    pids = {pid for name, pid in supervisor.pids().items() if name.startswith("worker")}
    held = regrade.runs.filter(state="running").values_list("sample", "worker")
    for sample, worker in held:
        pid = int(worker.rpartition("-")[2])
        if pid in pids:
            os.kill(pid, signal.SIGKILL)
            print(f"  killed {worker} with sample {sample} in flight", flush=True)
            return True
    return False


def apply(version: BenchmarkVersion, regrade: Regrade, user: Any) -> int:
    """Count the attempts, apply, count again; returns how many counts are wrong."""
    from django.db.models import Count

    from grading import regrade_apply
    from grading.models import Attempt, Sample

    runs = regrade.runs.all()
    lost = runs.filter(losses__gt=0).count()
    done = runs.filter(state="done", attempt__isnull=False).count()
    failed = runs.filter(state="platform_failed").count()
    shadows = Attempt.objects.filter(kind="regrade", sample__regrade_runs__regrade=regrade)
    samples = shadows.aggregate(n=Count("sample", distinct=True))["n"]
    print(f"{done:,} done, {failed:,} failed by the platform; {lost:,} had lost their worker once")
    print(f"{shadows.count():,} new attempts of {samples:,} samples")
    # A sample that was lost between its attempt and the record of it would show here.
    wrong = [runs.count() != done + failed, done != shadows.count(), done != samples, not lost]
    before = board(version)
    took, applied = seconds(lambda: regrade_apply.apply(regrade, user))
    print(f"applied in {took:.1f} s, one transaction: {applied}")
    current = Sample.objects.filter(current_attempt__in=shadows).count()
    entry = version.change_log.latest("created_at")
    print(f"{current:,} of them are verdicts now; the change log says: {entry.what}")
    wrong += [current != applied.applied, (board(version) == before) != (not applied.changed)]
    print("all as it should be" if not any(wrong) else f"WRONG: {wrong}")
    return sum(wrong)


def board(version: BenchmarkVersion) -> str:
    """The board from the scores as they are at this moment, as JSON."""
    from leaderboard import export, queries, snapshots

    snapshots.take(version)
    return export.to_json(queries.board(version))


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.monotonic()
    result = work()
    return time.monotonic() - began, result


if __name__ == "__main__":
    sys.exit(main())
