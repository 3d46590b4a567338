"""Errors as RFC 9457 problem documents."""

from __future__ import annotations

import json
import logging
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

CONTENT_TYPE = "application/problem+json"

log = logging.getLogger(__name__)


class Problem(Exception):
    """An answer other than success. ``more`` are further members of the document."""

    def __init__(self, status: int, title: str, detail: str, **more: Any) -> None:
        super().__init__(detail)
        self.status, self.title, self.detail, self.more = status, title, detail, more


def document(problem: Problem) -> HttpResponse:
    """The response of a problem; ``type`` is the standard's word for none of its own."""
    body = {
        "type": "about:blank",
        "title": problem.title,
        "status": problem.status,
        "detail": problem.detail,
        **problem.more,
    }
    response = HttpResponse(json.dumps(body), content_type=CONTENT_TYPE, status=problem.status)
    if problem.status == HTTPStatus.UNAUTHORIZED:
        response["WWW-Authenticate"] = "Bearer"
    if "retry_after_s" in problem.more:
        response["Retry-After"] = str(problem.more["retry_after_s"])
    return response


def register(api: NinjaAPI) -> None:
    """Have every way for a call to fail answered by a document."""
    handlers: list[tuple[type[Exception], Any]] = [
        (Problem, lambda found: found),
        (AuthenticationError, lambda found: _UNKNOWN),
        (ValidationError, _invalid),
        (
            Http404,
            lambda found: Problem(404, "not found", "There is no such thing, or not for you."),
        ),
        (PermissionDenied, lambda found: Problem(403, "not allowed", f"This needs: {found}.")),
        (HttpError, lambda found: Problem(found.status_code, "refused", str(found))),
        (Exception, _fault),
    ]
    for kind, problem_of in handlers:
        api.add_exception_handler(kind, _handler(problem_of))


_UNKNOWN = Problem(
    401,
    "no valid token",
    "Send the header 'Authorization: Bearer evs_...' with a token that is neither revoked nor "
    "expired. Tokens are made on the site, under your account.",
)


def _handler(problem_of: Any) -> Any:
    def handle(request: HttpRequest, found: Exception) -> HttpResponse:
        return document(problem_of(found))

    return handle


def _invalid(found: ValidationError) -> Problem:
    errors = [
        {"field": ".".join(map(str, error["loc"][1:])), "detail": error["msg"]}
        for error in found.errors
    ]
    told = "; ".join(f"{error['field']}: {error['detail']}" for error in errors)
    return Problem(422, "invalid parameters", told, errors=errors)


def _fault(found: Exception) -> Problem:
    log.error("a call failed", exc_info=found)
    return Problem(500, "fault of the site", "The site failed; this is not your request's doing.")
