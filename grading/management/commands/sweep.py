"""The sweep process."""

from __future__ import annotations

import signal
import threading
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser
from django.db import Error, connections
from django.utils.module_loading import import_string

from evalsite.commands import SiteCommand
from grading import sweep

EVERY_S = 10.0


class Command(SiteCommand):
    help = (
        "Set going again what lost workers, an emptied broker or a crash left behind, "
        f"every {EVERY_S:g} seconds until SIGTERM. Run one per instance. "
        "Example: manage.py sweep --once"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--once", action="store_true", help="sweep once, say what was repaired")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["once"]:
            self.stdout.write(str(sweep.sweep_once()))
            self._take_steps()
            return
        ended = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: ended.set())
        while not ended.is_set():
            self._sweep()
            ended.wait(EVERY_S)

    def _sweep(self) -> None:
        """One round; a database that is away for a while does not end the process."""
        try:
            swept = sweep.sweep_once()
            if swept.repaired:
                self.stdout.write(str(swept))
            self._take_steps()
        except Error as problem:
            self.stderr.write(f"sweep: {problem}")
            connections.close_all()

    def _take_steps(self) -> None:
        """What apps above this one have done every round; each step says what it did, if it did."""
        for step in settings.SWEEP_STEPS:
            if said := import_string(step)():
                self.stdout.write(said)
