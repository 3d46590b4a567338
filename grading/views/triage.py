"""Crash review for staff: the queue, its decisions, and the samples behind it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST, require_safe

from grading import triage as decisions
from grading.engine.outcome import Outcome
from grading.flags import FLAGS
from grading.models import Benchmark, CrashGroup
from grading.permissions import triage_only
from grading.queries import failures
from grading.queries import triage as queries
from grading.queries.submissions import PLATFORM
from grading.triage_forms import DecisionForm

OUTCOME_CHOICES = [*failures.CRASH_OUTCOMES, PLATFORM, Outcome.ASSERTION_FAIL.value]
REFUSED = 422


@require_safe
@triage_only
def queue(request: HttpRequest) -> HttpResponse:
    return _queue(request, filters_of(request), DecisionForm())


def filters_of(request: HttpRequest) -> queries.Filters:
    names = [field.name for field in fields(queries.Filters)]
    return queries.Filters(**{name: request.GET.get(name, "").strip() for name in names})


def _queue(
    request: HttpRequest, filters: queries.Filters, form: DecisionForm, status: int = 200
) -> HttpResponse:
    context = {
        "filters": filters,
        "page_obj": queries.queue_page(filters, request.GET.get("page", "1")),
        "form": form,
        "kinds": queries.KINDS,
        "states": CrashGroup.State.choices,
        "sorts": queries.SORTS,
        "flags": FLAGS,
        "benchmarks": Benchmark.objects.values_list("slug", "title"),
        "people": [person.get_username() for person in queries.assignable()],
    }
    return render(request, "grading/triage.html", context, status=status)


@require_POST
@triage_only
def decide(request: HttpRequest) -> HttpResponse:
    """Decide on the groups that were picked, or, once it is confirmed, on all that match.

    The query string is that of the queue, so that the same list comes back.
    """
    form = DecisionForm(request.POST)
    filters = filters_of(request)
    if not form.is_valid():
        return _queue(request, filters, form, REFUSED)
    everything = "all" in request.POST
    ids = _all_ids(filters) if everything else _picked(request)
    if not ids:
        messages.warning(request, "Nothing changed: no group is picked.")
        return redirect(_back(request))
    if everything:
        return _confirmation(request, form, ids)
    count = decisions.decide(ids, form.decision(), _person(request))
    messages.success(request, f"{count} group{'' if count == 1 else 's'} changed.")
    return redirect(_back(request))


def _person(request: HttpRequest) -> Any:
    return request.user


def _all_ids(filters: queries.Filters) -> list[int]:
    return list(queries.groups(filters).values_list("pk", flat=True))


def _picked(request: HttpRequest) -> list[int]:
    """Primary keys from the boxes, or from one field that holds all of a confirmed set."""
    values = [*request.POST.getlist("group"), *request.POST.get("groups", "").split(",")]
    return [int(value) for value in values if value.isascii() and value.isdigit()]


def _confirmation(request: HttpRequest, form: DecisionForm, ids: list[int]) -> HttpResponse:
    """The very groups that are counted here are those that change, whatever matches by then."""
    decision = form.decision()
    context = {
        "count": len(ids),
        "groups": ",".join(map(str, ids)),
        "fields": [(name, value) for name, value in request.POST.items() if name in form.fields],
        "decision": decision,
        "state": decision.state.label if decision.state else "",
        "titles": CrashGroup.objects.filter(pk__in=ids[:10]).values_list("title", flat=True),
        "back": _back(request),
    }
    return render(request, "grading/triage_confirm.html", context)


def _back(request: HttpRequest) -> str:
    """The list or page to return to; only ever of this site."""
    wanted = request.POST.get("next", "")
    if url_has_allowed_host_and_scheme(wanted, {request.get_host()}, request.is_secure()):
        return wanted
    query = request.GET.urlencode()
    return f"{reverse('triage')}?{query}" if query else reverse("triage")


@require_safe
@triage_only
def samples(request: HttpRequest) -> HttpResponse:
    names = [field.name for field in fields(failures.Filters)]
    filters = failures.Filters(**{name: request.GET.get(name, "").strip() for name in names})
    group = CrashGroup.objects.filter(public_id=filters.group).first() if filters.group else None
    context = {
        "filters": filters,
        "group": group,
        "choices": OUTCOME_CHOICES,
        "page_obj": failures.crash_page(filters, request.GET.get("page", "1")),
    }
    return render(request, "grading/triage_samples.html", context)


@require_safe
@triage_only
def crashes(request: HttpRequest) -> HttpResponse:
    """Where the crash list used to be."""
    query = request.GET.urlencode()
    url = reverse("triage-samples") if query else reverse("triage")
    return redirect(f"{url}?{query}" if query else url, permanent=True)
