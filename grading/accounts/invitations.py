"""Invitations: a link from the administrator that makes one account, once, for a while."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from grading.accounts import roles
from grading.accounts.models import Invitation
from grading.accounts.roles import Role

TOKEN_BYTES = 32


class InvitationUsed(Exception):
    """The link has been used, revoked, or is too old."""


def invite(by: User, given: Iterable[Role], days: int, email: str = "") -> str:
    """Store an invitation for ``days`` days; returns the token of its link, known only here."""
    token = secrets.token_urlsafe(TOKEN_BYTES)
    Invitation.objects.create(
        token_hash=_hash(token),
        email=email,
        roles=[role.value for role in given],
        created_by=by,
        expires_at=timezone.now() + timedelta(days=days),
    )
    return token


def open_invitations() -> QuerySet[Invitation]:
    return Invitation.objects.filter(used_at=None, expires_at__gt=timezone.now())


def find(token: str) -> Invitation | None:
    """The invitation that ``token`` still opens."""
    return open_invitations().filter(token_hash=_hash(token)).first()


@transaction.atomic
def accept(token: str, make_user: Callable[[], User]) -> User:
    """Use the invitation up and make its account, with the roles it gives.

    Raises `InvitationUsed`, with no account made, where somebody was faster.
    """
    invitation = find(token)
    if invitation is None:
        raise InvitationUsed
    taken = open_invitations().filter(pk=invitation.pk).update(used_at=timezone.now())
    if not taken:
        raise InvitationUsed
    user = make_user()
    roles.give(user, map(Role, invitation.roles))
    Invitation.objects.filter(pk=invitation.pk).update(used_by=user)
    return user


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
