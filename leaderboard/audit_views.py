"""The page of the task audit."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from grading.models import BenchmarkVersion
from grading.permissions import version_or_404
from leaderboard import audit
from leaderboard.audit_charts import bins, histogram, scatter
from leaderboard.export import attachment

TASKS_PER_PAGE = 50
LAST = 9.0
SORTS: dict[str, tuple[str, Callable[[audit.Finding], Any]]] = {
    "flags": ("flags first", lambda one: -len(one.flags)),
    "hardest": ("hardest first", lambda one: LAST if one.mean is None else one.mean),
    "discrimination": (
        "lowest discrimination first",
        lambda one: LAST if one.discrimination is None else one.discrimination,
    ),
}


@require_safe
def page(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """``?flag=`` lists the tasks with one flag; ``?format=json`` gives all findings."""
    version = version_or_404(request.user, slug, str(number))
    found = audit.latest(version) or []
    if "format" in request.GET:
        if request.GET["format"] != "json":
            raise Http404("json is offered")
        text = json.dumps([asdict(one) for one in found], indent=2)
        return attachment(text, "application/json", f"{slug}-v{number}-audit.json")
    sort = request.GET.get("sort", "")
    sort = sort if sort in SORTS else "flags"
    flag = request.GET.get("flag", "")
    listed = sorted(
        (one for one in found if flag not in audit.FLAGS or flag in one.flags), key=SORTS[sort][1]
    )
    flagged = {name: [one.slug for one in found if name in one.flags] for name in audit.FLAGS}
    context = {
        "version": version,
        "found": found,
        "flags": [
            (name, said, len(flagged[name]), ",".join(flagged[name]))
            for name, said in audit.FLAGS.items()
        ],
        "flag": flag if flag in audit.FLAGS else "",
        "sorts": [(key, label) for key, (label, _) in SORTS.items()],
        "sort": sort,
        "histogram": histogram(found),
        "bins": bins(found),
        "scatter": _scatter(version, found),
        "least_models": audit.LEAST_MODELS,
        "page_obj": Paginator(listed, TASKS_PER_PAGE).get_page(request.GET.get("page")),
    }
    return render(request, "leaderboard/audit.html", context)


def _scatter(version: BenchmarkVersion, found: Sequence[audit.Finding]) -> str:
    if all(one.discrimination is None for one in found):
        return ""

    def address(slug: str) -> str:
        page = reverse("task", args=[version.benchmark.slug, slug])
        return f"{page}?version={version.number}"

    return scatter(found, address)
