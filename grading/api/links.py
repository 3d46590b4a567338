"""Addresses of the site's pages, whole, for those who read them elsewhere."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.urls import reverse


def absolute(request: HttpRequest, name: str, *args: Any) -> str:
    """The address of the page called ``name``, with scheme and host."""
    return request.build_absolute_uri(reverse(name, args=args))
