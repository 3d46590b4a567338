"""Pages of a benchmark's tasks."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from grading.files import NAMES, respond
from grading.permissions import sees_targets, version_or_404
from grading.queries import task_files
from grading.queries import tasks as queries
from grading.queries.targets import target_lines


def tasks(request: HttpRequest, slug: str) -> HttpResponse:
    version = version_or_404(request.user, slug, request.GET.get("version", ""))
    context = {
        "version": version,
        "benchmark": version.benchmark,
        "counts": queries.version_counts(version),
        "page_obj": queries.task_page(version, request.user, request.GET.get("page", "1")),
    }
    return render(request, "grading/tasks.html", context)


def task(request: HttpRequest, slug: str, task_slug: str) -> HttpResponse:
    """``?format=`` gives the models' figures as a file."""
    version = version_or_404(request.user, slug, request.GET.get("version", ""))
    shown = queries.task_or_404(version, task_slug)
    models = queries.model_lines(shown, request.user)
    if "format" in request.GET:
        return respond(
            request.GET["format"],
            f"{slug}-v{version.number}-{shown.slug}",
            task_files.writers(version, shown, models),
        )
    context = {
        "version": version,
        "benchmark": version.benchmark,
        "task": shown,
        "open": sees_targets(request.user, version.benchmark),
        "targets": target_lines(shown),
        "reference": queries.reference(shown),
        "bugs": queries.under_review(shown),
        "models": models,
        "formats": NAMES.items(),
    }
    return render(request, "grading/task.html", context)
