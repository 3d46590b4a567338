"""``manage.py demo``: from nothing to a live leaderboard."""

from __future__ import annotations

import sys
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import CommandError, CommandParser

from evalsite import banner, demo, instance, progress
from evalsite.commands import SiteCommand
from evalsite.console import Console
from evalsite.supervisor import StartFailed, Supervisor
from grading import grader
from grading.engine.outcome import PlatformError
from grading.models import BenchmarkVersion


class Command(SiteCommand):
    help = (
        "Start everything, import HumanEval, have three synthetic language models graded, print "
        "the leaderboard, and serve it until Ctrl-C. A second demo adds nothing. Without a "
        "terminal it ends after the table. Example: manage.py demo --once"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--once", action="store_true", help="end after the table")
        parser.add_argument("--port", type=int, default=8000)

    def handle(self, *args: Any, **options: Any) -> None:
        plan = instance.Plan(instance.default_workers(), port=options["port"])
        once = options["once"] or not (sys.stdin.isatty() and sys.stdout.isatty())
        try:
            with instance.sole("manage.py demo"):
                self._run(plan, once)
        except (instance.CannotStart, StartFailed, PlatformError) as problem:
            raise CommandError(str(problem)) from None
        except KeyboardInterrupt:
            self.stdout.write("Stopped.")

    def _run(self, plan: instance.Plan, once: bool) -> None:
        console = Console(sys.stderr)
        instance.check_port(plan)
        sandbox = grader.sandbox()
        call_command("migrate", verbosity=0)
        password = instance.first_admin()
        with instance.running(plan, console.log) as supervisor:
            version = import_humaneval(console)
            grade_models(version, supervisor, console)
            self.stdout.write(f"\n{demo.board_table(version)}")
            self.stdout.write(banner.text(plan, sandbox, password))
            if not once:
                console.say("Ctrl-C stops it.")
                supervisor.serve()


def import_humaneval(console: Console) -> BenchmarkVersion:
    """HumanEval with its reference solutions graded; what is there already stays as it is."""
    console.say("Importing HumanEval and grading its reference solutions ...")
    call_command("import_benchmark", demo.BENCHMARK, stdout=sys.stderr)
    versions = BenchmarkVersion.objects.filter(benchmark__slug=demo.BENCHMARK)
    return versions.order_by("-number")[0]


def grade_models(version: BenchmarkVersion, supervisor: Supervisor, console: Console) -> None:
    """Submit the synthetic models and wait until they are graded."""
    admin = get_user_model().objects.filter(is_superuser=True).order_by("pk")[0]
    console.say("Submitting three synthetic language models ...")
    submissions = demo.submissions(version, admin)
    progress.wait(submissions, console, supervisor.check)
