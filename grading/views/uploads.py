"""The upload page, its report to download, and the files to start from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    JsonResponse,
    StreamingHttpResponse,
)
from django.shortcuts import redirect, render

from grading import benchmarks, grader, queue_control, quotas, uploads
from grading.forms import SubmissionForm, newest_versions
from grading.intake import caps, staging
from grading.intake.benchmark_guess import guess
from grading.intake.downloads import errors_csv
from grading.intake.report import UploadReport, problems
from grading.intake.staging import Staged
from grading.intake.task_table import TaskTable
from grading.models import LanguageModel, Submission
from grading.permissions import version_or_404

MODEL_NAMES_OFFERED = 500
REFUSED = 422
TOO_LARGE = 413
TOO_OFTEN = 429
CLOSED = 503
NO_FILE = "Choose a file."
NO_BENCHMARK = "No benchmark has the tasks that this file names: choose one."
FILE_GONE = "The file is no longer kept: choose it again."


@dataclass(frozen=True, slots=True)
class Shown:
    """What stands under the form: the report on a file, and an earlier submission of it."""

    report: UploadReport
    earlier: Submission | None = None


@login_required
def submit(request: HttpRequest) -> HttpResponse:
    """Check a file and show its report; queue it when told to, and only then.

    ``do=queue`` queues a file without problems, ``good_lines_only`` one with some. 422 answers a
    bad form or file, 413 one that is too large; nothing is stored then. The file itself is kept
    for the next request.
    """
    if refusal := grader.refusal():
        return render(request, "grading/no_uploads.html", {"refusal": refusal}, status=CLOSED)
    if request.method != "POST":
        initial = {"benchmark": request.GET.get("benchmark")}
        return _page(request, SubmissionForm(request.user, initial=initial))
    form = SubmissionForm(request.user, request.POST, request.FILES)
    staged = _staged(request, form)
    if not form.is_valid() or staged is None or not _has_benchmark(request, form, staged):
        return _page(request, form, staged, status=REFUSED)
    good_lines_only = bool(request.POST.get("good_lines_only"))
    if good_lines_only or request.POST.get("do") == "queue":
        return _queue(request, form, staged, good_lines_only)
    return _report(request, form, staged)


def _staged(request: HttpRequest, form: SubmissionForm) -> Staged | None:
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


def _has_benchmark(request: HttpRequest, form: SubmissionForm, staged: Staged) -> bool:
    """The one chosen, the only one, or the one whose tasks the file names; else a field error."""
    if form.cleaned_data["benchmark"] is None:
        offered = list(newest_versions(request.user))
        with staged.open() as stream:
            found = offered[0] if len(offered) == 1 else guess(stream, offered)
        if found is None:
            form.add_error("benchmark", NO_BENCHMARK)
            return False
        form.choose(found)
    return True


def _report(request: HttpRequest, form: SubmissionForm, staged: Staged) -> HttpResponse:
    data = form.cleaned_data
    assert request.user.is_authenticated
    with staged.open() as stream:
        report = uploads.check(stream, staged.file_name, data["benchmark"], form.choices())
    earlier = uploads.earlier(report, data["benchmark"], data["model"], request.user)
    return _page(request, form, staged, Shown(report, earlier), _status(report))


def _queue(
    request: HttpRequest, form: SubmissionForm, staged: Staged, good_lines_only: bool
) -> HttpResponse:
    data = form.cleaned_data
    assert request.user.is_authenticated
    try:
        with staged.open() as stream:
            accepted = uploads.accept_once(
                stream,
                staged.file_name,
                data["benchmark"],
                data["model"],
                request.user,
                form.settings(),
                data["visibility"],
                good_lines_only,
                form.choices(),
            )
    except uploads.UploadRejected as rejected:
        return _page(request, form, staged, Shown(rejected.report), _status(rejected.report))
    except quotas.QuotaExceeded as refusal:
        form.add_error(None, str(refusal))
        response = _page(request, form, staged, status=TOO_OFTEN)
        response["Retry-After"] = str(refusal.retry_after_s)
        return response
    staged.discard()
    if not accepted.created:
        messages.info(
            request,
            "This file is already here, for the same language model and benchmark version: "
            "this is its submission. Grading again gives the same verdicts.",
        )
    return redirect("submission", accepted.submission.public_id)


def _status(report: UploadReport) -> int:
    if report.ok:
        return 200
    return TOO_LARGE if report.too_large else REFUSED


def _page(
    request: HttpRequest,
    form: SubmissionForm,
    staged: Staged | None = None,
    shown: Shown | None = None,
    status: int = 200,
) -> HttpResponse:
    if shown:
        form.offer_fields(shown.report.detected.offered_fields)
    assert request.user.is_authenticated
    quota = quotas.standing(request.user)
    names = LanguageModel.objects.values_list("name", flat=True)[:MODEL_NAMES_OFFERED]
    context = {
        "form": form,
        "staged": staged,
        "report": shown and shown.report,
        "earlier": shown and shown.earlier,
        "version": form.cleaned_data["benchmark"] if shown else None,
        "query": _query(form) if shown else "",
        "model_names": names,
        "quota": quota,
        "over_quota": _over(quota, shown) if shown else None,
        "stopped": queue_control.stopped(),
        "max_bytes": caps.MAX_FILE_BYTES,
        "kept_hours": staging.KEPT_FOR.total_seconds() / 3600,
    }
    return render(request, "grading/submit.html", context, status=status)


def _over(quota: quotas.Standing | None, shown: Shown) -> quotas.QuotaExceeded | None:
    """Why the file cannot be queued now; one that is here already takes nothing."""
    return quota.refusal(shown.report.samples) if quota and not shown.earlier else None


def _query(form: SubmissionForm) -> str:
    """How the file was read, for the links to its report."""
    choices = asdict(form.choices()) | {"benchmark": form.cleaned_data["benchmark"].pk}
    return urlencode({name: value for name, value in choices.items() if value})


@login_required
def errors(request: HttpRequest, token: str) -> HttpResponseBase:
    """All problems of a staged file as CSV."""
    staged, form = _kept_or_404(request, token)
    stream = staged.open()
    table = TaskTable.of(form.cleaned_data["benchmark"])
    answer = StreamingHttpResponse(
        errors_csv(problems(stream, table, form.choices())),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": 'attachment; filename="errors.csv"'},
    )
    answer._resource_closers.append(stream.close)  # type: ignore[attr-defined]
    return answer


@login_required
def report(request: HttpRequest, token: str) -> HttpResponse:
    """The report on a staged file as JSON."""
    assert request.user.is_authenticated
    staged, form = _kept_or_404(request, token)
    with staged.open() as stream:
        found = uploads.check(
            stream, staged.file_name, form.cleaned_data["benchmark"], form.choices()
        )
    return JsonResponse(
        found.as_dict() | quotas.told(request.user, found.samples),
        json_dumps_params={"indent": 1},
        headers={"Content-Disposition": 'attachment; filename="report.json"'},
    )


def _kept_or_404(request: HttpRequest, token: str) -> tuple[Staged, SubmissionForm]:
    """A file of this user, and how the query string says to read it."""
    assert request.user.pk is not None
    staged = staging.staged(token, request.user.pk)
    form = SubmissionForm(request.user, request.GET)
    form.is_valid()  # fields that only queueing needs may be missing
    read_by = {"benchmark", "text_field", "reading", "match"}
    if staged is None or read_by & form.errors.keys() or not form.cleaned_data["benchmark"]:
        raise Http404
    return staged, form


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
