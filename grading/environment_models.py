"""The record of an environment."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.db import models
from django.utils import timezone

from grading import environment_rules


class Environment(models.Model):
    """An interpreter with packages for benchmark versions; each grading host builds its own.

    ``COVERED`` is part of what makes a version: frozen as soon as one uses it.
    """

    COVERED = ("python", "packages", "provision", "variables", "address_space")
    SHOWN_PACKAGES = 3

    name = models.SlugField(unique=True, max_length=80)
    python = models.CharField(
        max_length=200,
        blank=True,
        help_text="A version such as 3.12, a path or a name; empty: the grader's own interpreter.",
    )
    packages = models.JSONField(
        default=list, blank=True, help_text="List of requirements, such as numpy==2.1.0."
    )
    provision = models.JSONField(
        default=list,
        blank=True,
        help_text="List of Python snippets that run once after the packages are installed.",
    )
    variables = models.JSONField(
        default=dict,
        blank=True,
        help_text="Variables of every process; {venv} stands for the environment's directory.",
    )
    address_space = models.BigIntegerField(
        null=True, blank=True, help_text="Bytes; 0: no limit; empty: the site's default."
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """Raises ValidationError by field."""
        wrong = dict(environment_rules.problems(self.content()))
        if wrong:
            raise ValidationError(wrong)

    def content(self) -> dict[str, Any]:
        """All that results depend on, JSON-ready: not its name, not what a host made of it."""
        return {name: getattr(self, name) for name in self.COVERED}

    @property
    def requirements(self) -> list[str]:
        """The packages without the installer's options, which may hold passwords."""
        return [line for line in self.packages if not line.startswith("-")]

    @property
    def summary(self) -> str:
        """Interpreter and packages in a few words."""
        shown = ", ".join(self.requirements[: self.SHOWN_PACKAGES])
        if len(self.requirements) > self.SHOWN_PACKAGES:
            shown += f" and {len(self.requirements) - self.SHOWN_PACKAGES} more"
        python = f"Python {self.python}" if self.python[:1].isdigit() else self.python
        python = python or "the grader’s Python"
        return f"{python} with {shown}" if shown else python
