"""What the commands that submit have in common: benchmark, uploader, settings."""

from __future__ import annotations

import json
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.core.management.base import CommandError

from evalsite import instance
from evalsite.console import Console
from grading.models import Benchmark, BenchmarkVersion

# Exit code: a file was not taken.
REJECTED = 2


def version(slug: str) -> BenchmarkVersion:
    """The newest version of a benchmark."""
    found = BenchmarkVersion.objects.filter(benchmark__slug=slug).order_by("-number").first()
    if found is None:
        known = ", ".join(Benchmark.objects.values_list("slug", flat=True)) or "none"
        raise CommandError(
            f"No benchmark {slug!r}; there are: {known}. "
            "Import one with manage.py import_benchmark NAME|FILE."
        )
    return found


def uploader(name: str, console: Console) -> AbstractBaseUser:
    """The user ``name``; a first admin is made where there is none, and its password shown."""
    password = instance.first_admin()
    if password:
        console.say(f"Made the user admin with the password {password} (shown only now).")
    user = get_user_model().objects.filter(username=name).first()
    if user is None:
        raise CommandError(f"No user {name!r}. Make one with manage.py createsuperuser.")
    return user


def settings(given: list[str]) -> dict[str, Any]:
    """``temperature=0.2`` and the like as names and values."""
    return dict(map(_setting, given))


def value(text: str) -> Any:
    """A value that is JSON is taken as such, anything else as text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _setting(text: str) -> tuple[str, Any]:
    name, equals, given = text.partition("=")
    if not equals or not name:
        raise CommandError(f"--setting {text!r}: use NAME=VALUE")
    return name, value(given)
