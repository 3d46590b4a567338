"""``manage.py sandbox_check``: what keeps programs in on this host."""

from __future__ import annotations

import sys
from argparse import RawDescriptionHelpFormatter
from collections.abc import Sequence
from typing import Any

from django.core.management.base import CommandParser

from evalsite.commands import SiteCommand
from evalsite.console import table
from grading.engine import selfcheck
from grading.engine.isolation import TIERS
from grading.engine.outcome import PlatformError
from grading.engine.sandbox import Sandbox

SAFE, WEAK, NOTHING_WORKS = 0, 1, 2


class Command(SiteCommand):
    help = (
        "Try every isolation tier and hardening of this host with the real interpreter, attack "
        "each in a namespace that is thrown away, and say what is missing and how to get it. "
        "Exit status: 0 fit for programs of strangers, 1 only for one's own, 2 no tier works."
    )

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        parser: CommandParser = super().create_parser(prog_name, subcommand, **kwargs)
        parser.formatter_class = RawDescriptionHelpFormatter
        parser.epilog = "Example: manage.py sandbox_check --tier bwrap --tier rlimit"
        return parser

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--tier", action="append", choices=TIERS, help="look at this one only; repeatable"
        )
        parser.add_argument("--no-attacks", action="store_true", help="only look, in a second")

    def handle(self, *args: Any, **options: Any) -> None:
        reports = selfcheck.look(options["tier"] or TIERS)
        results = [] if options["no_attacks"] else self._attack(reports)
        self.stdout.write(_tiers_table(reports))
        if results:
            self.stdout.write("\n" + _attacks_table(results))
        try:
            in_force = Sandbox("host")
            in_force.ensure()
        except PlatformError as problem:
            self.stderr.write(f"No tier works here: {problem}")
            sys.exit(NOTHING_WORKS)
        lines = selfcheck.missing(in_force, reports)
        self.stdout.write("\n" + ("\n".join(lines) if lines else "Nothing is missing."))
        self._end(in_force, results)

    def _attack(self, reports: Sequence[selfcheck.TierReport]) -> list[selfcheck.Result]:
        working = [report.tier for report in reports if report.works]
        try:
            return selfcheck.run(working) if working else []
        except PlatformError as problem:
            self.stderr.write(f"No attack was tried: {problem}.")
            return []

    def _end(self, sandbox: Sandbox, results: Sequence[selfcheck.Result]) -> None:
        through = [one for one in results if one.tier == sandbox.tier and not one.stopped]
        safe = sandbox.safe_for_strangers and not through
        fit = "programs of strangers" if safe else "one's own programs only"
        self.stdout.write(f"\nIn force: {sandbox.tier}, fit for {fit}.")
        if not safe:
            sys.exit(WEAK)


def _tiers_table(reports: Sequence[selfcheck.TierReport]) -> str:
    names = list(dict.fromkeys(name for report in reports for name in report.hardening))
    rows = [["works", *("yes" if report.works else "no" for report in reports)]]
    rows += [
        [name, *("yes" if name in report.hardening else "-" for report in reports)]
        for name in names
    ]
    return table(["tier", *(report.tier for report in reports)], rows)


def _attacks_table(results: Sequence[selfcheck.Result]) -> str:
    tiers = list(dict.fromkeys(result.tier for result in results))
    ended = {(one.attack, one.tier): "stopped" if one.stopped else "GOT THROUGH" for one in results}
    return table(
        ["attack", *tiers],
        [[name, *(ended.get((name, tier), "-") for tier in tiers)] for name in selfcheck.ATTACKS],
    )
