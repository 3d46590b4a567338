"""Frame of every page: theme, main navigation, footer facts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django import template
from django.http import HttpRequest
from django.template import Context
from django.urls import reverse

from grading import permissions
from grading.engine.outcome import GRADER_VERSION
from grading.models import Submission
from grading.permissions import Action

register = template.Library()

# Order of the theme button: each press asks for the next one.
THEMES = {"auto": "light", "light": "dark", "dark": "auto"}


@dataclass(frozen=True, slots=True)
class Theme:
    """``value`` in force; ``next`` is what the button asks for."""

    value: str
    next: str

    @property
    def forced(self) -> bool:
        return self.value != "auto"

    @property
    def label(self) -> str:
        return self.value.capitalize()


@dataclass(frozen=True, slots=True)
class NavItem:
    """``current`` is the value of aria-current: ``page``, ``true`` (its section) or empty."""

    label: str
    url: str
    current: str


@register.simple_tag(takes_context=True)
def theme(context: Context) -> Theme:
    """The visitor's theme, from a cookie that may hold anything."""
    request = context.get("request")
    value = request.COOKIES.get("theme", "auto") if request else "auto"
    value = value if value in THEMES else "auto"
    return Theme(value, THEMES[value])


@register.inclusion_tag("partials/nav.html", takes_context=True)
def main_nav(context: Context) -> dict[str, Any]:
    request: HttpRequest | None = context.get("request")
    path = request.path if request else ""
    compares = path.startswith("/b/") and "/compare/" in path
    links: list[tuple[str, str, tuple[str, ...]]] = [
        ("Benchmarks", "home", () if compares else ("/b/", "/m/", "/s/")),
        ("Compare", "compare_start", ("/b/",) if compares else ()),
        ("Submit", "submit", ("/submit/",)),
        ("Queue", "queue", ("/queue/",)),
    ]
    user = getattr(request, "user", None)
    if user is not None and permissions.may(user, Action.TRIAGE):
        links.append(("Triage", "triage", ("/triage/", "/regrades/")))
    if user is not None and permissions.may(user, Action.MANAGE_PEOPLE):
        links.append(("People", "people", ("/people/",)))
    if user is not None and permissions.may(user, Action.SEE_JOBS):
        links.append(("Jobs", "django_rq:home", ("/admin/queues/",)))
    return {"items": [_item(path, *link) for link in links]}


def _item(path: str, label: str, name: str, sections: tuple[str, ...]) -> NavItem:
    url = reverse(name)
    if path == url:
        return NavItem(label, url, "page")
    return NavItem(label, url, "true" if path.startswith(sections) else "")


@register.simple_tag(takes_context=True)
def may(context: Context, action: str, submission: Submission | None = None) -> bool:
    """Whether the visitor may do ``action``, a value of `Action`; nobody may without a request."""
    user = context.get("user")
    return user is not None and permissions.may(user, Action(action), submission)


@register.simple_tag
def grader_version() -> int:
    return GRADER_VERSION


@register.inclusion_tag("partials/sort_head.html")
def sort_head(label: str, name: str, sort: str, numeric: bool = False) -> dict[str, Any]:
    """Column header with a link that sorts by it; a second press turns the order around."""
    descending = sort == f"-{name}"
    return {
        "label": label,
        "numeric": numeric,
        "order": "descending" if descending else "ascending" if sort == name else "",
        "target": f"-{name}" if sort == name else name,
    }
