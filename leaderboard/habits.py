"""What a run's failures cost it, outcome by outcome and, within each, by how they come about."""

from __future__ import annotations

import builtins
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Count

from grading.models import Fingerprint, Sample
from leaderboard.cards import TaskLine
from leaderboard.curves import lost

WHEN = {"compile": "when compiled", "import": "while loading", "target": "when asked"}


@dataclass(frozen=True, slots=True)
class Habit:
    """``points``: what it takes from pass@1, 0..1. ``name`` empty: failures of another kind."""

    name: str
    points: float
    tasks: int
    samples: int


@dataclass(frozen=True, slots=True)
class Loss:
    """The same for an outcome; the points of its ``habits`` make its own, where there are any."""

    outcome: str
    points: float
    tasks: int
    samples: int
    habits: tuple[Habit, ...] = ()


def losses(public_id: str, tasks: Sequence[TaskLine]) -> list[Loss]:
    """Of the submission with these ``tasks``, the dearest first; with pass@1 they make 1.

    Habits are read from the fingerprints of the samples: two queries.
    """
    shares = lost(tasks)
    habits = _habits(public_id, tasks) if shares else {}
    return [
        Loss(
            outcome=outcome,
            points=points,
            tasks=sum(task.outcomes.get(outcome, 0) > 0 for task in tasks),
            samples=sum(task.outcomes.get(outcome, 0) for task in tasks),
            habits=tuple(habits.get(outcome, ())),
        )
        for outcome, points in shares.items()
    ]


def _habits(public_id: str, tasks: Sequence[TaskLine]) -> dict[str, list[Habit]]:
    failures = Sample.objects.filter(
        submission__public_id=public_id, fingerprint__isnull=False, current_attempt__isnull=False
    ).order_by()
    counted = failures.values_list(
        "current_attempt__outcome", "fingerprint_id", "task__slug"
    ).annotate(n=Count("pk"))
    names = _names(public_id)
    weights = {task.slug: 1 / task.n for task in tasks if task.n}
    found: dict[str, dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
    for outcome, fingerprint, slug, n in counted:
        # A verdict that came in between these queries has no weight yet.
        if slug in weights and fingerprint in names:
            held = found[outcome][names[fingerprint]]
            held[slug] = held.get(slug, 0) + n
    return {outcome: _sorted(by_name, weights) for outcome, by_name in found.items()}


def _sorted(by_name: Mapping[str, Mapping[str, int]], weights: Mapping[str, float]) -> list[Habit]:
    habits = [
        Habit(
            name=name,
            points=sum(n * weights[slug] for slug, n in held.items()) / len(weights),
            tasks=len(held),
            samples=sum(held.values()),
        )
        for name, held in by_name.items()
    ]
    return sorted(habits, key=lambda one: (-one.points, one.name))


def _names(public_id: str) -> dict[int, str]:
    met = Fingerprint.objects.filter(samples__submission__public_id=public_id).distinct()
    return {
        pk: habit_name(kind, parts) for pk, kind, parts in met.values_list("pk", "kind", "parts")
    }


def habit_name(kind: str, parts: Iterable[tuple[str, str]]) -> str:
    """How failures with a fingerprint come about, whatever their task; see `Fingerprint.parts`.

    Neither a message nor a name that the program chose is in it, so that it can be shown where
    generations and targets are hidden.
    """
    held = dict(parts)
    raised = _raised(held.get("type", ""))
    phase = held.get("where", "").partition(" ")[0]
    when = WHEN.get(phase, "while it runs")
    if kind == "assertion":
        return f"a call raises {raised}" if raised else "a target is not true"
    if kind == "denied import":
        return "a denied import while loading"
    if kind in ("exception", "syntax"):
        return f"{raised} {when}"
    if kind in ("signal", "exit"):
        _, _, which = held.get("kind", "").partition(":")
        return f"ended by {'signal' if kind == 'signal' else 'status'} {which}"
    return f"time limit passed {when}" if kind == "timeout" else "ended otherwise"


def _raised(name: str) -> str:
    if not name:
        return ""
    held = getattr(builtins, name, None)
    builtin = isinstance(held, type) and issubclass(held, BaseException)
    return name if builtin else "an exception that is not Python's own"
