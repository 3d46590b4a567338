"""The page of the task audit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from typing import Any

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from grading.files import Writers, csv_text, json_text, markdown, md_figure, md_text, respond
from grading.flags import FLAGS
from grading.models import BenchmarkVersion
from grading.permissions import version_or_404
from leaderboard import audit
from leaderboard.audit_charts import bins, histogram, scatter

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
    """``?flag=`` lists the tasks with one flag; ``?format=`` gives all findings."""
    version = version_or_404(request.user, slug, str(number))
    found = audit.latest(version) or []
    if "format" in request.GET:
        return respond(request.GET["format"], f"{slug}-v{number}-audit", _writers(version, found))
    sort = request.GET.get("sort", "")
    sort = sort if sort in SORTS else "flags"
    flag = request.GET.get("flag", "")
    listed = sorted(
        (one for one in found if flag not in FLAGS or flag in one.flags), key=SORTS[sort][1]
    )
    flagged = {name: [one.slug for one in found if name in one.flags] for name in FLAGS}
    context = {
        "version": version,
        "found": found,
        "flags": [
            (name, said, len(flagged[name]), ",".join(flagged[name]))
            for name, said in FLAGS.items()
        ],
        "flag": flag if flag in FLAGS else "",
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


def _writers(version: BenchmarkVersion, found: Sequence[audit.Finding]) -> Writers:
    """A line per task in their order; shares 0..1."""
    names = [field.name for field in fields(audit.Finding)]
    rows = [asdict(one) for one in found]
    title = f"{version.benchmark.title}, version {version.number}: audit of its tasks"
    head = ["Task", "Models", "Solved by", "Mean", "Discrimination", "Flake", "Close", "Flags"]
    return {
        "csv": lambda: csv_text(
            names, ([*list(row.values())[:-1], "; ".join(row["flags"])] for row in rows)
        ),
        "json": lambda: json_text(rows),
        "md": lambda: markdown(title, (head, map(_md_cells, found))),
    }


def _md_cells(one: audit.Finding) -> list[str]:
    figures = (one.solved_by, one.mean, one.discrimination, one.flake, one.close)
    return [
        md_text(one.task_id),
        str(one.models),
        *map(md_figure, figures),
        ", ".join(one.flags) or "–",
    ]
