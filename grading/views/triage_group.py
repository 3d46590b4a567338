"""The page of one crash group, for staff, and what is decided there."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from grading import triage as decisions
from grading.models import CrashGroup, Fingerprint
from grading.permissions import triage_only
from grading.queries import crash_group as queries
from grading.queries.samples import has_own_policies
from grading.triage_forms import DecisionForm

TABS = ("code", "raw", "targets", "output", "run", "history", "notes")
REFUSED = 422


@require_safe
@triage_only
def group(request: HttpRequest, public_id: str) -> HttpResponse:
    return _page(request, queries.group_or_404(public_id), DecisionForm())


def _page(
    request: HttpRequest, found: CrashGroup, form: DecisionForm, status: int = 200
) -> HttpResponse:
    tab = request.GET.get("tab", "")
    context: dict[str, Any] = {
        "about": queries.group_view(found),
        "group": found,
        "form": form,
        "tabs": TABS,
        "tab": tab if tab in TABS else TABS[0],
        "list": _list_query(request),
    }
    shown = queries.shown_sample(found, request.GET.get("sample", "1"), _person(request))
    if shown is not None:
        place, view = shown
        submission = view.sample.submission
        context |= {
            "place": place,
            "view": view,
            "attempt": view.attempt,
            "submission": submission,
            "benchmark": submission.version.benchmark,
            "case_name": f"{view.task.slug}-{view.sample.index}.jsonl",
            "own_policies": has_own_policies(submission.version.benchmark),
        }
    return render(request, "grading/triage_group.html", context, status=status)


def _person(request: HttpRequest) -> Any:
    return request.user


def _list_query(request: HttpRequest) -> str:
    """The filters of the list that led here."""
    return QueryDict(request.GET.get("list", "")).urlencode()


def _list_url(request: HttpRequest) -> str:
    query = _list_query(request)
    return f"{reverse('triage')}?{query}" if query else reverse("triage")


def _here(request: HttpRequest, public_id: str) -> str:
    query = request.GET.urlencode()
    url = reverse("triage-group", args=[public_id])
    return f"{url}?{query}" if query else url


@require_POST
@triage_only
def decide(request: HttpRequest, public_id: str) -> HttpResponse:
    """Change state, assignee or add a note; then the list again, or this page."""
    found = queries.group_or_404(public_id)
    form = DecisionForm(request.POST)
    if not form.is_valid():
        return _page(request, found, form, REFUSED)
    decisions.decide([found.pk], form.decision(), _person(request))
    messages.success(request, f"Saved: {found.title}")
    stay = "stay" in request.POST
    return redirect(_here(request, public_id) if stay else _list_url(request))


@require_POST
@triage_only
def merge(request: HttpRequest, public_id: str) -> HttpResponse:
    found = queries.group_or_404(public_id)
    into = CrashGroup.objects.filter(public_id=request.POST.get("into", "").strip()).first()
    if into is None or into.pk == found.pk:
        messages.error(request, "Nothing merged: name another group by its id.")
        return redirect(_here(request, public_id))
    decisions.merge(found, into, _person(request), request.POST.get("note", "")[:10_000])
    messages.success(request, f"Merged into {into.title}")
    return redirect(_here(request, into.public_id))


@require_POST
@triage_only
def split(request: HttpRequest, public_id: str) -> HttpResponse:
    rows = Fingerprint.objects.select_related("group").filter(group__public_id=public_id)
    row = get_object_or_404(rows, value=request.POST.get("fingerprint", ""))
    try:
        own = decisions.split(row, _person(request), request.POST.get("note", "")[:10_000])
    except ValueError as problem:
        messages.error(request, f"Nothing split: {problem}.")
        return redirect(_here(request, public_id))
    messages.success(request, "Split off into a group of its own.")
    return redirect(_here(request, own.public_id))
