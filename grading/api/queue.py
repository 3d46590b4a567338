"""Calls about the queue: what waits and who grades; for operators, pause, resume and drain."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, cast

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from ninja import Router, Schema

from grading import queue_control
from grading.api.auth import Caller, viewer_of
from grading.api.errors import Problem
from grading.api.links import absolute
from grading.permissions import Action, may, roles_for
from grading.queries import queue as queries
from grading.queue_control import Mode

router = Router(tags=["queue"])


class Why(Schema):
    """``reason`` is shown to everybody who waits."""

    reason: str = ""


@router.get("", summary="What waits, oldest first, and who grades it")
def queue(request: HttpRequest) -> dict[str, Any]:
    """Submissions that are not yours to see are counted, without saying whose they are."""
    found = queries.queue(viewer_of(request))
    return queue_control.as_dict(found.stopped) | {
        "samples_waiting": found.samples,
        "eta_s": found.eta_s,
        "broker_answers": found.answers,
        "submissions": [_line(request, line) for line in found.waiting],
        "workers": [asdict(worker) for worker in found.workers],
    }


@router.post("/pause", summary="Finish what is at work, begin nothing", auth=Caller("admin"))
def pause(request: HttpRequest, why: Why) -> dict[str, Any]:
    """Uploads are taken and wait."""
    return _change(request, Mode.PAUSED, why.reason)


@router.post("/drain", summary="As pause, and idle workers end", auth=Caller("admin"))
def drain(request: HttpRequest, why: Why) -> dict[str, Any]:
    """A worker that is started again waits until grading is resumed."""
    return _change(request, Mode.DRAINING, why.reason)


@router.post("/resume", summary="Go on with what waits", auth=Caller("admin"))
def resume(request: HttpRequest) -> dict[str, Any]:
    return _change(request, Mode.RUNNING, "")


def _change(request: HttpRequest, mode: Mode, reason: str) -> dict[str, Any]:
    """The same word twice changes nothing, so that a call can be sent again."""
    if not may(request.user, Action.RUN_QUEUE):
        raise PermissionDenied(roles_for(Action.RUN_QUEUE))
    try:
        queue_control.change(mode, cast(User, request.user), reason)
    except ValueError as problem:
        raise Problem(422, "invalid parameters", f"reason: {problem}") from None
    return queue_control.as_dict(queue_control.stopped())


def _line(request: HttpRequest, line: queries.Waiting) -> dict[str, Any]:
    found = line.submission
    named = {
        "id": found.public_id if found else None,
        "url": absolute(request, "submission", found.public_id) if found else None,
        "model": found.language_model.name if found else None,
        "benchmark": found.version.benchmark.slug if found else None,
    }
    facts = ("samples", "left", "ahead", "workers", "heartbeat_at", "own")
    return named | {name: getattr(line, name) for name in facts}
