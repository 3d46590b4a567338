"""One grading worker."""

from __future__ import annotations

import os
from typing import Any

from django.core.management.base import CommandError, CommandParser

from evalsite import broker, env, queueing
from evalsite.commands import SiteCommand
from grading import grader
from grading.engine.isolation.hardening import stay_on_core
from grading.engine.outcome import PlatformError


class Command(SiteCommand):
    help = (
        "Grade queued samples until SIGTERM, which ends the worker after the sample in hand. "
        "Run one worker per core. Example: EVALSITE_WORKER_SLOT=1 manage.py worker"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--burst", action="store_true", help="stop when the queue is empty instead of waiting"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        slot = env.integer("EVALSITE_WORKER_SLOT", default=0, minimum=0)
        stay_on_core()
        try:
            grader.sandbox()
            if refusal := grader.refusal():
                raise CommandError(refusal)
            worker = queueing.worker(f"w{slot}-{os.getpid()}", grader.keep_ready)
        except (PlatformError, broker.NoBroker) as problem:
            raise CommandError(str(problem)) from problem
        worker.work(burst=options["burst"], logging_level="WARNING")
