"""A comparison in a sentence."""

from __future__ import annotations

from fractions import Fraction

from leaderboard.comparison import Comparison
from leaderboard.precision import LEVEL
from leaderboard.ranking import LEAST_TASKS
from leaderboard.separation import Separation
from leaderboard.words import Finding


def finding(found: Comparison) -> Finding:
    """Who is ahead, whether that may be chance, and what it is among all pairs of the board."""
    tasks = len(found.tasks)
    if found.a.public_id == found.b.public_id:
        return Finding("These are the same run.", "Choose two different models.")
    if not found.paired:
        return Finding(
            f"Too few common tasks for a test: {tasks}.",
            f"At least {LEAST_TASKS} tasks with samples of both are needed.",
        )
    low, high = signed(found.paired.interval.low), signed(found.paired.interval.high)
    return Finding(
        f"{_ahead(found)}.",
        f"95 % interval {low} to {high}, {p_text(found.paired.p)}, "
        f"paired over {tasks:,} common tasks. {_among_all(found)}"
        f"A passes more often on {found.a_better:,} tasks, B on {found.b_better:,}; "
        f"{found.equal:,} are equal.",
    )


# Of the tasks listed: one, several, and the sentence for none.
LISTED = {
    "different": ("that differs", "that differ", "No task differs."),
    "all": ("in common", "in common", "The two have no task in common."),
    "both": ("solved by both", "solved by both", "No task is solved by both."),
    "only_a": ("solved by A only", "solved by A only", "No task is solved by A only."),
    "only_b": ("solved by B only", "solved by B only", "No task is solved by B only."),
    "neither": ("solved by neither", "solved by neither", "Each task is solved by one of them."),
}


def listed(tasks: int, show: str, outcomes: tuple[str, str] = ("", "")) -> str:
    """``12 tasks that differ``, or the sentence that there is none.

    ``show``: one of `LISTED`; ``outcomes`` of A and of B, where any is given, go before it.
    """
    one, several, none = _from_to(outcomes) if any(outcomes) else LISTED[show]
    if not tasks:
        return none
    return f"{tasks:,} task {one}" if tasks == 1 else f"{tasks:,} tasks {several}"


def _from_to(outcomes: tuple[str, str]) -> tuple[str, str, str]:
    if all(outcomes):
        said = f"from {outcomes[0]} to {outcomes[1]}"
        return said, said, f"No task goes {said}."
    side, outcome = ("A", outcomes[0]) if outcomes[0] else ("B", outcomes[1])
    said = f"with {outcome} by {side}"
    return said, said, f"No task is {said}."


def _ahead(found: Comparison) -> str:
    assert found.paired
    difference, p = found.paired.difference, found.paired.p
    if not difference:
        return "Both have the same score"
    leader = found.a if difference > 0 else found.b
    said = f"{leader.model} is ahead by {signed(abs(difference)).lstrip('+')} points"
    if p >= LEVEL:
        return f"{said}, which may be chance"
    if found.adjusted_p is not None and found.adjusted_p < LEVEL:
        return f"{said}, and that is decisive"
    return f"{said}: decisive for this pair alone"


def what_it_takes(found: Comparison) -> str:
    """What these tasks can show, and what else it would take to tell the two apart."""
    held = found.separation
    if held is None or found.a.public_id == found.b.public_id:
        return ""
    said = (
        f"With {len(found.tasks):,} tasks as varied as these, one test finds a true difference of "
        f"{signed(held.smallest).lstrip('+')} points in four of five cases."
    )
    if held.tasks is None:
        return said
    return (
        f"{said} If the true difference were the one seen, about {held.tasks:,} tasks like these "
        f"would show it as often{_by_samples(held)}."
    )


def _by_samples(held: Separation) -> str:
    if held.noise is None:
        return "; what more samples would do is not known, for a task has only one of either model"
    if held.samples is None:
        return "; more samples on these tasks would not be enough"
    times = "sample" if held.samples == 1 else "samples"
    return f", and so would {held.samples:,} {times} of both for each of these"


def _among_all(found: Comparison) -> str:
    pairs = len(found.board.standings.adjusted)
    if found.adjusted_p is None or pairs < 2:
        return ""
    decisive = "decisive too" if found.adjusted_p < LEVEL else "not decisive"
    holm = p_text(found.adjusted_p)
    return f"Among all {pairs:,} pairs of the board it is {decisive} (Holm, {holm}). "


def signed(value: float | Fraction) -> str:
    """A difference of scores in points: ``+4.1``, ``−0.7``, ``0.0``."""
    text = f"{abs(float(value)) * 100:.1f}"
    if text == "0.0":
        return text
    return f"{'+' if value > 0 else '−'}{text}"


def p_text(p: float) -> str:
    """``p = 0.013``, or ``p < 0.001``."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"
