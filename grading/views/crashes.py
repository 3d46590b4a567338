"""The crash list for staff."""

from __future__ import annotations

from dataclasses import fields

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from grading import crashes as queries
from grading.engine.outcome import Outcome
from grading.permissions import staff_only
from grading.queries.submissions import PLATFORM

OUTCOME_CHOICES = [*queries.CRASH_OUTCOMES, PLATFORM, Outcome.ASSERTION_FAIL.value]


@staff_only
def crashes(request: HttpRequest) -> HttpResponse:
    names = [field.name for field in fields(queries.Filters)]
    filters = queries.Filters(**{name: request.GET.get(name, "").strip() for name in names})
    context = {
        "filters": filters,
        "choices": OUTCOME_CHOICES,
        "page_obj": queries.crash_page(filters, request.GET.get("page", "1")),
        "exceptions": queries.exception_counts(filters),
    }
    return render(request, "grading/crashes.html", context)
