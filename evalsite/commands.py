"""What the project's own commands have in common."""

from __future__ import annotations

from django.core.checks import Tags
from django.core.management.base import BaseCommand


class SiteCommand(BaseCommand):
    """A command that checks the settings before it runs, and not the code.

    Django's checks of the code import every page and the API, which takes as long as all the rest
    of a worker's start; `make lint` runs them.
    """

    requires_system_checks = [Tags.security]
