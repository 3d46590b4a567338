"""Cursor pagination: a page starts behind the last row of the one before, whatever was added."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from typing import Any

from django.db.models import Q, QuerySet

from grading.api.errors import Problem

MAX_LIMIT = 1_000


def page(
    rows: QuerySet[Any],
    keys: Sequence[str],
    cursor: str,
    limit: int,
    shown: Callable[[QuerySet[Any]], list[Any]],
) -> dict[str, Any]:
    """``{"items": […], "next": cursor or None}``; two queries.

    ``keys`` are one or two fields that order the rows and together name one; ``shown`` turns the
    rows of the page into items. Raises `Problem` for a cursor that is not one of ours.
    """
    size = max(1, min(limit, MAX_LIMIT))
    ordered = rows.order_by(*keys)
    if cursor:
        ordered = ordered.filter(_behind(keys, _read(cursor, len(keys))))
    places = list(ordered.values_list(*keys)[: size + 1])
    following = None
    if len(places) > size:
        following = _cursor(places[size - 1])
        ordered = ordered.exclude(_behind(keys, places[size - 1]))
    return {"items": shown(ordered), "next": following}


def page_of_list(
    found: Sequence[Any],
    key: Callable[[Any], int],
    cursor: str,
    limit: int,
    shown: Callable[[Sequence[Any]], list[Any]],
) -> dict[str, Any]:
    """As `page`, of what is in memory already, in ascending order of ``key``."""
    size = max(1, min(limit, MAX_LIMIT))
    last = _read(cursor, 1)[0] if cursor else None
    left = [one for one in found if last is None or key(one) > last]
    following = _cursor([key(left[size - 1])]) if len(left) > size else None
    return {"items": shown(left[:size]), "next": following}


def _behind(keys: Sequence[str], place: Sequence[Any]) -> Q:
    beyond = Q(**{f"{keys[0]}__gt": place[0]})
    if len(keys) > 1:
        beyond |= Q(**{keys[0]: place[0], f"{keys[1]}__gt": place[1]})
    return beyond


def _cursor(place: Sequence[Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(list(place)).encode()).decode().rstrip("=")


def _read(cursor: str, length: int) -> list[int]:
    try:
        place = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, binascii.Error):
        place = None
    if (
        not isinstance(place, list)
        or len(place) != length
        or not all(type(part) is int and abs(part) < 1 << 62 for part in place)
    ):
        raise Problem(400, "bad cursor", "Use the value of next from the page before.")
    return place
