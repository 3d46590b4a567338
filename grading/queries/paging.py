"""One page of a long list, read as what the page shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from django.core.paginator import Page, Paginator
from django.db.models import QuerySet

T = TypeVar("T")


def page_of(
    rows: QuerySet[Any], per_page: int, number: str, make: Callable[[Any], list[T]]
) -> Page[T]:
    """Page ``number`` (anything that is none: the first or last) of ``rows``, made by ``make``."""
    page: Any = Paginator(rows, per_page).get_page(number)
    page.object_list = make(page.object_list)
    return page
