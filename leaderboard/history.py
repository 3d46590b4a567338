"""How a model's score moved from snapshot to snapshot, and why."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from grading.models import BenchmarkVersion
from leaderboard.models import Snapshot, SnapshotRow
from leaderboard.statistics import Interval

MOST = 60


@dataclass(frozen=True, slots=True)
class Moment:
    """pass@1 from snapshot number ``snapshot`` on; both None where a snapshot has no value.

    ``reasons``: sentences of the change log, about the model or about the rules for all.
    """

    snapshot: int
    at: datetime
    submission: str
    value: float | None
    interval: Interval | None
    reasons: tuple[str, ...]


def history(version: BenchmarkVersion, slug: str, submissions: Collection[str]) -> list[Moment]:
    """The last `MOST` moves of the model ``slug`` on the board of ``version``, oldest first.

    Only rows of ``submissions``, its public ones, are read. A snapshot in which neither the run
    nor its figures are others, and of which the change log has nothing to say, is no move; the
    newest is always one. Two queries.
    """
    rows = SnapshotRow.objects.filter(snapshot__version=version, submission__in=submissions)
    read = rows.order_by("snapshot__number").values_list(
        "snapshot__number", "snapshot__created_at", "submission", "figures__zero"
    )
    held = list(read)
    changes = dict(
        Snapshot.objects.filter(version=version, number__in=[row[0] for row in held]).values_list(
            "number", "changes"
        )
    )
    moments = [
        _moment(row, [one["text"] for one in changes[row[0]] if _concerns(one, slug)])
        for row in held
    ]
    return _moves(moments)[-MOST:]


def _concerns(change: dict[str, Any], slug: str) -> bool:
    """A rank range that others moved says nothing of the score."""
    own = change["slug"] == slug and change["kind"] != "range"
    return own or change["kind"] in ("rule", "first")


def _moment(row: tuple[int, datetime, str, dict[str, Any]], reasons: Iterable[str]) -> Moment:
    number, at, submission, figures = row
    ends = figures["intervals"]["1"]
    return Moment(
        snapshot=number,
        at=at,
        submission=submission,
        value=figures["pass_at"]["1"],
        interval=Interval(**ends) if ends else None,
        reasons=tuple(reasons),
    )


def _moves(moments: Sequence[Moment]) -> list[Moment]:
    found: list[Moment] = []
    for moment in moments:
        if (
            not found
            or moment.reasons
            or moment is moments[-1]
            or _facts(found[-1]) != _facts(moment)
        ):
            found.append(moment)
    return found


def _facts(moment: Moment) -> tuple[Any, ...]:
    return moment.submission, moment.value, moment.interval
