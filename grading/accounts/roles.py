"""Roles: what a person is on this site. What a role may do is in :mod:`grading.permissions`."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import TypeAlias

from django.contrib.auth.models import AnonymousUser, Group, User
from django.db import transaction

Viewer: TypeAlias = User | AnonymousUser

_CACHE = "_evalsite_roles"


class Role(StrEnum):
    """``anonymous``, ``user`` and ``owner`` follow from who asks for what; the rest is given."""

    ANONYMOUS = "anonymous"
    USER = "user"
    OWNER = "owner"  # of the submission in question
    TRIAGER = "triager"
    MAINTAINER = "benchmark maintainer"
    ADMIN = "admin"


# Each of these is a group of its name.
GIVEN = (Role.TRIAGER, Role.MAINTAINER, Role.ADMIN)


def roles_of(user: Viewer) -> frozenset[Role]:
    """At most one query for each user object; who may enter the admin site is an admin."""
    if not user.is_authenticated:
        return frozenset({Role.ANONYMOUS})
    held: frozenset[Role] | None = getattr(user, _CACHE, None)
    if held is None:
        more = frozenset({Role.ADMIN}) if user.is_staff else _groups(user)
        held = more | {Role.USER}
        setattr(user, _CACHE, held)
    return held


def _groups(user: User) -> frozenset[Role]:
    return frozenset(map(Role, user.groups.filter(name__in=GIVEN).values_list("name", flat=True)))


def given_roles(user: User) -> list[Role]:
    """The roles that somebody gave to ``user``, in the order of `GIVEN`."""
    held = roles_of(user)
    return [role for role in GIVEN if role in held]


@transaction.atomic
def give(user: User, roles: Iterable[Role]) -> None:
    """Make ``roles`` the given roles of ``user``; an admin also rules the admin site."""
    wanted = set(roles) & set(GIVEN)
    user.groups.remove(*Group.objects.filter(name__in=GIVEN))
    user.groups.add(*(Group.objects.get_or_create(name=role.value)[0] for role in wanted))
    user.is_staff = user.is_superuser = Role.ADMIN in wanted
    user.save(update_fields=["is_staff", "is_superuser"])
    user.__dict__.pop(_CACHE, None)
