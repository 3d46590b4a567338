"""Which group a failure belongs to: set when a verdict is recorded, and all anew by command."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Count, QuerySet

from grading import fingerprints
from grading.fields import plain
from grading.models import (
    Attempt,
    BenchmarkVersion,
    CrashGroup,
    Fingerprint,
    GroupEvent,
    Sample,
    Task,
)

TITLE_CHARS = 300
# As the engine tells it in the detail of a target.
RETURNED = "; the last call returned "
BATCH = 1_000


Decided = Sequence[tuple[Sample, Attempt]]


def of_attempts(decided: Decided) -> list[Fingerprint | None]:
    """The fingerprints of attempts with their texts, stored where they are new; None of a pass.

    Part of the transaction that makes the attempts current; `woken_by` comes after that.
    """
    tasks = _tasks().in_bulk({sample.task_id for sample, one in decided if one.outcome != "pass"})
    found = [
        fingerprints.fingerprint(ending_of(attempt, tasks[sample.task_id]))
        if attempt.outcome != "pass"
        else None
        for sample, attempt in decided
    ]
    distinct = {one.value: one for one in found if one is not None}
    known = Fingerprint.objects.select_related("group").filter(value__in=distinct)
    rows = {row.value: row for row in known}
    rows |= {value: _stored(one) for value, one in distinct.items() if value not in rows}
    return [rows[one.value] if one is not None else None for one in found]


def woken_by(decided: Decided, rows: Sequence[Fingerprint | None]) -> None:
    """Let groups that were put aside come back where samples that are theirs now say so."""
    resting = (CrashGroup.State.IGNORED, CrashGroup.State.GRADER_BUG)
    seen = {
        (row.group, attempt.grader_version, sample.task_id)
        for (sample, attempt), row in zip(decided, rows, strict=True)
        if row is not None and row.group.state in resting
    }
    tasks = _tasks().in_bulk({task_id for _, _, task_id in seen}) if seen else {}
    for group, grader, task_id in sorted(seen, key=lambda one: (one[0].pk, *one[1:])):
        _wake(group, grader, tasks[task_id].version)


def of_platform_failure(reason: str) -> Fingerprint:
    """The fingerprint of samples that the platform could not grade, stored if it is new."""
    found = fingerprints.fingerprint(
        fingerprints.Ending(fingerprints.PLATFORM, detail=plain(reason))
    )
    assert found is not None
    return _stored(found)


def ending_of(attempt: Attempt, task: Task) -> fingerprints.Ending:
    """What the engine told of an attempt's end; the streams have no part in it."""
    told: dict[str, Any] = attempt.text.failure or {}
    frames = [(int(line), name) for line, name in told.get("frames", [])]
    missed = [row for row in attempt.text.targets if not row["true"]]
    missed.sort(key=lambda row: row["index"])
    first = missed[0] if missed else None
    line, above = _lines(attempt, frames) if told.get("phase") == "compile" else ("", "")
    return fingerprints.Ending(
        outcome=attempt.outcome,
        detail=attempt.detail,
        phase=told.get("phase", ""),
        exception=told.get("exception", ""),
        message=told.get("message", ""),
        frames=frames,
        signal=told.get("signal", ""),
        exit_status=told.get("exit_status"),
        target=first["index"] if first else None,
        task=f"{task.version.benchmark.slug} {task.task_id} {task.content_hash}",
        task_id=task.task_id,
        entry_points=task.entry_points,
        returned=first["detail"].partition(RETURNED)[2] if first else "",
        others=[row["index"] for row in missed[1:]],
        line=line,
        above=above,
    )


def _lines(attempt: Attempt, frames: Sequence[tuple[int, str]]) -> tuple[str, str]:
    """(the line of the program that does not compile, the nearest one above it with text).

    Empty where that is not known.
    """
    lines = attempt.text.program.split("\n")
    number = frames[-1][0] if frames else 0
    if not 0 < number <= len(lines):
        return "", ""
    return lines[number - 1], next(
        (one for one in reversed(lines[: number - 1]) if one.strip()), ""
    )


def _tasks() -> QuerySet[Task]:
    return Task.objects.select_related("version__benchmark").only(
        *("task_id", "content_hash", "entry_points"),
        *("version__number", "version__benchmark__slug"),
    )


def _stored(found: fingerprints.Fingerprint, group: CrashGroup | None = None) -> Fingerprint:
    """The record of a fingerprint; one that is new gets ``group``, else a group of its own."""
    rows = Fingerprint.objects.select_related("group")
    known = rows.filter(value=found.value).first()
    if known is not None:
        return known
    title = found.title[:TITLE_CHARS]
    try:
        with transaction.atomic():
            return Fingerprint.objects.create(
                value=found.value,
                version=fingerprints.VERSION,
                title=title,
                kind=found.kind,
                parts=found.parts,
                group=group or CrashGroup.objects.create(kind=found.kind, title=title),
            )
    except IntegrityError:
        # Another worker met it at the same moment.
        return rows.get(value=found.value)


def _wake(group: CrashGroup, grader: int, version: BenchmarkVersion) -> None:
    """What was seen with this grader in this version may contradict what was decided."""
    if group.state == CrashGroup.State.IGNORED and group.ignored_until is not None:
        samples = Sample.objects.filter(fingerprint__group=group).count()
        if samples >= group.ignored_until:
            _happened(group, CrashGroup.State.ESCALATING, f"{samples} samples")
    elif group.state == CrashGroup.State.GRADER_BUG:
        if group.fixed_in_grader is not None and grader >= group.fixed_in_grader:
            _happened(group, CrashGroup.State.REGRESSED, f"seen with grader {grader}")
        elif _meant_to_be_right(group, version):
            _happened(group, CrashGroup.State.REGRESSED, f"seen in version {version.number}")


def _meant_to_be_right(group: CrashGroup, version: BenchmarkVersion) -> bool:
    fixed = group.fixed_in_version
    if fixed is None or fixed.benchmark_id != version.benchmark_id:
        return False
    return version.number >= fixed.number


def _happened(group: CrashGroup, state: CrashGroup.State, note: str) -> None:
    unchanged = CrashGroup.objects.filter(pk=group.pk, state=group.state)
    if unchanged.update(state=state):
        GroupEvent.objects.create(
            group=group,
            kind=GroupEvent.Kind.STATE,
            before=group.state,
            after=state.value,
            note=note,
        )


@dataclass(slots=True)
class Regrouped:
    """What computing all fingerprints anew comes to.

    ``samples`` read, ``changed`` of them with another fingerprint than before; ``joined`` and
    ``split`` name groups.
    """

    samples: int = 0
    changed: int = 0
    joined: list[str] = field(default_factory=list)
    split: list[str] = field(default_factory=list)


@transaction.atomic
def regroup(dry_run: bool = False) -> Regrouped:
    """Compute the fingerprint of every sample anew, in one transaction.

    A new fingerprint stays in the group that most of its samples come from; of several that come
    from one group the largest inherits it, the others get groups of their own. Groups keep their
    state and their history, those left without samples too.
    """
    result = Regrouped()
    found: dict[str, fingerprints.Fingerprint] = {}
    members: dict[str, list[int]] = {}
    before: dict[str, Counter[int]] = {}
    held = dict(Sample.objects.values_list("pk", "fingerprint__value"))
    groups = dict(Fingerprint.objects.values_list("value", "group_id"))
    for sample_id, print_ in _all_anew():
        result.samples += 1
        if print_ is None:
            continue
        old = held[sample_id]
        result.changed += old != print_.value
        found[print_.value] = print_
        members.setdefault(print_.value, []).append(sample_id)
        if old is not None:
            before.setdefault(print_.value, Counter())[groups[old]] += 1
    heirs = _heirs(members, before, groups)
    _tell(result, before)
    if not dry_run:
        _write(found, members, heirs)
    return result


def _all_anew() -> Iterator[tuple[int, fingerprints.Fingerprint | None]]:
    tasks = {task.pk: task for task in _tasks()}
    graded = Sample.objects.filter(current_attempt__isnull=False).exclude(
        current_attempt__outcome="pass"
    )
    rows = graded.select_related("current_attempt__text")
    for sample in rows.only(
        "task_id",
        *(f"current_attempt__{name}" for name in ("outcome", "detail")),
        *(f"current_attempt__text__{name}" for name in ("failure", "targets", "program")),
    ).iterator(BATCH):
        assert sample.current_attempt is not None
        ending = ending_of(sample.current_attempt, tasks[sample.task_id])
        yield sample.pk, fingerprints.fingerprint(ending)
    failed = Sample.objects.filter(state=Sample.State.PLATFORM_FAILED)
    for pk, reason in failed.values_list("pk", "platform_failure"):
        ending = fingerprints.Ending(fingerprints.PLATFORM, detail=plain(reason))
        yield pk, fingerprints.fingerprint(ending)


def _heirs(
    members: dict[str, list[int]], before: dict[str, Counter[int]], groups: dict[str, int]
) -> dict[str, int]:
    """The group each new fingerprint goes on with; those absent start one."""
    heirs = {value: groups[value] for value in members if value in groups}
    taken = set(heirs.values())
    for value in sorted(members, key=lambda value: (-len(members[value]), value)):
        if value in heirs or value not in before:
            continue
        (group, _), *_ = before[value].most_common(1)
        if group not in taken:
            heirs[value] = group
            taken.add(group)
    return heirs


def _tell(result: Regrouped, before: dict[str, Counter[int]]) -> None:
    titles = dict(CrashGroup.objects.values_list("pk", "title"))
    parts = Counter(group for counts in before.values() for group in counts)
    known = dict(CrashGroup.objects.annotate(n=Count("fingerprints")).values_list("pk", "n"))
    result.split = [titles[group] for group, n in parts.items() if n > known[group]]
    result.joined = [
        " + ".join(titles[group] for group in counts)
        for counts in before.values()
        if len(counts) > 1
    ]


def _write(
    found: dict[str, fingerprints.Fingerprint],
    members: dict[str, list[int]],
    heirs: dict[str, int],
) -> None:
    groups = CrashGroup.objects.in_bulk(set(heirs.values()))
    known = set(Fingerprint.objects.values_list("value", flat=True))
    Sample.objects.filter(current_attempt__outcome="pass").exclude(fingerprint=None).update(
        fingerprint=None
    )
    for value, ids in members.items():
        heir = groups.get(heirs.get(value, 0))
        if heir and value not in known:
            heir.title = found[value].title[:TITLE_CHARS]
            heir.save(update_fields=["title"])
        row = _stored(found[value], heir)
        for start in range(0, len(ids), BATCH):
            Sample.objects.filter(pk__in=ids[start : start + BATCH]).update(fingerprint=row)
