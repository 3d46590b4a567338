"""Pages of regrades, for staff."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from grading import regrade_apply, regrades
from grading.models import Regrade
from grading.permissions import triage_only
from grading.queries import regrades as queries
from grading.regrade_forms import RegradeForm
from grading.regrade_results import results, score_changes, summary

REFUSED = 422


@require_safe
@triage_only
def index(request: HttpRequest) -> HttpResponse:
    page = queries.regrade_page(request.GET.get("page", "1"))
    return render(request, "grading/regrades.html", {"page_obj": page})


@require_http_methods(["GET", "HEAD", "POST"])
@triage_only
def new(request: HttpRequest) -> HttpResponse:
    """Choose, see how many samples that are, then start: *Count* starts nothing."""
    if request.method != "POST":
        initial = {
            name: request.GET[name] for name in RegradeForm.base_fields if name in request.GET
        }
        return _new(request, RegradeForm(initial={"repeats": 1} | initial))
    form = RegradeForm(request.POST)
    if not form.is_valid():
        return _new(request, form, status=REFUSED)
    data = form.cleaned_data
    selection = RegradeForm.selection(data)
    if "count" in request.POST:
        return _new(request, form, regrades.plan(selection, data["target"]))
    try:
        started = regrades.ask(
            selection, data["reason"], _person(request), data["repeats"], data["target"]
        )
    except (regrades.NothingToRegrade, ValueError) as problem:
        form.add_error(None, str(problem))
        return _new(request, form, status=REFUSED)
    return redirect("regrade", started.public_id)


def _new(
    request: HttpRequest,
    form: RegradeForm,
    plan: regrades.Plan | None = None,
    status: int = 200,
) -> HttpResponse:
    context = {"form": form, "plan": plan}
    return render(request, "grading/regrade_new.html", context, status=status)


def _person(request: HttpRequest) -> Any:
    return request.user


@require_safe
@triage_only
def regrade(request: HttpRequest, public_id: str) -> HttpResponse:
    found = queries.regrade_or_404(public_id)
    outcome = results(found)
    counts = summary(outcome)
    carried = found.target is not None
    context = {
        "regrade": found,
        "progress": queries.progress(found),
        "summary": counts,
        "columns": queries.OUTCOMES,
        "matrix": queries.matrix_rows(counts.matrix),
        "changes": [] if carried or found.state == "applied" else score_changes(outcome),
        "page_obj": queries.sample_page(outcome, carried, request.GET.get("page", "1")),
        "refusal": regrades.refusal(_person(request), found),
        "is_open": found.state in regrades.OPEN,
    }
    return render(request, "grading/regrade.html", context)


@require_POST
@triage_only
def apply(request: HttpRequest, public_id: str) -> HttpResponse:
    """Make the new verdicts count: of all samples, or of those picked."""
    found = queries.regrade_or_404(public_id)
    chosen = _picked(request) if "picked" in request.POST else None
    if chosen is not None and not chosen:
        messages.warning(request, "Nothing applied: no sample is picked.")
        return redirect("regrade", public_id)
    try:
        done = regrade_apply.apply(found, _person(request), chosen)
    except (regrade_apply.NotReady, regrades.NotAllowed) as problem:
        messages.error(request, f"Nothing applied. {problem}")
    else:
        messages.success(
            request,
            f"Applied to {done.applied} of {done.applied + done.kept} samples; "
            f"{done.changed} have another verdict now.",
        )
    return redirect("regrade", public_id)


def _picked(request: HttpRequest) -> list[int]:
    values = request.POST.getlist("sample")
    return [int(value) for value in values if value.isascii() and value.isdigit()]


@require_POST
@triage_only
def cancel(request: HttpRequest, public_id: str) -> HttpResponse:
    found: Regrade = queries.regrade_or_404(public_id)
    try:
        ended = regrades.cancel(found, _person(request))
    except regrades.NotAllowed as problem:
        messages.error(request, f"Not cancelled. {problem}")
    else:
        if not ended:
            messages.warning(request, "Nothing to cancel: it was decided on already.")
    return redirect("regrade", public_id)
