"""What the demo puts into an instance: HumanEval and three synthetic language models."""

from __future__ import annotations

import io

from django.contrib.auth.models import AbstractBaseUser

from evalsite import synthetic
from evalsite.console import table
from grading import uploads
from grading.models import BenchmarkVersion, LanguageModel, Submission, Task
from grading.templatetags.figures import percent_text
from leaderboard import queries, snapshots
from leaderboard.rows import Row

BENCHMARK = "humaneval"
HEAD = ("model", "n", "pass@1", "pass@5", "mean fraction", "coverage")


def submissions(version: BenchmarkVersion, uploader: AbstractBaseUser) -> list[Submission]:
    """One submission per synthetic model; those of an earlier demo are taken as they are."""
    tasks = [
        synthetic.Solved(task.task_id, task.reference)
        for task in Task.objects.filter(version=version).exclude(reference="")
    ]
    return [_submission(profile, tasks, version, uploader) for profile in synthetic.PROFILES]


def _submission(
    profile: synthetic.Profile,
    tasks: list[synthetic.Solved],
    version: BenchmarkVersion,
    uploader: AbstractBaseUser,
) -> Submission:
    earlier = Submission.objects.filter(version=version, language_model__name=profile.name)
    submission = (
        earlier.exclude(state=Submission.State.CANCELLED).first()
        or uploads.accept(
            io.BytesIO(synthetic.upload_file(profile, tasks)),
            "synthetic.jsonl",
            version,
            profile.name,
            uploader,
            {"made by": "mutated reference solutions", "mistakes": profile.mistakes},
        ).submission
    )
    LanguageModel.objects.filter(pk=submission.language_model_id).update(synthetic=True)
    return submission


def board_table(version: BenchmarkVersion) -> str:
    """The leaderboard as plain text."""
    snapshots.take(version)
    board = queries.board(version)
    return table(HEAD, [_cells(row) for row in (*board.ranked, *board.unranked)])


def _cells(row: Row) -> list[str]:
    figures = row.figures
    low, high = figures.n_min, figures.n_max
    return [
        row.model,
        str(low) if low == high else f"{low}-{high}",
        percent(figures.pass_at[1]),
        percent(figures.pass_at[5]),
        percent(figures.mean_fraction),
        f"{figures.covered}/{figures.tasks}",
    ]


def percent(value: float | None) -> str:
    return "-" if value is None else f"{percent_text(value)} %"
