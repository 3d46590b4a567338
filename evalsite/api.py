"""The API, version 1: what its parts offer, under one address."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from ninja import NinjaAPI

from grading.api import (
    benchmarks,
    errors,
    language_models,
    queue,
    quota,
    regrades,
    submissions,
    triage,
)
from grading.api.auth import Caller
from leaderboard import api as boards
from leaderboard import cards_api

api = NinjaAPI(
    title="Evalsite",
    version="1",
    urls_namespace="api-1",
    description="Send generations, follow their grading, read verdicts and boards.",
    auth=Caller(),
    docs_url=None,
)
errors.register(api)
api.add_router("/benchmarks", benchmarks.router)
api.add_router("/benchmarks", boards.router)
api.add_router("/models", cards_api.router)
api.add_router("/models", language_models.router)
api.add_router("/submissions", submissions.router)
api.add_router("/queue", queue.router)
api.add_router("/triage", triage.router)
api.add_router("/regrades", regrades.router)
api.add_router("/regrades", boards.regrades)
api.add_router("/quota", quota.router)


@require_safe
def reference(request: HttpRequest) -> HttpResponse:
    """All calls on one page, from the same schema that machines read."""
    schema = api.get_openapi_schema()
    calls = [
        {"method": method.upper(), "path": path, **call}
        for path, methods in schema["paths"].items()
        for method, call in methods.items()
    ]
    return render(request, "api.html", {"calls": calls})
