"""``manage.py submit``: an upload from the command line."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import CommandError, CommandParser
from django.urls import reverse

from evalsite import instance, progress, submitting
from evalsite.commands import SiteCommand
from evalsite.console import Console
from evalsite.graders import Graders
from evalsite.supervisor import StartFailed
from grading import quotas, uploads
from grading.engine.task import Format
from grading.intake.fields import Choices
from grading.intake.task_table import Match
from grading.models import Submission
from leaderboard import queries


class Command(SiteCommand):
    help = (
        "Upload generations and have them graded. Uses the workers of a running instance, else "
        "--wait starts its own for the time of the call. Example: manage.py submit "
        "samples.jsonl.gz --benchmark humaneval --model 'My model' --setting temperature=0.2 "
        "--wait --json"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="any format of docs/uploads.md")
        parser.add_argument("--benchmark", required=True, help="its short name, as in its URL")
        parser.add_argument("--model", required=True, help="name of the language model")
        parser.add_argument("--user", default="admin", help="uploader (default: admin)")
        parser.add_argument(
            "--setting", action="append", default=[], metavar="NAME=VALUE", help="may be repeated"
        )
        parser.add_argument("--text-field", default="", metavar="NAME", help="instead of detecting")
        parser.add_argument("--reading", default="", choices=[one.value for one in Format])
        parser.add_argument("--match", default="", choices=[one.value for one in Match])
        parser.add_argument("--good-lines-only", action="store_true", help="leave out bad records")
        parser.add_argument(
            "--dry-run", action="store_true", help="print the report, store and queue nothing"
        )
        parser.add_argument("--wait", action="store_true", help="until everything is graded")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        # Only what is wrong; progress is told on one line.
        os.environ.setdefault("EVALSITE_LOG_LEVEL", "WARNING")
        console = Console(sys.stderr)
        call_command("migrate", verbosity=0)
        if options["dry_run"]:
            self._report(options)
            return
        try:
            submission = self._submit(options, console)
        except uploads.UploadRejected as rejected:
            self.stderr.write(str(rejected))
            sys.exit(submitting.REJECTED)
        except quotas.QuotaExceeded as refusal:
            raise CommandError(str(refusal), returncode=submitting.REJECTED) from None
        except (instance.CannotStart, StartFailed) as problem:
            raise CommandError(str(problem)) from None
        except KeyboardInterrupt:
            raise CommandError("stopped; what is not graded yet waits for `manage.py up`") from None
        result = _result(submission)
        self.stdout.write(json.dumps(result, indent=2) if options["json"] else _sentence(result))

    def _report(self, options: dict[str, Any]) -> None:
        with _opened(options["file"]) as stream:
            report = uploads.check(
                stream,
                options["file"].name,
                submitting.version(options["benchmark"]),
                _choices(options),
            )
        as_json = json.dumps(report.as_dict(), indent=2)
        self.stdout.write(as_json if options["json"] else uploads.report_text(report))
        if not report.ok:
            sys.exit(submitting.REJECTED)

    def _submit(self, options: dict[str, Any], console: Console) -> Submission:
        version = submitting.version(options["benchmark"])
        uploader = submitting.uploader(options["user"], console)
        with contextlib.ExitStack() as stack:
            graders = Graders(stack, "manage.py submit", console.log)
            if options["wait"]:
                graders.ensure()
            stream = stack.enter_context(_opened(options["file"]))
            submission = uploads.accept(
                stream,
                options["file"].name,
                version,
                options["model"],
                uploader,
                submitting.settings(options["setting"]),
                good_lines_only=options["good_lines_only"],
                choices=_choices(options),
            ).submission
            if options["wait"]:
                progress.wait([submission], console, graders.ensure)
        submission.refresh_from_db()
        return submission


def _choices(options: dict[str, Any]) -> Choices:
    return Choices(options["text_field"], options["reading"], options["match"])


def _opened(file: Path) -> Any:
    try:
        return file.open("rb")
    except OSError as problem:
        raise CommandError(f"{file}: {problem.strerror}") from None


def _result(submission: Submission) -> dict[str, Any]:
    return {
        "submission": submission.public_id,
        "url": reverse("submission", args=[submission.public_id]),
        "benchmark": submission.version.benchmark.slug,
        "version": submission.version.number,
        "model": submission.language_model.name,
        **queries.submission_figures(submission).as_dict(),
    }


def _sentence(result: dict[str, Any]) -> str:
    scores = [f"pass@{k} {value:.4f}" for k, value in result["pass_at_k"].items()]
    counted = f"{result['graded']} of {result['samples']} samples graded"
    return ", ".join([f"Submission {result['submission']} ({result['state']}): {counted}", *scores])
