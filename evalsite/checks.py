"""System checks: settings that would open a server to others without protection stop the start."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register


def is_loopback(host: str) -> bool:
    """True for ``localhost`` and the loopback addresses of both families."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@register(Tags.security)
def broker_is_protected(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """Whoever reaches the broker runs code as a worker: off this host it needs password and TLS."""
    if not settings.REDIS_URL:
        return []
    parts = urlsplit(settings.REDIS_URL)
    found: list[CheckMessage] = []
    if parts.scheme not in {"redis", "rediss"} or not parts.hostname:
        return [
            Error(
                "EVALSITE_REDIS_URL is not a broker address.",
                hint="Use redis://:PASSWORD@127.0.0.1:6379/0 or rediss://:PASSWORD@HOST:6379/0.",
                id="evalsite.E001",
            )
        ]
    if is_loopback(parts.hostname):
        return []
    if not parts.password:
        found.append(
            Error(
                f"The broker on {parts.hostname} has no password.",
                hint="Set one (requirepass) and put it into EVALSITE_REDIS_URL.",
                id="evalsite.E002",
            )
        )
    if parts.scheme != "rediss":
        found.append(
            Error(
                f"The connection to the broker on {parts.hostname} is not encrypted.",
                hint="Use rediss://, or a tunnel that ends on 127.0.0.1.",
                id="evalsite.E003",
            )
        )
    return found


@register(Tags.security)
def debug_stays_at_home(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """Django's debug pages show code and settings to whoever causes an error."""
    others = [host for host in settings.ALLOWED_HOSTS if not is_loopback(host)]
    if not settings.DEBUG or not others:
        return []
    return [
        Error(
            f"EVALSITE_DEBUG is on and the site answers to {', '.join(others)}.",
            hint="Unset EVALSITE_DEBUG, or take these hosts out of EVALSITE_ALLOWED_HOSTS.",
            id="evalsite.E004",
        )
    ]


@register(Tags.security)
def others_come_by_https(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    others = [host for host in settings.ALLOWED_HOSTS if not is_loopback(host)]
    if settings.HTTPS or not others:
        return []
    return [
        Warning(
            f"The site answers to {', '.join(others)} and EVALSITE_HTTPS is off.",
            hint="Put a proxy that speaks HTTPS in front and set EVALSITE_HTTPS=1.",
            id="evalsite.W001",
        )
    ]
