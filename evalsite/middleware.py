"""Requests that no view should see."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from grading.intake.caps import MAX_FILE_BYTES

Handler: TypeAlias = Callable[[HttpRequest], HttpResponse]

# An upload form is its file and a few small fields.
MAX_BODY_BYTES = MAX_FILE_BYTES + 1024**2
# A body that is answered unread makes the browser show a broken connection instead of the answer.
DRAINED_BYTES = 4 * MAX_BODY_BYTES
BLOCK_BYTES = 64 * 1024


def refuse_unfit_requests(handler: Handler) -> Handler:
    """404 for a NUL in the address, which no database takes; 413 for a body over the cap."""

    def guarded(request: HttpRequest) -> HttpResponse:
        if "\0" in request.path or "%00" in request.META.get("QUERY_STRING", ""):
            raise Http404
        if _body_bytes(request) > MAX_BODY_BYTES:
            _drain(request)
            context = {"cap": MAX_FILE_BYTES, "sent": _body_bytes(request)}
            return render(request, "413.html", context, status=413)
        return handler(request)

    return guarded


def _body_bytes(request: HttpRequest) -> int:
    value = request.META.get("CONTENT_LENGTH") or ""
    return int(value) if value.isascii() and value.isdigit() else 0


def _drain(request: HttpRequest) -> None:
    left = min(_body_bytes(request), DRAINED_BYTES)
    while left > 0 and (block := request.read(min(left, BLOCK_BYTES))):
        left -= len(block)
