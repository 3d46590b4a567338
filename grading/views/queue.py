"""The queue page: what waits, who grades, and where one's own submissions stand."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from grading.queries import queue as queries


@require_safe
def queue(request: HttpRequest) -> HttpResponse:
    context = {
        "waiting": queries.waiting(request.user),
        "busy": queries.busy(),
        "shown": queries.SHOWN,
    }
    return render(request, "grading/queue.html", context)
