"""Which tasks of a version count on a board: all, those with a tag, or all but some."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from grading.models import BenchmarkVersion, Task


@dataclass(frozen=True, slots=True)
class Selection:
    """``without``: (slug, task id) of tasks left out. ``places``: of those that count; None: all.

    ``tags``: those to choose from, none where all tasks are tagged alike.
    """

    tags: tuple[str, ...] = ()
    tag: str = ""
    without: tuple[tuple[str, str], ...] = ()
    places: frozenset[int] | None = None

    @property
    def slugs(self) -> str:
        """As in the query string."""
        return ",".join(slug for slug, _ in self.without)


def select(version: BenchmarkVersion, tag: str = "", without: Sequence[str] = ()) -> Selection:
    """Tasks tagged ``tag``, if it is not empty, and whose slug is not among ``without``.

    A tag that no task has, and a slug that is none, is left aside.
    """
    tasks = Task.objects.filter(version=version)
    kinds = tasks.order_by().values_list("category", "metadata__tags").distinct()
    tags = sorted({one for category, more in kinds for one in tags_of(category, more)})
    offered = tuple(tags) if len(tags) > 1 else ()
    tag = tag if tag in offered else ""
    if not tag and not without:
        return Selection(offered)
    read = list(
        tasks.order_by("position").values_list("slug", "task_id", "category", "metadata__tags")
    )
    out = tuple((slug, task_id) for slug, task_id, *_ in read if slug in set(without))
    if not tag and not out:
        return Selection(offered)
    slugs = {slug for slug, _ in out}
    places = frozenset(
        place
        for place, (slug, _, category, more) in enumerate(read)
        if slug not in slugs and (not tag or tag in tags_of(category, more))
    )
    return Selection(offered, tag, out, places)


def tags_of(category: str, more: Any) -> set[str]:
    """Of a task: its category and what the task file lists as ``tags``."""
    named = more if isinstance(more, list) else []
    return {one for one in (category, *named) if isinstance(one, str) and one}
