"""The upload page, and the files to start from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import redirect, render

from grading import benchmarks, grader, language_models, queue_control, quotas, uploads
from grading.forms import SubmissionForm, newest_versions
from grading.intake.benchmark_guess import guess
from grading.intake.report import UploadReport
from grading.intake.staging import Staged
from grading.models import Submission
from grading.permissions import version_or_404
from grading.views import taken

MODEL_NAMES_OFFERED = 500
NO_BENCHMARK = "No benchmark has the tasks that this file names: choose one."


@dataclass(frozen=True, slots=True)
class Shown:
    """What stands under the form: the report on a file, and an earlier submission of it.

    ``model`` is what the typed name means where that is called otherwise, ``similar`` one that
    differs from it in case and space only.
    """

    report: UploadReport
    earlier: Submission | None = None
    model: str = ""
    similar: str = ""


@login_required
def submit(request: HttpRequest) -> HttpResponse:
    """Check a file and show its report; queue it when told to, and only then.

    ``do=queue`` queues a file without problems, ``good_lines_only`` one with some. 422 answers a
    bad form or file, 413 one that is too large; nothing is stored then. The file itself is kept
    for the next request.
    """
    if refusal := grader.refusal():
        return render(request, "grading/no_uploads.html", {"refusal": refusal}, status=taken.CLOSED)
    if request.method != "POST":
        initial = {"benchmark": request.GET.get("benchmark")}
        return _page(request, SubmissionForm(request.user, initial=initial))
    form = SubmissionForm(request.user, request.POST, request.FILES)
    staged = taken.file_of(request, form)
    if not form.is_valid() or staged is None or not _has_benchmark(request, form, staged):
        return _page(request, form, staged, status=taken.REFUSED)
    good_lines_only = bool(request.POST.get("good_lines_only"))
    if good_lines_only or request.POST.get("do") == "queue":
        return _queue(request, form, staged, good_lines_only)
    return _report(request, form, staged)


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
    meant = language_models.named(data["model"])
    shown = Shown(
        report,
        earlier,
        meant.name if meant and meant.name != data["model"].strip() else "",
        language_models.similar(data["model"], request.user),
    )
    return _page(request, form, staged, shown, taken.status_of(report))


def _queue(
    request: HttpRequest, form: SubmissionForm, staged: Staged, good_lines_only: bool
) -> HttpResponse:
    data = form.cleaned_data
    assert request.user.is_authenticated
    try:
        with staged.open() as stream:
            accepted = uploads.accept(
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
        status = taken.status_of(rejected.report)
        return _page(request, form, staged, Shown(rejected.report), status)
    except quotas.QuotaExceeded as refusal:
        form.add_error(None, str(refusal))
        response = _page(request, form, staged, status=taken.TOO_OFTEN)
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
    names = language_models.offered(request.user)[:MODEL_NAMES_OFFERED]
    context = {
        "form": form,
        "staged": staged,
        "report": shown and shown.report,
        "earlier": shown and shown.earlier,
        "meant": shown and shown.model,
        "similar": shown and shown.similar,
        "version": form.cleaned_data["benchmark"] if shown else None,
        "query": _query(form) if shown else "",
        "model_names": names,
        "quota": quota,
        "over_quota": _over(quota, shown) if shown else None,
        "stopped": queue_control.stopped(),
        **taken.LIMITS,
    }
    return render(request, "grading/submit.html", context, status=status)


def _query(form: SubmissionForm) -> str:
    data = form.cleaned_data
    return taken.query_of(form, benchmark=data["benchmark"].pk, model=data["model"])


def _over(quota: quotas.Standing | None, shown: Shown) -> quotas.QuotaExceeded | None:
    """Why the file cannot be queued now; one that is here already takes nothing."""
    return quota.refusal(shown.report.samples) if quota and not shown.earlier else None


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
