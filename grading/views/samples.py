"""The sample page and its downloads."""

from __future__ import annotations

import json

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from grading import environments
from grading.models import Sample
from grading.permissions import (
    sees_generations,
    sees_targets,
    shown_submission_or_404,
    submission_or_404,
    visible_submissions,
)
from grading.queries import samples as queries


def sample(request: HttpRequest, public_id: str, task_slug: str, index: int) -> HttpResponse:
    found = submission_or_404(request.user, public_id)
    row = queries.sample_or_404(found, task_slug, index)
    if not sees_generations(request.user, found):
        return render(request, "grading/sample_hidden.html", {"submission": found, "sample": row})
    open_ = sees_targets(request.user, found.version.benchmark)
    context = {
        "submission": found,
        "benchmark": found.version.benchmark,
        "view": queries.sample_view(
            row, open_, visible_submissions(request.user), _attempt_number(request)
        ),
        "case_name": _case_name(row),
        "interpreter_options": environments.options(found.version.environment),
        "own_policies": queries.has_own_policies(found.version.benchmark),
    }
    return render(request, "grading/sample.html", context)


def _attempt_number(request: HttpRequest) -> int | None:
    value = request.GET.get("attempt", "")
    return int(value) if value.isascii() and value.isdigit() and len(value) < 5 else None


def _case_name(row: Sample) -> str:
    return f"{row.task.slug}-{row.index}.jsonl"


def generation(request: HttpRequest, public_id: str, task_slug: str, index: int) -> HttpResponse:
    found = shown_submission_or_404(request.user, public_id)
    row = queries.sample_or_404(found, task_slug, index)
    return attachment(row.generation.text, f"{row.task.slug}-{row.index}-generation.txt")


def program(request: HttpRequest, public_id: str, task_slug: str, index: int) -> HttpResponse:
    found = shown_submission_or_404(request.user, public_id)
    row = queries.sample_or_404(found, task_slug, index)
    return attachment(queries.program_or_404(row), f"{row.task.slug}-{row.index}-program.txt")


def case(request: HttpRequest, public_id: str, task_slug: str, index: int) -> HttpResponse:
    """One row for ``python -m grading.engine``. It holds the targets: 404 where they are hidden."""
    found = shown_submission_or_404(request.user, public_id)
    if not sees_targets(request.user, found.version.benchmark):
        raise Http404
    row = queries.sample_or_404(found, task_slug, index)
    return attachment(json.dumps(queries.case_row(row)) + "\n", _case_name(row))


def attachment(text: str, file_name: str) -> HttpResponse:
    """Hostile text as a download that no browser renders; lone surrogates are escaped."""
    return HttpResponse(
        text.encode("utf-8", "backslashreplace"),
        content_type="text/plain; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{file_name}"'},
    )
