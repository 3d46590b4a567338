"""``manage.py refingerprint``: group all failures anew."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalsite.commands import SiteCommand
from grading import crash_groups

SHOWN = 20


class Command(SiteCommand):
    help = (
        "Compute the fingerprints of all failures anew, after a change of the rules or an upgrade. "
        "Groups keep their states. --dry-run tells what would change and changes nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="only tell")

    def handle(self, *args: Any, **options: Any) -> None:
        done = crash_groups.regroup(dry_run=options["dry_run"])
        verb = "would change" if options["dry_run"] else "changed"
        self.stdout.write(f"{done.samples} failures read, {done.changed} {verb} fingerprint.")
        for word, groups in (("splits", done.split), ("joins", done.joined)):
            for group in groups[:SHOWN]:
                self.stdout.write(f"{word}: {group}")
            if len(groups) > SHOWN:
                self.stdout.write(f"{word}: {len(groups) - SHOWN} more")
