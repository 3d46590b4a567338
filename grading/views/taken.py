"""What the pages that take a file share: the file itself, and its report to download."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    JsonResponse,
    StreamingHttpResponse,
)
from django.shortcuts import get_object_or_404

from grading import additions, language_models, quotas, uploads
from grading.forms import ReadingForm
from grading.intake import caps, staging
from grading.intake.downloads import errors_csv
from grading.intake.report import UploadReport, problems
from grading.intake.staging import Staged
from grading.intake.task_table import TaskTable
from grading.models import BenchmarkVersion, Submission
from grading.permissions import submission_or_404, visible_versions

REFUSED = 422
TOO_LARGE = 413
TOO_OFTEN = 429
CLOSED = 503
NO_FILE = "Choose a file."
FILE_GONE = "The file is no longer kept: choose it again."
# What the form says about files.
LIMITS: dict[str, Any] = {
    "max_bytes": caps.MAX_FILE_BYTES,
    "kept_hours": staging.KEPT_FOR.total_seconds() / 3600,
}


def file_of(request: HttpRequest, form: ReadingForm) -> Staged | None:
    """The file sent with this request, or the one kept from an earlier one; else a field error."""
    assert request.user.pk is not None
    token = request.POST.get("staged", "")
    kept = staging.staged(token, request.user.pk) if token else None
    sent = request.FILES.get("file")
    if sent is not None:
        if kept:
            kept.discard()
        name = "".join(char if char.isprintable() else "?" for char in sent.name or "")
        return staging.stage(sent.file, name, request.user.pk)  # type: ignore[arg-type]
    if kept is None:
        form.add_error("file", FILE_GONE if token else NO_FILE)
    return kept


def status_of(report: UploadReport) -> int:
    if report.ok:
        return 200
    return TOO_LARGE if report.too_large else REFUSED


def query_of(form: ReadingForm, **of: Any) -> str:
    """How the file was read, for the links to its report: with ``benchmark`` or ``submission``."""
    choices = asdict(form.choices()) | of
    return urlencode({name: value for name, value in choices.items() if value})


@login_required
def errors(request: HttpRequest, token: str) -> HttpResponseBase:
    """All problems of a staged file as CSV."""
    staged, form = _kept_or_404(request, token)
    found = _meant(request)
    version = found.version if isinstance(found, Submission) else found
    stream = staged.open()
    answer = StreamingHttpResponse(
        errors_csv(problems(stream, TaskTable.of(version), form.choices())),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": 'attachment; filename="errors.csv"'},
    )
    answer._resource_closers.append(stream.close)  # type: ignore[attr-defined]
    return answer


@login_required
def report(request: HttpRequest, token: str) -> HttpResponse:
    """The report on a staged file as JSON."""
    staged, form = _kept_or_404(request, token)
    assert request.user.is_authenticated
    meant, name, choices = _meant(request), staged.file_name, form.choices()
    with staged.open() as stream:
        if isinstance(meant, Submission):
            checked, after = additions.check(stream, name, meant, choices)
            found = additions.as_dict(checked, after)
        else:
            checked = uploads.check(stream, name, meant, choices)
            model = request.GET.get("model", "")
            found = checked.as_dict() | language_models.told(model, request.user)
    return JsonResponse(
        found | quotas.told(request.user, checked.samples),
        json_dumps_params={"indent": 1},
        headers={"Content-Disposition": 'attachment; filename="report.json"'},
    )


def _kept_or_404(request: HttpRequest, token: str) -> tuple[Staged, ReadingForm]:
    """A file of this user, and how the query string says to read it."""
    assert request.user.pk is not None
    staged = staging.staged(token, request.user.pk)
    form = ReadingForm(request.GET)
    if staged is None or not form.is_valid():
        raise Http404
    return staged, form


def _meant(request: HttpRequest) -> BenchmarkVersion | Submission:
    """The version that the file answers, or the submission that it is to be added to."""
    if "submission" in request.GET:
        return submission_or_404(request.user, request.GET["submission"])
    key = request.GET.get("benchmark", "")
    if not (key.isascii() and key.isdigit() and len(key) < 10):
        raise Http404
    return get_object_or_404(visible_versions(request.user), pk=int(key))
