"""Environments of benchmark versions: what they hold, who uses them, their sandboxes.

What an environment holds is part of what makes a version: once a version uses it, it is frozen.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from grading.engine.environment import Environment as Built
from grading.engine.outcome import PlatformError
from grading.engine.sandbox import Sandbox
from grading.environment_rules import NO_LIMIT
from grading.models import BenchmarkVersion, Environment, RegradeRun


class Frozen(Exception):
    """A benchmark version uses the environment, so what it holds cannot change."""


def is_used(environment: Environment) -> bool:
    return environment.versions.exists()


def named(name: str) -> Environment:
    """Raises Environment.DoesNotExist with the names there are."""
    found = Environment.objects.filter(name=name).first()
    if found is None:
        known = ", ".join(Environment.objects.values_list("name", flat=True)) or "none"
        raise Environment.DoesNotExist(
            f"No environment {name!r}; there are: {known}. Make one with manage.py environment."
        )
    return found


@transaction.atomic
def store(name: str, changes: dict[str, Any]) -> Environment:
    """The environment ``name``, made if it is new, with ``changes`` to what is covered.

    Raises ValidationError, and `Frozen` where a version uses it and something would change.
    """
    found = Environment.objects.select_for_update().filter(name=name).first()
    environment = found or Environment(name=name)
    before = environment.content()
    for field, value in changes.items():
        setattr(environment, field, value)
    if found and environment.content() == before:
        return environment
    if found and is_used(found):
        raise Frozen(
            f"{found.versions.first()} uses the environment {name}: give the changed one a new name"
        )
    environment.full_clean()
    environment.save()
    return environment


def of_submission(submission_id: int) -> Environment | None:
    """Where the samples of a submission run; None is the grader's own interpreter."""
    return Environment.objects.filter(versions__submissions=submission_id).first()


def of_regrade(regrade_id: int) -> list[Environment | None]:
    """Where the runs of a regrade that are still to be made run, each once."""
    queued = RegradeRun.objects.filter(regrade=regrade_id, state=RegradeRun.State.QUEUED)
    versions = BenchmarkVersion.objects.filter(pk__in=queued.values("task__version"))
    return list({one.environment for one in versions.select_related("environment")})


def options(environment: Environment | None) -> str:
    """What ``python -m grading.engine`` takes to run in it; it knows interpreter and packages."""
    if environment is None:
        return ""
    python = ["--python", environment.python] if environment.python else []
    packages = [word for name in environment.requirements for word in ("--package", name)]
    return "".join(f" {shlex.quote(word)}" for word in (*python, *packages))


@dataclass(frozen=True, slots=True)
class OnThisHost:
    """What this host has of an environment, without building it: at most one of the two."""

    environment: Environment
    built: Built | None = None
    problem: str = ""


def on_this_host(environment: Environment) -> OnThisHost:
    try:
        return OnThisHost(environment, sandbox(environment, 0).built())
    except PlatformError as problem:
        return OnThisHost(environment, problem=str(problem))


def sandbox(environment: Environment, address_space: int) -> Sandbox:
    """Not started yet. ``address_space`` in bytes is the site's default. Raises PlatformError."""
    own = environment.address_space
    limit = address_space if own is None else own
    return Sandbox(
        environment.name,
        packages=environment.packages,
        base_python=environment.python or None,
        provision=environment.provision,
        env=environment.variables,
        address_space_limit=None if limit == NO_LIMIT else limit,
    )
