"""Who asks: a bearer token, or nobody in particular. Cookies count for nothing here."""

from __future__ import annotations

from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from ninja.errors import AuthenticationError
from ninja.security.base import AuthBase

from grading import tokens
from grading.api.errors import Problem
from grading.models import ApiToken
from grading.permissions import Action, Viewer, may, roles_for


class Caller(AuthBase):
    """Authentication of a call; sets ``request.user``.

    A token, if one is sent, must be in force. With ``scope`` there must be one that has it: else
    401 without a token, 403 with another one, and where its user may not do ``action`` (any more).
    Without ``scope`` anybody may call and reads what is public.
    """

    openapi_type: str = "http"
    openapi_scheme: str = "bearer"

    def __init__(self, scope: str = "", action: Action | None = None) -> None:
        super().__init__()
        self.scope, self.action = scope, action

    def __call__(self, request: HttpRequest) -> Caller:
        token = _token(request)
        request.user = AnonymousUser() if token is None else token.user
        request.api_token = token  # type: ignore[attr-defined]
        if self.scope and token is None:
            raise AuthenticationError
        if token is not None and self.scope and self.scope not in token.scopes:
            detail = f"This call needs a token with the scope {self.scope!r}."
            raise Problem(403, "scope missing", detail)
        if self.action is not None and not may(request.user, self.action):
            raise PermissionDenied(roles_for(self.action))
        return self


def _token(request: HttpRequest) -> ApiToken | None:
    """The token sent along, if any. Raises AuthenticationError for one that is not in force."""
    kind, _, secret = request.headers.get("Authorization", "").partition(" ")
    if not kind:
        return None
    token = tokens.find(secret.strip(), request.META.get("REMOTE_ADDR", ""))
    if kind.lower() != "bearer" or token is None:
        raise AuthenticationError
    return token


def viewer_of(request: HttpRequest) -> Viewer:
    """Whose eyes the call has: a token sees its user's private things by the scope to read."""
    token: ApiToken | None = request.api_token  # type: ignore[attr-defined]
    return request.user if token is not None and "read" in token.scopes else AnonymousUser()
