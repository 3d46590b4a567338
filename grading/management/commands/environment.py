"""``manage.py environment``: make, build and list environments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.core.management.base import CommandError, CommandParser

from evalsite.commands import SiteCommand
from grading import environment_rules, environments, grader
from grading.engine.outcome import PlatformError
from grading.models import Environment


class Command(SiteCommand):
    help = (
        "Make the environment NAME, or change it, and build it on this host; without options "
        "build it as it is. Without NAME list all. One that a benchmark version uses cannot be "
        "changed. Example: manage.py environment science --python 3.12 --package numpy==2.1.0"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", metavar="NAME", nargs="?")
        parser.add_argument("--python", metavar="SPEC", help="a version, a path or a name")
        parser.add_argument(
            "--package", action="append", metavar="REQUIREMENT", help="may be repeated"
        )
        parser.add_argument("--requirements", type=Path, metavar="FILE", help="one package a line")
        parser.add_argument(
            "--provision",
            action="append",
            type=Path,
            metavar="FILE",
            help="Python that runs once after the packages; may be repeated",
        )
        parser.add_argument(
            "--variable",
            action="append",
            metavar="NAME=VALUE",
            help="{venv} in it is the environment's directory; may be repeated",
        )
        parser.add_argument(
            "--address-space", metavar="SIZE", help="of each program: such as 8G, none or default"
        )
        parser.add_argument("--force", action="store_true", help="build it anew")

    def handle(self, *args: Any, **options: Any) -> None:
        call_command("migrate", verbosity=0)
        if not options["name"]:
            self._list()
            return
        try:
            environment = environments.store(options["name"], _changes(options))
        except (ValueError, OSError, environments.Frozen) as problem:
            raise CommandError(str(problem)) from None
        except ValidationError as problem:
            raise CommandError(_sentences(problem)) from None
        self.stdout.write(f"{environment.name}: {environment.summary}")
        try:
            self._build(environment, options["force"])
        except PlatformError as problem:
            raise CommandError(f"{environment.name} is stored, but: {problem}") from None

    def _build(self, environment: Environment, force: bool) -> None:
        sandbox = grader.sandbox_of(environment, say=self.stderr.write, force=force)
        grader.check(environment)
        built = sandbox.environment
        self.stdout.write(f"Python {built.version}, {sandbox.tier}, stamp {built.stamp or 'none'}")
        for distribution in built.installed:
            self.stdout.write(f"  {distribution}")

    def _list(self) -> None:
        found = list(Environment.objects.all())
        if not found:
            self.stdout.write("There is no environment: programs run in the grader's interpreter.")
        for environment in found:
            self.stdout.write(f"{environment.name}: {environment.summary}; {_used_by(environment)}")


def _used_by(environment: Environment) -> str:
    versions = ", ".join(map(str, environment.versions.select_related("benchmark")))
    return f"used by {versions}" if versions else "not used"


def _changes(options: dict[str, Any]) -> dict[str, Any]:
    """Fields that the options replace. Raises ValueError, OSError."""
    changes: dict[str, Any] = {}
    if options["python"] is not None:
        changes["python"] = options["python"]
    if options["package"] or options["requirements"]:
        file = options["requirements"]
        listed = environment_rules.requirements(file.read_text("utf-8")) if file else []
        changes["packages"] = [*listed, *(options["package"] or [])]
    if options["provision"]:
        changes["provision"] = [file.read_text("utf-8") for file in options["provision"]]
    if options["variable"]:
        changes["variables"] = dict(map(_variable, options["variable"]))
    if options["address_space"]:
        changes["address_space"] = environment_rules.address_space(options["address_space"])
    return changes


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"--variable {text!r}: use NAME=VALUE")
    return name, value


def _sentences(problem: ValidationError) -> str:
    return " ".join(f"{name}: {' '.join(said)}" for name, said in problem.message_dict.items())
