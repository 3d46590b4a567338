"""Pages of one submission: live progress, result, list of samples, cancel."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST
from django_htmx.http import HttpResponseClientRefresh

from grading import chunks
from grading.models import Submission, Task
from grading.permissions import may_cancel, sees_generations, sees_targets, submission_or_404
from grading.queries import peers
from grading.queries import progress as progress_queries
from grading.queries import submissions as queries

MIN_REFRESH_S = 5


def submission(request: HttpRequest, public_id: str) -> HttpResponse:
    found = submission_or_404(request.user, public_id)
    if found.state == Submission.State.GRADING:
        return _live(request, found)
    return _finished(request, found)


def _live(request: HttpRequest, found: Submission) -> HttpResponse:
    added = queries.additions(found)
    context = {
        "submission": found,
        "additions": added,
        "reopened": any(one.reopened for one in added),
        "progress": progress_queries.progress(found),
        "may_cancel": may_cancel(request.user, found),
        "refresh": _refresh(request.GET.get("refresh", "")),
    }
    return render(request, "grading/submission_live.html", context)


def _refresh(value: str) -> int | None:
    """Seconds of the page refresh that a visitor without scripts asked for."""
    if not (value.isascii() and value.isdigit() and len(value) < 4):
        return None
    return max(int(value), MIN_REFRESH_S)


def _finished(request: HttpRequest, found: Submission) -> HttpResponse:
    result = queries.result(found)
    page = queries.task_page(result, request.GET.get("sort", ""), request.GET.get("page", "1"))
    context = {
        "submission": found,
        "result": result,
        "additions": queries.additions(found),
        "agreement": peers.agreement(found),
        "page_obj": page,
        "sort": request.GET.get("sort", "") or "fraction",
    }
    return render(request, "grading/submission.html", context)


def progress(request: HttpRequest, public_id: str) -> HttpResponse:
    """The part of a live page that is fetched again and again; the last one loads the page."""
    found = submission_or_404(request.user, public_id)
    if found.state != Submission.State.GRADING and request.htmx:  # type: ignore[attr-defined]
        return HttpResponseClientRefresh()
    context = {"submission": found, "progress": progress_queries.progress(found)}
    return render(request, "grading/_progress.html", context)


def samples(request: HttpRequest, public_id: str) -> HttpResponse:
    found = submission_or_404(request.user, public_id)
    outcome, task_slug = request.GET.get("outcome", ""), request.GET.get("task", "")
    context = {
        "submission": found,
        "outcome": outcome,
        "task": Task.objects.filter(version=found.version_id, slug=task_slug)
        .only("task_id")
        .first()
        if task_slug
        else None,
        "task_slug": task_slug,
        "open": sees_targets(request.user, found.version.benchmark)
        and sees_generations(request.user, found),
        "choices": queries.SAMPLE_FILTERS,
        "page_obj": queries.sample_page(found, outcome, task_slug, request.GET.get("page", "1")),
    }
    return render(request, "grading/samples.html", context)


@require_POST
def cancel(request: HttpRequest, public_id: str) -> HttpResponse:
    """Stop grading: what is graded is kept, the rest is never run."""
    found = submission_or_404(request.user, public_id)
    if not may_cancel(request.user, found):
        if found.state != Submission.State.GRADING:
            messages.warning(request, "Nothing to cancel: grading has ended.")
            return redirect("submission", public_id)
        raise PermissionDenied("owner of the submission")
    chunks.cancel_submission(found, request.user.pk)
    return redirect("submission", public_id)
