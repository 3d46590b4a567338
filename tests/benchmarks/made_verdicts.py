"""Verdicts made directly, without grading: records as large as real ones, in any number."""

from __future__ import annotations

import random

from grading import crash_groups
from grading.models import Attempt, AttemptText, Sample


def fail(samples: list[Sample]) -> None:
    """Let each miss every target, in one of a few ways."""
    attempts = attempts_of(samples, "assertion_fail", 1)
    for sample, attempt in zip(samples, attempts, strict=True):
        sample.current_attempt = attempt
    rows = crash_groups.of_attempts(list(zip(samples, attempts, strict=True)))
    for sample, row in zip(samples, rows, strict=True):
        sample.fingerprint = row
    Sample.objects.bulk_update(samples, ["current_attempt", "fingerprint"])


def attempts_of(samples: list[Sample], outcome: str, number: int) -> list[Attempt]:
    """Their attempts of this number, stored: five targets, all missed or all met."""
    dice = random.Random(samples[0].pk)
    attempts = Attempt.objects.bulk_create(
        Attempt(
            sample=sample,
            number=number,
            kind=Attempt.Kind.FIRST if number == 1 else Attempt.Kind.REGRADE,
            outcome=outcome,
            passed=5 * (outcome == "pass"),
            total=5,
            score=float(outcome == "pass"),
            sealed=5,
            wall_s=0.1,
            cpu_s=0.1,
            peak_bytes=1,
            tier="bwrap",
            python="3.11.7",
            grader_version=1,
            worker="w1-1",
        )
        for sample in samples
    )
    AttemptText.objects.bulk_create(
        AttemptText(
            attempt=attempt,
            program="def f():\n    return 0\n" * 20,
            targets=[
                {"index": at, "true": outcome == "pass", "detail": _detail(dice), "label": "sealed"}
                for at in range(5)
            ],
        )
        for attempt in attempts
    )
    return attempts


def _detail(dice: random.Random) -> str:
    """One of three wrong answers."""
    return f"AssertionError{crash_groups.RETURNED}{dice.randrange(3)}"
