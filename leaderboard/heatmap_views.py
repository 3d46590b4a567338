"""The heatmap page."""

from __future__ import annotations

import json

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from grading.files import Writers, csv_text, markdown, md_figure, md_text, respond
from grading.models import BenchmarkVersion
from grading.permissions import version_or_404
from leaderboard import heatmap
from leaderboard.heatmap_chart import chart

TASKS_PER_PAGE = 24


@require_safe
def page(request: HttpRequest, slug: str, number: int | None = None) -> HttpResponse:
    """``?cell=``, ``?rows=`` and ``?columns=`` arrange it; ``?format=`` csv, json or md."""
    version = version_or_404(request.user, slug, "" if number is None else str(number))
    chosen = heatmap.settings(request.GET)
    shown = heatmap.heatmap(version, **chosen)
    if "format" in request.GET:
        name = f"{version.benchmark.slug}-v{version.number}-heatmap"
        return respond(request.GET["format"], name, _writers(version, shown, chosen["cell"]))
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


def _writers(version: BenchmarkVersion, shown: heatmap.Heatmap, cell: str) -> Writers:
    """In CSV and Markdown a line per task and a column per model, nothing where not graded."""
    title = f"{version.benchmark.title}, version {version.number}: {heatmap.CELLS[cell]}"
    names = [row.model for row in shown.rows]
    return {
        "csv": lambda: csv_text(
            ["task_id", *names], ([column.task_id, *values] for column, values in shown.lines())
        ),
        "json": lambda: json.dumps(shown.as_dict()),
        "md": lambda: markdown(
            title,
            (
                ["Task", *map(md_text, names)],
                [
                    [md_text(column.task_id), *map(md_figure, values)]
                    for column, values in shown.lines()
                ],
            ),
        ),
    }
