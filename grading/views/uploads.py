"""The upload page and the files to start from."""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import redirect, render

from grading import benchmarks, grader, upload_reading, uploads
from grading.forms import SubmissionForm
from grading.models import LanguageModel
from grading.permissions import version_or_404

MODEL_NAMES_OFFERED = 500
REFUSED = 422
TOO_LARGE = 413
CLOSED = 503


@login_required
def submit(request: HttpRequest) -> HttpResponse:
    """Check a file and queue it, or answer 422 with a report by line and store nothing."""
    if refusal := grader.refusal():
        return render(request, "grading/no_uploads.html", {"refusal": refusal}, status=CLOSED)
    if request.method != "POST":
        initial = {"benchmark": request.GET.get("benchmark")}
        return _page(request, SubmissionForm(request.user, initial=initial))
    form = SubmissionForm(request.user, request.POST, request.FILES)
    if not form.is_valid():
        return _page(request, form, status=REFUSED)
    try:
        accepted = _accept(request, form)
    except uploads.UploadRejected as rejected:
        status = TOO_LARGE if is_too_large(rejected.report) else REFUSED
        return _page(request, form, rejected.report, status)
    if not accepted.created:
        messages.info(
            request,
            "This file is already here, for the same language model and benchmark version: "
            "this is its submission. Grading again gives the same verdicts.",
        )
    return redirect("submission", accepted.submission.public_id)


def _accept(request: HttpRequest, form: SubmissionForm) -> uploads.Accepted:
    data = form.cleaned_data
    assert request.user.is_authenticated
    return uploads.accept_once(
        data["file"].file,
        "".join(char if char.isprintable() else "?" for char in data["file"].name),
        data["benchmark"],
        data["model"],
        request.user,
        form.settings(),
        data["visibility"],
        good_lines_only=bool(request.POST.get("good_lines_only")),
    )


def is_too_large(report: upload_reading.UploadReport) -> bool:
    return any(problem.rule == "file too large" for problem in report.problems)


def _page(
    request: HttpRequest,
    form: SubmissionForm,
    report: upload_reading.UploadReport | None = None,
    status: int = 200,
) -> HttpResponse:
    names = LanguageModel.objects.values_list("name", flat=True)[:MODEL_NAMES_OFFERED]
    context = {
        "form": form,
        "report": report,
        "model_names": names,
        "max_bytes": upload_reading.MAX_FILE_BYTES,
    }
    return render(request, "grading/submit.html", context, status=status)


def prompts(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Task ids and prompts, without targets: what generations are made from."""
    version = version_or_404(request.user, slug, request.GET.get("version", ""))
    lines = benchmarks.prompts_jsonl(version)
    return _jsonl(lines, f"{slug}-v{version.number}-prompts.jsonl")


def example(request: HttpRequest, slug: str) -> HttpResponseBase:
    version = version_or_404(request.user, slug, request.GET.get("version", ""))
    return _jsonl([benchmarks.example_jsonl(version)], f"{slug}-v{version.number}-example.jsonl")


def _jsonl(lines: Iterable[str], file_name: str) -> HttpResponseBase:
    return StreamingHttpResponse(
        (line.encode("utf-8", "backslashreplace") for line in lines),
        content_type="application/x-ndjson; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{file_name}"'},
    )
