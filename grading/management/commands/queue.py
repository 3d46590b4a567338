"""``manage.py queue``: how grading stands; pause it, resume it, drain the workers."""

from __future__ import annotations

import json
import time
from typing import Any

from django.contrib.auth.models import AnonymousUser, User
from django.core.management import call_command
from django.core.management.base import CommandError, CommandParser

from evalsite.commands import SiteCommand
from grading import queue_control
from grading.queries import queue as queries

MODES = {
    "pause": queue_control.Mode.PAUSED,
    "drain": queue_control.Mode.DRAINING,
    "resume": queue_control.Mode.RUNNING,
}
POLL_S = 0.5


class Command(SiteCommand):
    help = (
        "Tell how grading stands, or change it: pause finishes what is at work and begins nothing, "
        "drain has idle workers end as well, resume goes on. Uploads are taken all the while. "
        "Example: manage.py queue pause --reason 'new disk' --wait"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("do", choices=["status", *MODES], nargs="?", default="status")
        parser.add_argument("--reason", default="", help="why; shown to everybody who waits")
        parser.add_argument("--user", default="admin", help="who says so (default: admin)")
        parser.add_argument("--wait", action="store_true", help="until no worker holds anything")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        call_command("migrate", verbosity=0)
        if options["do"] in MODES:
            _change(MODES[options["do"]], options["user"], options["reason"])
        try:
            while options["wait"] and queries.holding():
                time.sleep(POLL_S)
        except KeyboardInterrupt:
            raise CommandError("stopped waiting; what was said stays in force") from None
        told = _told()
        lines = [f"{name.replace('_', ' ')}: {value}" for name, value in told.items()]
        self.stdout.write(json.dumps(told, indent=2) if options["json"] else "\n".join(lines))


def _change(mode: queue_control.Mode, name: str, reason: str) -> None:
    user = User.objects.filter(username=name).first()
    if user is None:
        raise CommandError(f"No user {name!r}.")
    try:
        queue_control.change(mode, user, reason)
    except ValueError as problem:
        raise CommandError(f"--reason: {problem}") from None


def _told() -> dict[str, Any]:
    queue = queries.queue(AnonymousUser())
    workers = len(queue.workers) if queue.answers else "the broker does not answer"
    return queue_control.as_dict(queue.stopped) | {
        "samples_waiting": queue.samples,
        "workers": workers,
        "held": queries.holding(),
    }
