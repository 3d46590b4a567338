"""Bearer tokens for the API: shown once, stored as a hash, limited by scope and time."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from datetime import timedelta

from django.contrib.auth.models import AbstractBaseUser, User
from django.utils import timezone

from grading.models import ApiToken
from grading.permissions import Action, Viewer, may

# Scanners that look for leaked secrets find it by this.
PREFIX = "evs_"
SECRET_BYTES = 24
SHOWN_CHARACTERS = 10
SCOPES = ("read", "submit", "triage", "admin")
# A token can do no more than its user.
NEEDED = {"triage": Action.TRIAGE, "admin": Action.USE_ADMIN_SITE}
USED_EVERY = timedelta(minutes=1)


def usable_scopes(user: Viewer) -> list[str]:
    """The scopes that a token of ``user`` may have."""
    return [scope for scope in SCOPES if scope not in NEEDED or may(user, NEEDED[scope])]


def make(
    user: User, name: str, scopes: Iterable[str], days: int | None = None
) -> tuple[str, ApiToken]:
    """(the token, its record). The token itself is nowhere stored; ``days`` None never expires.

    Raises ValueError for a scope that does not exist or that the user cannot use.
    """
    wanted = [scope for scope in SCOPES if scope in set(scopes)]
    if not wanted or set(scopes) - set(SCOPES):
        raise ValueError(f"scopes are some of {', '.join(SCOPES)}")
    if not set(wanted) <= set(usable_scopes(user)):
        raise ValueError(f"you can use {', '.join(usable_scopes(user))}")
    secret = PREFIX + secrets.token_hex(SECRET_BYTES)
    expires = None if days is None else timezone.now() + timedelta(days=days)
    token = ApiToken.objects.create(
        user_id=user.pk,
        name=name[:80],
        start=secret[:SHOWN_CHARACTERS],
        secret_hash=_hash(secret),
        scopes=wanted,
        expires_at=expires,
    )
    return secret, token


def find(secret: str, address: str = "") -> ApiToken | None:
    """The token in force behind a secret, its use noted; None where there is none."""
    now = timezone.now()
    token = (
        ApiToken.objects.select_related("user")
        .filter(secret_hash=_hash(secret), revoked_at=None, user__is_active=True)
        .first()
    )
    if token is None or (token.expires_at is not None and token.expires_at <= now):
        return None
    if token.used_at is None or now - token.used_at > USED_EVERY:
        ApiToken.objects.filter(pk=token.pk).update(used_at=now, used_from=address[:64])
    return token


def revoke(user: AbstractBaseUser, token_id: int) -> bool:
    """Whether a token of the user's own was in force until now."""
    own = ApiToken.objects.filter(pk=token_id, user_id=user.pk, revoked_at=None)
    return own.update(revoked_at=timezone.now()) == 1


def _hash(secret: str) -> str:
    # A random secret of 192 bits needs no slow hash.
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
