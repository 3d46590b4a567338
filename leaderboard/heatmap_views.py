"""The heatmap page."""

from __future__ import annotations

import csv
import io
import json

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from grading.models import BenchmarkVersion
from grading.permissions import version_or_404
from leaderboard import heatmap
from leaderboard.export import attachment, cell_text
from leaderboard.heatmap_chart import chart

TASKS_PER_PAGE = 24


@require_safe
def page(request: HttpRequest, slug: str, number: int | None = None) -> HttpResponse:
    """``?cell=``, ``?rows=`` and ``?columns=`` arrange it; ``?format=csv`` or ``json``."""
    version = version_or_404(request.user, slug, "" if number is None else str(number))
    chosen = heatmap.settings(request.GET)
    shown = heatmap.heatmap(version, **chosen)
    if "format" in request.GET:
        return _export(request.GET["format"], version, shown)
    context = {
        "version": version,
        "shown": shown,
        "chart": chart(shown),
        "chosen": chosen,
        "fields": [
            ("cell", "Cell", heatmap.CELLS),
            ("rows", "Models by", heatmap.ROWS),
            ("columns", "Tasks by", heatmap.COLUMNS),
        ],
        "page_obj": Paginator(shown.lines(), TASKS_PER_PAGE).get_page(request.GET.get("page")),
        "samples": reverse("submission-samples", args=["SUBMISSION"]),
    }
    return render(request, "leaderboard/heatmap.html", context)


def _export(name: str, version: BenchmarkVersion, shown: heatmap.Heatmap) -> HttpResponse:
    if name not in ("csv", "json"):
        raise Http404(f"no format {name!r}: csv and json are offered")
    text = _csv(shown) if name == "csv" else json.dumps(shown.as_dict())
    kind = {"csv": "text/csv", "json": "application/json"}[name]
    return attachment(text, kind, f"{version.benchmark.slug}-v{version.number}-heatmap.{name}")


def _csv(shown: heatmap.Heatmap) -> str:
    """A line per task, a column per model; empty where nothing was graded."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["task_id", *(cell_text(row.model) for row in shown.rows)])
    for column, values in shown.lines():
        writer.writerow([cell_text(column.task_id), *values])
    return text.getvalue()
