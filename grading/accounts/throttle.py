"""A brake on guessing: how often something may be tried within a window of time.

Counts live in the database, so that all web processes share them, in rows that are bounded in
number and hold hashes only.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import IPv6Address, ip_address, ip_network

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.http import HttpRequest
from django.utils import timezone

from grading.accounts.models import Attempts

WINDOW = timedelta(minutes=15)
# What an attacker with many addresses can make this table hold.
MAX_ROWS = 20_000
# One household or one rented server has a whole network of this length.
IPV6_PREFIX = 64


@dataclass(frozen=True, slots=True)
class Limit:
    """At most ``times`` tries of ``what`` by ``who`` in a `WINDOW`."""

    what: str
    who: tuple[str, ...]
    times: int

    @property
    def key(self) -> str:
        return hashlib.sha256("\0".join((self.what, *self.who)).encode()).hexdigest()


def log_in_limits(name: str, address: str) -> list[Limit]:
    """A stranger cannot lock somebody out from one address, nor try many names from it."""
    name = name.casefold()
    return [
        Limit("log in as, from", (name, address), 5),
        Limit("log in from", (address,), 30),
        Limit("log in as", (name,), 100),
    ]


def spend(limits: list[Limit]) -> timedelta | None:
    """Count one try against each limit; where one is used up, how long until it is free again.

    The try is counted before it is made, so that many at once are no way around it. What is
    refused is not counted.
    """
    now = timezone.now()
    with transaction.atomic():
        _tidy()
        rows = {limit.key: _row(limit.key) for limit in limits}
        full = [rows[limit.key] for limit in limits if rows[limit.key].count >= limit.times]
        if full:
            return max(row.since for row in full) + WINDOW - now
        Attempts.objects.filter(key__in=rows).update(count=F("count") + 1)
    return None


def forgive(limits: list[Limit]) -> None:
    """Forget the tries: the last one was right."""
    Attempts.objects.filter(key__in=[limit.key for limit in limits]).delete()


def address_of(request: HttpRequest) -> str:
    """The visitor's address; a proxy that speaks HTTPS for the site is believed about it.

    An IPv6 address stands for its network.
    """
    text = request.META.get("REMOTE_ADDR", "")
    if settings.HTTPS:
        text = request.headers.get("X-Forwarded-For", text).rpartition(",")[2].strip()
    try:
        address = ip_address(text)
    except ValueError:
        return text[:64]
    if isinstance(address, IPv6Address):
        return str(ip_network((address, IPV6_PREFIX), strict=False))
    return str(address)


def _row(key: str) -> Attempts:
    return Attempts.objects.select_for_update().get_or_create(
        key=key, defaults={"since": timezone.now()}
    )[0]


def _tidy() -> None:
    Attempts.objects.filter(since__lt=timezone.now() - WINDOW).delete()
    newest = Attempts.objects.order_by("-since").values_list("since", flat=True)
    if too_many := list(newest[MAX_ROWS : MAX_ROWS + 1]):
        Attempts.objects.filter(since__lte=too_many[0]).delete()
