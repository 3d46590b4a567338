"""What keeps candidate programs in, for staff."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from grading import environments, grader
from grading.engine.outcome import PlatformError
from grading.models import Environment
from grading.permissions import Action, needs


@require_safe
@needs(Action.SEE_SANDBOX)
def sandbox(request: HttpRequest) -> HttpResponse:
    try:
        found = grader.sandbox()
    except PlatformError as problem:
        return render(request, "grading/sandbox.html", {"problem": str(problem)})
    context = {
        "sandbox": found,
        "findings": found.findings(),
        "environments": list(map(environments.on_this_host, Environment.objects.all())),
    }
    return render(request, "grading/sandbox.html", context)
