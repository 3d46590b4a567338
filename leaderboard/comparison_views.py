"""The compare page."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from grading.models import Submission
from grading.permissions import version_or_404, visible_versions
from grading.templatetags.outcomes import MARKS
from leaderboard.comparison import OUTCOMES, SHOWN, Comparison, chosen, compare
from leaderboard.comparison_export import to_json
from leaderboard.comparison_words import finding
from leaderboard.export import attachment

TASKS_PER_PAGE = 50
SHOWN_WORDS = {
    "different": "that differ",
    "all": "in common",
    "both": "solved by both",
    "only_a": "solved by A only",
    "only_b": "solved by B only",
    "neither": "solved by neither",
}


@require_safe
def start(request: HttpRequest) -> HttpResponse:
    """To the newest version with a public result, else the newest; home where there is none."""
    newest = visible_versions(request.user).select_related("benchmark").order_by("-created_at")
    public = newest.filter(submissions__visibility=Submission.Visibility.PUBLIC)
    version = public.first() or newest.first()
    return redirect("compare", version.benchmark.slug) if version else redirect("home")


@require_safe
def page(request: HttpRequest, slug: str) -> HttpResponse:
    """Models ``?a=`` and ``?b=`` by slug, on the newest version or on ``?version=``.

    ``?format=json`` gives all of it as data.
    """
    version = version_or_404(request.user, slug, request.GET.get("version", ""))
    found = compare(version, request.GET.get("a", ""), request.GET.get("b", ""))
    if found is None:
        return render(request, "leaderboard/compare_none.html", {"version": version})
    if request.GET.get("format") == "json":
        name = f"{slug}-{found.a.public_id}-{found.b.public_id}.json"
        return attachment(to_json(found), "application/json", name)
    show = request.GET.get("show", "")
    show = show if show in SHOWN else "different"
    outcomes = _outcome(request, "from"), _outcome(request, "to")
    tasks = chosen(found.tasks, "all" if any(outcomes) else show, outcomes)
    context = {
        "version": version,
        "found": found,
        "finding": finding(found),
        "models": sorted(
            (*found.board.ranked, *found.board.unranked), key=lambda row: row.model.casefold()
        ),
        "page_obj": Paginator(tasks, TASKS_PER_PAGE).get_page(request.GET.get("page")),
        "which": " to ".join(outcomes) if all(outcomes) else SHOWN_WORDS[show],
        "show": "" if any(outcomes) else show,
        "matrix": _matrix(found),
        "marks": MARKS,
        "urls": [reverse("submission-samples", args=[row.public_id]) for row in (found.a, found.b)],
    }
    return render(request, "leaderboard/compare.html", context)


def _outcome(request: HttpRequest, name: str) -> str:
    value = request.GET.get(name, "")
    return value if value in OUTCOMES else ""


def _matrix(found: Comparison) -> list[dict[str, Any]]:
    """Rows of the outcome matrix: each cell its count, its shade 0..5 and the outcome of b."""
    counted = found.matrix()
    most = max(max(row) for row in counted) or 1
    return [
        {
            "outcome": mine,
            "total": sum(row),
            "cells": [
                {"outcome": other, "tasks": tasks, "shade": -(-5 * tasks // most)}
                for other, tasks in zip(OUTCOMES, row, strict=True)
            ],
        }
        for mine, row in zip(OUTCOMES, counted, strict=True)
    ]
