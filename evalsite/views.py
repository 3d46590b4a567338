"""Views of no app: the theme switch, the client's file, the guard of the queue dashboard."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import redis
from csp.constants import NONE, SELF, UNSAFE_INLINE
from csp.decorators import csp_replace
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST, require_safe

from grading.permissions import Action, needs
from grading.templatetags.page import THEMES

THEME_SECONDS = 365 * 86_400
CLIENT = Path(__file__).with_name("client.py")

# Its pages carry inline scripts and styles; nothing a candidate wrote is shown on them.
DASHBOARD_CSP = {
    "default-src": [NONE],
    "script-src": [SELF, UNSAFE_INLINE],
    "style-src": [SELF, UNSAFE_INLINE],
    "img-src": [SELF],
    "connect-src": [SELF],
    "form-action": [SELF],
    "base-uri": [NONE],
    "frame-ancestors": [NONE],
}

View = Callable[..., HttpResponseBase]


@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """Remember light, dark or auto in a cookie and go back to the page."""
    back = request.POST.get("next", "/")
    if not url_has_allowed_host_and_scheme(back, {request.get_host()}, request.is_secure()):
        back = "/"
    response = HttpResponseRedirect(back)
    value = request.POST.get("theme", "")
    if value in THEMES:
        response.set_cookie(
            "theme",
            value,
            max_age=THEME_SECONDS,
            secure=request.is_secure(),
            httponly=True,
            samesite="Lax",
        )
    return response


@require_safe
def client(request: HttpRequest) -> HttpResponse:
    """The command-line client, which knows the site it was taken from."""
    text = CLIENT.read_text(encoding="utf-8")
    site = json.dumps(request.build_absolute_uri("/"))
    return HttpResponse(
        text.replace('SITE = ""', f"SITE = {site}", 1),
        content_type="text/x-python; charset=utf-8",
        headers={"Content-Disposition": 'attachment; filename="evalsite.py"'},
    )


def jobs_page(view: View) -> View:
    """A page of the queue dashboard, which can delete and re-run jobs."""

    @wraps(view)
    @needs(Action.SEE_JOBS)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            return view(request, *args, **kwargs)
        except redis.ConnectionError:
            return render(request, "503.html", status=503)

    return csp_replace(DASHBOARD_CSP)(guarded)
