"""The compare page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from grading.files import respond
from grading.models import Submission
from grading.permissions import version_or_404, visible_versions
from grading.templatetags.outcomes import MARKS
from leaderboard import queries
from leaderboard.comparison import (
    OUTCOMES,
    SHOWN,
    Comparison,
    TaskPair,
    chosen,
    compare,
    sides_of,
)
from leaderboard.comparison_export import writers
from leaderboard.comparison_words import finding, listed, what_it_takes
from leaderboard.program_pairs import program_pair

TASKS_PER_PAGE = 50


@require_safe
def start(request: HttpRequest) -> HttpResponse:
    """To the newest version with a public result, else the newest; home where there is none."""
    newest = visible_versions(request.user).select_related("benchmark").order_by("-created_at")
    public = newest.filter(submissions__visibility=Submission.Visibility.PUBLIC)
    version = public.first() or newest.first()
    return redirect("compare", version.benchmark.slug) if version else redirect("home")


@require_safe
def choose(request: HttpRequest, slug: str) -> HttpResponse:
    """To the page of ``?a=`` and ``?b=``, on the newest version or on ``?version=``.

    Of what is not given, the highest rows of the board.
    """
    number = request.GET.get("version", "")
    version = version_or_404(request.user, slug, number)
    a, b = request.GET.get("a", ""), request.GET.get("b", "")
    sides = sides_of(queries.board(version), version, a, b, request.user)
    if sides is None:
        return render(request, "leaderboard/compare_none.html", {"version": version})
    first, second = a or sides[0].model_slug, b or sides[1].model_slug
    rest = request.GET.copy()
    for name in ("a", "b", "version"):
        rest.pop(name, None)
    where = address(slug, first, second, version.number if number else None)
    return redirect(f"{where}?{rest.urlencode()}" if rest else where)


@require_safe
def page(
    request: HttpRequest, slug: str, a: str, b: str, number: int | None = None
) -> HttpResponse:
    """Two models by slug, or submissions by id, on the newest version or on ``number``.

    ``?task=`` shows the programs for one task; ``?format=`` gives all of it as a file.
    """
    version = version_or_404(request.user, slug, "" if number is None else str(number))
    found = compare(version, a, b, request.user)
    if found is None:
        return render(request, "leaderboard/compare_none.html", {"version": version})
    if "format" in request.GET:
        name = f"{slug}-{found.a.public_id}-{found.b.public_id}"
        return respond(request.GET["format"], name, writers(found))
    show = request.GET.get("show", "")
    show = show if show in SHOWN else "different"
    outcomes = _outcome(request, "from"), _outcome(request, "to")
    tasks = chosen(found.tasks, "all" if any(outcomes) else show, outcomes)
    context = {
        "version": version,
        "found": found,
        "finding": finding(found),
        "takes": what_it_takes(found),
        "models": _models(found),
        "chosen": (a, b),
        "swapped": address(slug, b, a, number),
        "page_obj": Paginator(tasks, TASKS_PER_PAGE).get_page(request.GET.get("page")),
        "listed": listed(len(tasks), show, outcomes),
        "show": "" if any(outcomes) else show,
        "matrix": _matrix(found),
        "marks": MARKS,
        "urls": [reverse("submission-samples", args=[row.public_id]) for row in (found.a, found.b)],
        **_programs(request, found, tasks),
    }
    return render(request, "leaderboard/compare.html", context)


def address(slug: str, a: str, b: str, number: int | None = None) -> str:
    """Of the page that compares ``a`` with ``b``; without ``number`` on the newest version."""
    if number is None:
        return reverse("compare_pair", args=[slug, a, b])
    return reverse("compare_version", args=[slug, number, a, b])


def _outcome(request: HttpRequest, name: str) -> str:
    value = request.GET.get(name, "")
    return value if value in OUTCOMES else ""


def _models(found: Comparison) -> list[tuple[str, str]]:
    """What there is to choose: slug and name of every model, and runs compared by their ids."""
    rows = sorted(
        (*found.board.ranked, *found.board.unranked), key=lambda row: row.model.casefold()
    )
    held = {row.public_id for row in rows}
    runs = {one.public_id: one.model for one in (found.a, found.b) if one.public_id not in held}
    return [
        *((row.model_slug, row.model) for row in rows),
        *((public_id, f"{model}, {public_id}") for public_id, model in runs.items()),
    ]


def _programs(request: HttpRequest, found: Comparison, tasks: Sequence[TaskPair]) -> dict[str, Any]:
    """The programs of ``?task=``, else of the first task listed, and its neighbours in the list."""
    wanted = request.GET.get("task", "")
    places = {pair.a.slug: place for place, pair in enumerate(tasks)}
    shown = next((pair for pair in found.tasks if pair.a.slug == wanted), None)
    shown = shown or (tasks[0] if tasks else None)
    if shown is None:
        return {}
    place = places.get(shown.a.slug)
    return {
        "programs": program_pair(found, shown, request.user),
        "before": tasks[place - 1].a.slug if place else "",
        "after": tasks[place + 1].a.slug if place is not None and place + 1 < len(tasks) else "",
    }


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
