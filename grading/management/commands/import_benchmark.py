"""``manage.py import_benchmark``: a task file, or HumanEval, as a benchmark version."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import CommandError, CommandParser
from django.utils.text import slugify

from evalsite.commands import SiteCommand
from grading import benchmarks, environments, grader
from grading.engine import humaneval, task_files
from grading.engine.jsonl import Problem, ProblemLog
from grading.engine.outcome import PlatformError
from grading.engine.task_files import TaskSource
from grading.models import Environment

REFUSED = 2
KNOWN = {"humaneval": task_files.human_eval}


class Command(SiteCommand):
    help = (
        "Import tasks as a frozen version of a benchmark and grade their reference solutions. "
        "NAME is humaneval (from the package human-eval); FILE holds task records, or tasks as "
        "HumanEval, MBPP, APPS, LiveCodeBench, ClassEval and BigCodeBench publish them: .jsonl or "
        "a .json array, packed with gzip or not. Importing the same content again changes "
        "nothing. Exit code 2: refused because of problems in the file, which are listed by line. "
        "Example: manage.py import_benchmark tasks.jsonl --slug mine --title 'My tasks'"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", metavar="NAME|FILE")
        parser.add_argument("--slug", help="short name in URLs (default: from the file's name)")
        parser.add_argument("--title", help="name on the pages (default: the file's name)")
        parser.add_argument(
            "--allow-bad-tasks", action="store_true", help="import the good records all the same"
        )
        parser.add_argument(
            "--skip-references", action="store_true", help="do not grade reference solutions"
        )
        parser.add_argument(
            "--environment", metavar="NAME", help="where programs run; see manage.py environment"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        call_command("migrate", verbosity=0)
        source = _source(options["name"])
        slug = options["slug"] or slugify(source.title)
        if not slug or slug != slugify(slug):
            raise CommandError(f"--slug {slug!r}: use lower-case letters, digits and hyphens")
        environment = _environment(options["environment"])
        self._tell(source)
        try:
            imported = benchmarks.import_version(
                slug,
                options["title"] or source.title,
                source.records,
                source.problems,
                source.origin,
                options["allow_bad_tasks"],
                {
                    "dropped_targets": [
                        {"task_id": one.task_id, "target": one.target} for one in source.dropped
                    ],
                    "warnings": source.warnings.total,
                },
                environment,
            )
        except benchmarks.ImportRefused as refused:
            hint = "" if refused.problems.fatal else " Fix them or pass --allow-bad-tasks."
            self.stderr.write(f"Refused: {refused}.{hint}")
            sys.exit(REFUSED)
        state = "imported" if imported.created else "was here already"
        self.stdout.write(f"{imported.version} {state} as {slug}.")
        if not options["skip_references"]:
            self._references(imported.version)

    def _tell(self, source: TaskSource) -> None:
        targets = sum(len(record.targets) for record in source.records)
        read = f"{source.origin} ({source.format})"
        self.stdout.write(f"{read}: {len(source.records)} tasks, {targets} targets.")
        if source.dropped:
            tasks = len({one.task_id for one in source.dropped})
            self.stdout.write(
                f"Dropped {len(source.dropped)} constant targets in {tasks} tasks: "
                "they hold whatever a program does."
            )
        self._list("problems", source.problems)
        self._list("warnings", source.warnings)

    def _list(self, what: str, log: ProblemLog) -> None:
        if not log.total:
            return
        first = f", the first {len(log.kept)}" if log.total > len(log.kept) else ""
        self.stdout.write(f"{log.total} {what}{first}:")
        for problem in log.kept:
            self.stdout.write(f"  {_sentence(problem)}")

    def _references(self, version: Any) -> None:
        try:
            sandbox = grader.sandbox_of(version.environment, say=self.stderr.write)
            report = benchmarks.grade_references(version, sandbox, self._progress)
        except PlatformError as problem:
            raise CommandError(
                f"The reference solutions could not be graded: {problem}. The tasks are "
                "imported; run the command again, or with --skip-references."
            ) from None
        if not report.total:
            self.stdout.write("No task has a reference solution.")
            return
        self.stdout.write(f"Reference solutions: {report.passed} of {report.total} pass.")
        for failed in report.failed:
            self.stdout.write(f"  {failed.task_id}: {failed.outcome} {failed.detail}".rstrip())

    def _progress(self, done: int, total: int) -> None:
        if self.stderr.isatty():
            end = "\n" if done == total else "\r"
            self.stderr.write(f"Grading reference solutions: {done}/{total}", ending=end)


def _environment(name: str | None) -> Environment | None:
    if name is None:
        return None
    try:
        return environments.named(name)
    except Environment.DoesNotExist as problem:
        raise CommandError(str(problem)) from None


def _source(name: str) -> TaskSource:
    try:
        if name in KNOWN and not Path(name).exists():
            return KNOWN[name]()
        with open(name, "rb") as stream:
            return task_files.read(stream, Path(name).name)
    except (humaneval.MissingData, ValueError) as problem:
        raise CommandError(str(problem)) from None
    except OSError as problem:
        known = ", ".join(KNOWN)
        raise CommandError(
            f"{name}: {problem.strerror}. Give a task file, or one of: {known}."
        ) from None


def _sentence(problem: Problem) -> str:
    place = f"line {problem.line}" if problem.line else "file"
    about = " ".join(part for part in (problem.task_id, problem.field) if part)
    return f"{place}: {about + ': ' if about else ''}{problem.rule}: {problem.detail}"
