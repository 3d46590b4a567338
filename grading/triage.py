"""Decisions on crash groups. Every change is an event that says who, from what, to what and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from grading.models import BenchmarkVersion, CrashGroup, Fingerprint, GroupEvent

# The others come about by themselves.
CHOSEN = (
    CrashGroup.State.NEW,
    CrashGroup.State.TRIAGED,
    CrashGroup.State.KNOWN,
    CrashGroup.State.GRADER_BUG,
    CrashGroup.State.IGNORED,
)
OPEN = (
    CrashGroup.State.NEW,
    CrashGroup.State.TRIAGED,
    CrashGroup.State.ESCALATING,
    CrashGroup.State.REGRESSED,
)


@dataclass(frozen=True, slots=True)
class Decision:
    """What to change; None leaves a thing as it is. ``assignee`` False means nobody.

    ``ignored_until`` belongs to ignored groups, the two ``fixed_in_...`` to grader bugs.
    """

    state: CrashGroup.State | None = None
    assignee: User | bool | None = None
    note: str = ""
    ignored_until: int | None = None
    fixed_in_grader: int | None = None
    fixed_in_version: BenchmarkVersion | None = None


@transaction.atomic
def decide(group_ids: Iterable[int], decision: Decision, by: User) -> int:
    """Change groups as one; returns how many there were.

    A note alone is an event of its own, else it is the reason of the change. Raises ValueError
    for a state that nobody can choose.
    """
    if decision.state is not None and decision.state not in CHOSEN:
        raise ValueError(f"{decision.state} is not chosen, it comes about")
    groups = CrashGroup.objects.select_for_update(of=("self",)).filter(pk__in=list(group_ids))
    found = list(groups.select_related("assignee").order_by("pk"))
    for group in found:
        _decide(group, decision, by)
    return len(found)


def _decide(group: CrashGroup, decision: Decision, by: User) -> None:
    events = []
    if decision.state is not None:
        events += _set_state(group, decision.state, decision)
    if decision.assignee is not None:
        events += _assign(group, decision.assignee)
    if not events and decision.note:
        events = [{"kind": GroupEvent.Kind.NOTE}]
    for facts in events:
        GroupEvent.objects.create(group=group, by=by, note=decision.note, **facts)
    group.save()


def _set_state(
    group: CrashGroup, state: CrashGroup.State, decision: Decision
) -> list[dict[str, Any]]:
    before = _state_words(group)
    group.state = state
    ignored, bug = state == CrashGroup.State.IGNORED, state == CrashGroup.State.GRADER_BUG
    group.ignored_until = decision.ignored_until if ignored else None
    group.fixed_in_grader = decision.fixed_in_grader if bug else None
    group.fixed_in_version = decision.fixed_in_version if bug else None
    after = _state_words(group)
    if before == after:
        return []
    return [{"kind": GroupEvent.Kind.STATE, "before": before, "after": after}]


def _state_words(group: CrashGroup) -> str:
    words = [group.get_state_display()]
    if group.ignored_until is not None:
        words.append(f"until {group.ignored_until} samples")
    if group.fixed_in_grader is not None:
        words.append(f"fixed in grader {group.fixed_in_grader}")
    if group.fixed_in_version is not None:
        words.append(f"fixed in {group.fixed_in_version}")
    return ", ".join(words)[:300]


def _assign(group: CrashGroup, assignee: User | bool) -> list[dict[str, Any]]:
    person = assignee if isinstance(assignee, User) else None
    before = group.assignee
    if before == person:
        return []
    group.assignee = person
    names = {"before": _name(before), "after": _name(person)}
    return [{"kind": GroupEvent.Kind.ASSIGNED, **names}]


def _name(person: Any) -> str:
    return person.get_username() if person else "nobody"


@transaction.atomic
def merge(group: CrashGroup, into: CrashGroup, by: User, note: str = "") -> None:
    """Move all fingerprints of ``group``; what fails like it later is in ``into`` as well.

    The emptied group keeps its history and leads to ``into``; its fingerprints can be split off
    again. Raises ValueError where both are the same.
    """
    if group.pk == into.pk:
        raise ValueError("a group cannot be merged into itself")
    Fingerprint.objects.filter(group=group).update(group=into)
    CrashGroup.objects.filter(pk=group.pk).update(merged_into=into)
    CrashGroup.objects.filter(pk=into.pk).update(merged_into=None)
    for here, there in ((group, f"into {into.public_id}"), (into, f"from {group.public_id}")):
        other = into if here is group else group
        GroupEvent.objects.create(
            group=here,
            kind=GroupEvent.Kind.MERGED,
            by=by,
            before=other.title,
            after=there,
            note=note,
        )


@transaction.atomic
def split(fingerprint: Fingerprint, by: User, note: str = "") -> CrashGroup:
    """Give a fingerprint a new group of its own, in state new.

    Raises ValueError where it is alone in its group already.
    """
    group = fingerprint.group
    if not group.fingerprints.exclude(pk=fingerprint.pk).exists():
        raise ValueError("the group has no other fingerprint")
    own = CrashGroup.objects.create(
        kind=fingerprint.kind, title=fingerprint.title, first_seen_at=fingerprint.created_at
    )
    Fingerprint.objects.filter(pk=fingerprint.pk).update(group=own)
    for here, there in ((group, f"off to {own.public_id}"), (own, f"from {group.public_id}")):
        GroupEvent.objects.create(
            group=here,
            kind=GroupEvent.Kind.SPLIT,
            by=by,
            before=fingerprint.title,
            after=there,
            note=note,
        )
    return own
