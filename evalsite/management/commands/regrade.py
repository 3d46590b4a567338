"""``manage.py regrade``: run samples again in the shadow of their verdicts."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from typing import Any

from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import CommandError, CommandParser

from evalsite import instance
from evalsite.commands import SiteCommand
from evalsite.console import Console
from evalsite.graders import Graders
from evalsite.supervisor import StartFailed
from grading import regrade_apply, regrades
from grading.models import BenchmarkVersion, Regrade
from grading.queries.regrades import progress
from grading.regrade_results import results, summary
from grading.regrades import Selection

POLL_S = 0.5


class Command(SiteCommand):
    help = (
        "Run samples again beside their verdicts; no figure changes until it is applied, here by "
        "--wait --apply or on the site under /regrades/. Example: manage.py regrade "
        "--benchmark humaneval --grader-below 3 --reason 'grader 3' --wait"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        for name in ("group", "submission", "benchmark", "task", "model", "outcome", "worker"):
            parser.add_argument(f"--{name}", default="", help="only samples of this one")
        # --version is Django's own.
        parser.add_argument("--of-version", type=int, help="version number of the benchmark")
        parser.add_argument("--grader-below", type=int, help="verdicts of older graders only")
        parser.add_argument("--to-version", type=int, help="against the tasks of this version")
        parser.add_argument("--reason", default="", help="why; shown beside what changes")
        parser.add_argument("--repeat", type=int, default=1, help="runs of each sample")
        parser.add_argument("--user", default="admin", help="who asks (default: admin)")
        parser.add_argument("--dry-run", action="store_true", help="only count")
        parser.add_argument("--wait", action="store_true", help="until all runs are made")
        parser.add_argument("--apply", action="store_true", help="apply all, with --wait")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        os.environ.setdefault("EVALSITE_LOG_LEVEL", "WARNING")
        call_command("migrate", verbosity=0)
        if options["apply"] and not options["wait"]:
            raise CommandError("--apply needs --wait: there is nothing to apply before.")
        try:
            found = _counted(options) if options["dry_run"] else self._regrade(options)
        except (ValueError, regrades.NothingToRegrade, regrades.NotAllowed) as problem:
            raise CommandError(str(problem)) from None
        except (instance.CannotStart, StartFailed) as problem:
            raise CommandError(str(problem)) from None
        except KeyboardInterrupt:
            raise CommandError("stopped; the runs left wait for `manage.py up`") from None
        lines = [f"{name.replace('_', ' ')}: {value}" for name, value in found.items()]
        self.stdout.write(json.dumps(found, indent=2) if options["json"] else "\n".join(lines))

    def _regrade(self, options: dict[str, Any]) -> dict[str, Any]:
        console = Console(sys.stderr)
        user = User.objects.filter(username=options["user"]).first()
        if user is None:
            raise CommandError(f"No user {options['user']!r}.")
        with contextlib.ExitStack() as stack:
            graders = Graders(stack, "manage.py regrade", console.log)
            if options["wait"]:
                graders.ensure()
            regrade = regrades.ask(
                _selection(options), options["reason"], user, options["repeat"], _target(options)
            )
            if options["wait"]:
                _wait(regrade, console, graders)
        applied = regrade_apply.apply(regrade, user) if options["apply"] else None
        return _told(regrade) | ({"applied": applied.applied} if applied else {})


def _selection(options: dict[str, Any]) -> Selection:
    names = set(Selection.__slots__) - {"version"}
    return Selection(
        version=options["of_version"], **{name: options[name] for name in sorted(names)}
    )


def _target(options: dict[str, Any]) -> BenchmarkVersion | None:
    number = options["to_version"]
    if number is None:
        return None
    versions = BenchmarkVersion.objects.filter(benchmark__slug=options["benchmark"])
    target = versions.filter(number=number).first()
    if target is None:
        raise CommandError(f"--to-version {number}: name its benchmark by --benchmark.")
    return target


def _counted(options: dict[str, Any]) -> dict[str, Any]:
    plan = regrades.plan(_selection(options), _target(options))
    return {"samples": len(plan.tasks), "in_open_regrades": plan.left_out}


def _wait(regrade: Regrade, console: Console, graders: Graders) -> None:
    """Return when all runs are made, or the regrade was cancelled elsewhere."""
    while True:
        graders.ensure()
        found = progress(regrade)
        regrade.refresh_from_db()
        line = f"Made {found.done:,} of {found.of:,} runs"
        if regrade.state != Regrade.State.RUNNING:
            console.progress_done(f"{line}.")
            return
        console.progress(f"{line} ...")
        time.sleep(POLL_S)


def _told(regrade: Regrade) -> dict[str, Any]:
    regrade.refresh_from_db()
    counts = summary(results(regrade))
    return {
        "regrade": regrade.public_id,
        "state": regrade.state,
        "samples": counts.samples,
        "changed": counts.changed,
        "flaky": counts.flaky,
        "platform_failures": counts.failed,
        "left_out": regrade.left_out,
    }
