"""The page that adds samples to a submission: check a further file, then queue what it brings."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from grading import additions, grader, quotas
from grading.forms import ReadingForm
from grading.intake.staging import Staged
from grading.models import Submission
from grading.permissions import Action, require, submission_or_404
from grading.uploads import UploadRejected
from grading.views import taken

KNOWN = "This file is in the submission already: nothing was added."


def add(request: HttpRequest, public_id: str) -> HttpResponse:
    """Check a file and show its report; add its samples when told to, and only then.

    ``do=queue`` adds a file without problems, ``good_lines_only`` one with some. Otherwise as the
    upload page.
    """
    found = submission_or_404(request.user, public_id)
    require(request.user, Action.ADD_SAMPLES, found)
    if refusal := grader.refusal():
        context = {"refusal": refusal}
        return render(request, "grading/no_uploads.html", context, status=taken.CLOSED)
    if why := additions.refusal(found):
        messages.warning(request, why)
        return redirect("submission", public_id)
    if request.method != "POST":
        return _page(request, found, ReadingForm())
    form = ReadingForm(request.POST, request.FILES)
    staged = taken.file_of(request, form)
    if not form.is_valid() or staged is None:
        return _page(request, found, form, staged, status=taken.REFUSED)
    good_lines_only = bool(request.POST.get("good_lines_only"))
    if good_lines_only or request.POST.get("do") == "queue":
        return _queue(request, found, form, staged, good_lines_only)
    return _report(request, found, form, staged)


def _report(
    request: HttpRequest, found: Submission, form: ReadingForm, staged: Staged, status: int = 0
) -> HttpResponse:
    with staged.open() as stream:
        report, after = additions.check(stream, staged.file_name, found, form.choices())
    form.offer_fields(report.detected.offered_fields)
    assert request.user.is_authenticated
    quota = quotas.standing(request.user)
    context = {
        "quota": quota,
        "over_quota": quota.refusal(report.samples) if quota and not after.known else None,
        "report": report,
        "after": after,
        "query": taken.query_of(form, submission=found.public_id),
    }
    return _page(request, found, form, staged, context, status or taken.status_of(report))


def _queue(
    request: HttpRequest,
    found: Submission,
    form: ReadingForm,
    staged: Staged,
    good_lines_only: bool,
) -> HttpResponse:
    assert request.user.is_authenticated
    try:
        with staged.open() as stream:
            accepted = additions.add(
                found, stream, staged.file_name, request.user, good_lines_only, form.choices()
            )
    except UploadRejected:
        return _report(request, found, form, staged)
    except additions.Refused as refused:
        form.add_error("file", str(refused))
        return _report(request, found, form, staged, taken.REFUSED)
    except quotas.QuotaExceeded as refusal:
        form.add_error(None, str(refusal))
        response = _report(request, found, form, staged, taken.TOO_OFTEN)
        response["Retry-After"] = str(refusal.retry_after_s)
        return response
    staged.discard()
    if not accepted.created:
        messages.info(request, KNOWN)
    return redirect("submission", found.public_id)


def _page(
    request: HttpRequest,
    found: Submission,
    form: ReadingForm,
    staged: Staged | None = None,
    shown: dict[str, Any] | None = None,
    status: int = 200,
) -> HttpResponse:
    context = {
        "submission": found,
        "version": found.version,
        "form": form,
        "staged": staged,
        **taken.LIMITS,
        **(shown or {}),
    }
    return render(request, "grading/add.html", context, status=status)
