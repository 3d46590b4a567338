"""What the audit says of a task, for its page."""

from __future__ import annotations

from django import template

from grading.flags import FLAGS
from grading.models import BenchmarkVersion
from leaderboard.audit import Finding, latest

register = template.Library()


@register.simple_tag
def task_finding(version: BenchmarkVersion, slug: str) -> Finding | None:
    found = latest(version) or []
    return next((one for one in found if one.slug == slug), None)


@register.filter
def flag_words(name: str) -> str:
    """What a flag means."""
    return FLAGS[name]
