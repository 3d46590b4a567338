"""Snapshots: numbered states of boards, stored when something moved and never changed again.

`take_due` is a step of the sweep process. It looks at little where nothing was graded, and stores
nothing where the scores, the runs and the rules are those of the last snapshot.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from django.core.cache import cache
from django.db import IntegrityError, transaction
from django.db.models import Max, OuterRef, Subquery

from grading.models import BenchmarkVersion, LanguageModel, Submission
from leaderboard.changes import changes
from leaderboard.editions import Edition, Entry, computed, policies_of
from leaderboard.figures import KS
from leaderboard.models import ScoreSheet, Snapshot, SnapshotRow, SnapshotTests
from leaderboard.packing import (
    facts_of,
    figures_from,
    pack_figures,
    pack_standings,
    row_from,
    standings_from,
)
from leaderboard.ranking import Standings
from leaderboard.sheets import Sheet, from_columns

KEEP_S = 24 * 3600


def take_due() -> str:
    """Take a snapshot of every version whose board moved; which were stored, in words."""
    taken: list[str] = []
    for version in BenchmarkVersion.objects.select_related("benchmark"):
        state = _state(version)
        key = f"board-state:{version.pk}"
        if cache.get(key) == state:
            continue
        if snapshot := take(version):
            taken.append(str(snapshot))
        cache.set(key, state, KEEP_S)
    return f"stored {', '.join(taken)}" if taken else ""


def take(version: BenchmarkVersion) -> Snapshot | None:
    """Store the board as it is now; None where the newest snapshot already holds it."""
    last = _last(version)
    before = load([last], as_stored=True)[0] if last else None
    edition = computed(version, before)
    digest = edition.digest()
    if (last.digest == digest) if last else not edition.entries:
        return None
    snapshot = Snapshot(
        version=version,
        number=last.number + 1 if last else 1,
        digest=digest,
        policies=dict(edition.policies),
        changes=changes(before, edition, _merged(before) if before else None),
        tasks=edition.tasks,
    )
    try:
        _store(snapshot, edition)
    except IntegrityError:
        # Another process was faster; what it may have missed the next round finds.
        return None
    return snapshot


def _merged(before: Edition) -> dict[str, str]:
    """By slug, of the models of an edition: what they were merged into since."""
    slugs = [entry.row.model_slug for entry in before.entries]
    found = LanguageModel.objects.filter(slug__in=slugs, merged_into__isnull=False)
    return dict(found.values_list("slug", "merged_into__name"))


def current(version: BenchmarkVersion, number: int | None = None) -> Edition:
    """The newest snapshot, or number ``number``; computed where there is none yet.

    Raises `Snapshot.DoesNotExist` for a number that was never taken.
    """
    if number is not None:
        return load([Snapshot.objects.get(version=version, number=number)])[0]
    newest = newest_of([version.pk])
    return newest[version.pk] if newest else computed(version)


def _last(version: BenchmarkVersion) -> Snapshot | None:
    return Snapshot.objects.filter(version=version).order_by("-number").first()


def newest_of(versions: Iterable[int], score: int | None = None) -> dict[int, Edition]:
    """The newest snapshot of each version that has one, in a fixed number of queries."""
    mine = Snapshot.objects.filter(version=OuterRef("version")).order_by("-number")
    snapshots = list(
        Snapshot.objects.filter(version__in=versions, pk=Subquery(mine.values("pk")[:1]))
    )
    editions = load(snapshots, score)
    return {one.version_id: edition for one, edition in zip(snapshots, editions, strict=True)}


def load(
    snapshots: Sequence[Snapshot], score: int | None = None, *, as_stored: bool = False
) -> list[Edition]:
    """In two queries. Sheets and tests are read when asked for; those of ``score`` right away.

    What was withdrawn since is left out, unless all is wanted ``as_stored``.
    """
    stored: dict[int, list[tuple[Any, ...]]] = {one.pk: [] for one in snapshots}
    rows = SnapshotRow.objects.filter(snapshot__in=stored).order_by("snapshot", "position")
    for pk, *row in rows.values_list(
        "snapshot_id", "submission", "facts", "figures", "sheet__digest"
    ):
        stored[pk].append(tuple(row))
    submissions = {row[0] for held in stored.values() for row in held}
    public = submissions if as_stored else _public(submissions)
    tests = _tests(list(stored), score) if score else {}
    return [_edition(one, stored[one.pk], public, tests) for one in snapshots]


def _edition(
    snapshot: Snapshot,
    stored: Sequence[tuple[Any, ...]],
    public: Container[str],
    tests: Mapping[tuple[int, int], Standings],
) -> Edition:
    entries = tuple(
        Entry(row_from(facts, figures_from(held["zero"])), figures_from(held["missing"]), digest)
        for public_id, facts, held, digest in stored
        if public_id in public
    )

    def read_tests(score: int) -> Standings:
        key = (snapshot.pk, score)
        held = tests if key in tests else _tests([snapshot.pk], score)
        return held.get(key, Standings())

    return Edition(
        tasks=snapshot.tasks,
        policies=snapshot.policies,
        entries=entries,
        read_tests=read_tests,
        read_sheets=lambda: _sheets(snapshot),
        number=snapshot.number,
        taken_at=snapshot.created_at,
        withdrawn=len(stored) - len(entries),
    )


def _public(submissions: set[str]) -> set[str]:
    """Those that are still public."""
    found = Submission.objects.filter(
        public_id__in=submissions, visibility=Submission.Visibility.PUBLIC
    )
    return set(found.values_list("public_id", flat=True))


def _state(version: BenchmarkVersion) -> str:
    """Changes with what a verdict, a visibility or a rule changes; cheap to read."""
    runs = (
        Submission.objects.filter(version=version, visibility=Submission.Visibility.PUBLIC)
        .exclude(state=Submission.State.CANCELLED)
        .exclude(state=Submission.State.GRADING)
        .order_by("pk")
        .values_list(
            "pk",
            "finished_at",
            "heartbeat_at",
            "settings",
            "language_model__name",
            "language_model__organisation",
            "language_model__synthetic",
        )
    )
    newest = Snapshot.objects.filter(version=version).aggregate(last=Max("number"))["last"]
    text = repr((list(runs), policies_of(version), version.benchmark.title, newest))
    return hashlib.sha256(text.encode()).hexdigest()


@transaction.atomic
def _store(snapshot: Snapshot, edition: Edition) -> None:
    snapshot.save(force_insert=True)
    _store_rows(snapshot, edition)
    _store_tests(snapshot, edition)


def _store_rows(snapshot: Snapshot, edition: Edition) -> None:
    digests = {entry.digest for entry in edition.entries}
    held = dict(ScoreSheet.objects.filter(digest__in=digests).values_list("digest", "pk"))
    for entry in edition.entries:
        if entry.digest not in held:
            sheet = edition.sheets[entry.row.public_id]
            made = ScoreSheet.objects.create(digest=entry.digest, scores=sheet.as_columns())
            held[entry.digest] = made.pk
    SnapshotRow.objects.bulk_create(
        SnapshotRow(
            snapshot=snapshot,
            position=position,
            submission=entry.row.public_id,
            facts=facts_of(entry.row),
            figures={
                "zero": pack_figures(entry.row.figures),
                "missing": pack_figures(entry.without_timeouts),
            },
            sheet_id=held[entry.digest],
        )
        for position, entry in enumerate(edition.entries)
    )


def _store_tests(snapshot: Snapshot, edition: Edition) -> None:
    SnapshotTests.objects.bulk_create(
        SnapshotTests(snapshot=snapshot, score=k, standings=pack_standings(tests))
        for k in KS
        if (tests := edition.tests(k)).names
    )


def _tests(snapshots: Sequence[int], score: int) -> dict[tuple[int, int], Standings]:
    """By snapshot and score."""
    stored = SnapshotTests.objects.filter(snapshot__in=snapshots, score=score)
    return {
        (snapshot, score): standings_from(packed)
        for snapshot, packed in stored.values_list("snapshot_id", "standings")
    }


def _sheets(snapshot: Snapshot) -> dict[str, Sheet]:
    rows = SnapshotRow.objects.filter(snapshot=snapshot)
    read = rows.values_list("submission", "sheet__scores")
    return {public_id: from_columns(columns) for public_id, columns in read}
