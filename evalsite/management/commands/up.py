"""``manage.py up``: the whole instance on one machine."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management import call_command
from django.core.management.base import CommandError, CommandParser

from evalsite import banner, instance
from evalsite.commands import SiteCommand
from evalsite.console import Console
from evalsite.supervisor import StartFailed
from grading import grader
from grading.engine.outcome import PlatformError


class Command(SiteCommand):
    help = (
        "Start the broker, the web server, the workers and the sweep, and keep them running "
        "until Ctrl-C. Example: manage.py up --port 8001"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument(
            "--workers", type=int, default=instance.default_workers(), help="default: the cores"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        plan = instance.Plan(options["workers"], options["host"], options["port"])
        try:
            with instance.sole("manage.py up"):
                self._run(plan)
        except (instance.CannotStart, StartFailed, PlatformError) as problem:
            raise CommandError(str(problem)) from None
        except KeyboardInterrupt:
            self.stdout.write("Stopped.")

    def _run(self, plan: instance.Plan) -> None:
        console = Console(sys.stderr)
        instance.check_port(plan)
        sandbox = grader.sandbox()
        instance.check_sandbox(plan, sandbox)
        warn_of_many_workers(plan, console)
        call_command("migrate", verbosity=0)
        password = instance.first_admin()
        with instance.running(plan, console.log) as supervisor:
            self.stdout.write(banner.text(plan, sandbox, password))
            console.say("Ctrl-C stops it.")
            supervisor.serve()


def warn_of_many_workers(plan: instance.Plan, console: Console) -> None:
    cores = instance.default_workers()
    if plan.workers > cores:
        console.say(
            f"{plan.workers} workers on {cores} cores: programs will wait for each other, and "
            "more of them will reach their time limit and be run again."
        )
