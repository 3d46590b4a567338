"""The queue page: what waits, who grades, where one's own submissions stand, pause and resume."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from grading import queue_control
from grading.forms import QueueForm
from grading.permissions import Action, needs
from grading.queries import queue as queries

REFUSED = 422
SAID = {
    "running": "Grading goes on.",
    "paused": "Grading is paused.",
    "draining": "Workers finish what they hold, and end.",
}


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    return _shown(request, QueueForm())


@require_POST
@needs(Action.RUN_QUEUE)
def control(request: HttpRequest) -> HttpResponse:
    """Pause, drain or resume, with a reason."""
    assert request.user.is_authenticated
    form = QueueForm(request.POST)
    if not form.is_valid():
        return _shown(request, form, REFUSED)
    mode = queue_control.Mode(form.cleaned_data["mode"])
    if queue_control.change(mode, request.user, form.cleaned_data["reason"]):
        messages.success(request, SAID[mode])
    else:
        messages.info(request, f"Nothing changed: grading is {mode} already.")
    return redirect("queue")


def _shown(request: HttpRequest, form: QueueForm, status: int = 200) -> HttpResponse:
    queue = queries.queue(request.user)
    context = {
        "queue": queue,
        "waiting": queue.waiting,
        "form": form,
        "shown": queries.SHOWN,
    }
    return render(request, "grading/queue.html", context, status=status)
