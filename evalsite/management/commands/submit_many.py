"""``manage.py submit_many``: a folder of uploads, one run of a model per file."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import CommandError, CommandParser

from evalsite import demo, instance, progress, runs, submitting
from evalsite.commands import SiteCommand
from evalsite.console import Console, table
from evalsite.graders import Graders
from evalsite.runs import Refused, Run, Taken
from evalsite.supervisor import StartFailed
from grading.models import BenchmarkVersion
from leaderboard import queries

HEAD = ("model", "submission", "state", "samples", "pass@1", "mean fraction")


class Command(SiteCommand):
    help = (
        "Submit every upload file of a folder, each as a run of the model that its name says. "
        "What was submitted before is found again, so the command can be stopped and repeated. "
        "HumanEval is imported where it is missing. Uses the workers of a running instance, else "
        "--wait starts its own for the time of the call. Exit code 2: some files were refused, "
        "the others are in. Example: manage.py submit_many runs/ --benchmark humaneval "
        "--setting temperature=0 --wait"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, help="its files in any format of docs/uploads.md")
        parser.add_argument("--benchmark", required=True, help="its short name, as in its URL")
        parser.add_argument(
            "--pattern",
            type=_pattern,
            default=runs.WHOLE_NAME,
            metavar="REGEX",
            help="searched in each file's name: the group (?P<model>...) is the model's name "
            "(default: the whole name), other named groups are settings",
        )
        parser.add_argument(
            "--setting",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="of all runs; may be repeated",
        )
        parser.add_argument("--user", default="admin", help="uploader (default: admin)")
        parser.add_argument("--wait", action="store_true", help="until everything is graded")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        # Only what is wrong; progress is told on one line.
        os.environ.setdefault("EVALSITE_LOG_LEVEL", "WARNING")
        found = _runs(options["folder"], options["pattern"])
        call_command("migrate", verbosity=0)
        try:
            results = self._submit(found, options, Console(sys.stderr))
        except (instance.CannotStart, StartFailed) as problem:
            raise CommandError(str(problem)) from None
        except KeyboardInterrupt:
            raise CommandError(
                "stopped; what was submitted waits for `manage.py up`, the same command goes on"
            ) from None
        taken = [one for one in results if isinstance(one, Taken)]
        refused = [one for one in results if isinstance(one, Refused)]
        self.stdout.write(_as_json(taken, refused) if options["json"] else _as_text(taken))
        if refused:
            self.stderr.write(f"{len(refused)} of {len(results)} files were refused:")
            self.stderr.write("\n".join(one.reason for one in refused))
            sys.exit(submitting.REJECTED)

    def _submit(
        self, found: list[Run], options: dict[str, Any], console: Console
    ) -> list[Taken | Refused]:
        common = submitting.settings(options["setting"])
        version = _version(options["benchmark"])
        user = submitting.uploader(options["user"], console)
        results = list[Taken | Refused]()
        with contextlib.ExitStack() as stack:
            graders = Graders(stack, "manage.py submit_many", console.log)
            if options["wait"]:
                graders.ensure()
            for number, run in enumerate(found, 1):
                console.progress(f"Submitting {number} of {len(found)} files ...")
                results.append(runs.accept(run, version, user, common))
            console.progress_done(f"{len(found)} files: {_counts(results)}.")
            if options["wait"]:
                progress.wait(
                    [one.submission for one in results if isinstance(one, Taken)],
                    console,
                    graders.ensure,
                )
        return results


def _pattern(text: str) -> re.Pattern[str]:
    try:
        pattern = re.compile(text)
    except re.error as problem:
        raise argparse.ArgumentTypeError(f"no regular expression: {problem}") from None
    if not pattern.groupindex:
        raise argparse.ArgumentTypeError(
            "name what it finds: (?P<model>...), (?P<prompt_style>...)"
        )
    return pattern


def _runs(folder: Path, pattern: re.Pattern[str]) -> list[Run]:
    try:
        found = runs.in_folder(folder, pattern)
    except OSError as problem:
        raise CommandError(f"{folder}: {problem.strerror}") from None
    if not found:
        raise CommandError(f"{folder} holds no upload; their names end in {runs.ENDINGS}.")
    return found


def _version(slug: str) -> BenchmarkVersion:
    """The newest version; HumanEval, which needs no file, is imported where there is none."""
    if slug == demo.BENCHMARK and not BenchmarkVersion.objects.filter(benchmark__slug=slug):
        call_command("import_benchmark", slug, stdout=sys.stderr)
    return submitting.version(slug)


def _counts(results: Sequence[Taken | Refused]) -> str:
    new = sum(isinstance(one, Taken) and one.created for one in results)
    refused = sum(isinstance(one, Refused) for one in results)
    return f"{new} new, {len(results) - new - refused} submitted before, {refused} refused"


def _as_text(taken: Sequence[Taken]) -> str:
    """A table, the best first; nothing where nothing was taken."""
    rows = [(one, _figures(one)) for one in taken]
    rows.sort(key=lambda row: -row[1]["pass_at_k"].get("1", -1.0))
    return table(HEAD, [_cells(one, figures) for one, figures in rows]) if rows else ""


def _cells(one: Taken, figures: dict[str, Any]) -> list[str]:
    return [
        one.run.model,
        one.submission.public_id,
        figures["state"],
        f"{figures['graded']}/{figures['samples']}",
        demo.percent(figures["pass_at_k"].get("1")),
        demo.percent(figures["mean_fraction"]),
    ]


def _as_json(taken: Sequence[Taken], refused: Sequence[Refused]) -> str:
    found = [
        {
            "file": one.run.file.name,
            "model": one.run.model,
            "settings": one.submission.settings,
            "submission": one.submission.public_id,
            "created": one.created,
            **_figures(one),
        }
        for one in taken
    ]
    left = [{"file": one.run.file.name, "reason": one.reason} for one in refused]
    return json.dumps({"runs": found, "refused": left}, indent=2)


def _figures(one: Taken) -> dict[str, Any]:
    one.submission.refresh_from_db()
    return queries.submission_figures(one.submission).as_dict()
