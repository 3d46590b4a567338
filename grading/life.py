"""What an uploader does with a submission later: withdraw it, or delete it and all it brought."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Min
from django.utils import timezone

from grading import chunks, quotas
from grading.models import (
    Attempt,
    AttemptText,
    Chunk,
    Generation,
    LanguageModel,
    Sample,
    Submission,
    TaskScore,
)


@transaction.atomic
def withdraw(submission: Submission, by: int | None = None) -> None:
    """Take it off every list and board, and stop what is still to be graded.

    Its page stays for whoever has the link, and says so. ``by`` is the key of who asked for it.
    """
    chunks.cancel_submission(submission, by)
    visibility = Submission.Visibility
    kept = submission.visibility == visibility.PRIVATE
    Submission.objects.filter(pk=submission.pk, withdrawn_at=None).update(
        withdrawn_at=timezone.now(),
        visibility=visibility.PRIVATE if kept else visibility.UNLISTED,
    )


@transaction.atomic
def delete(submission: Submission) -> None:
    """Remove the submission with every text, verdict and score of it, for good.

    Verdicts that other submissions share stay theirs: the oldest of them takes the place of the
    run they repeat. The language model goes too where nothing else is known of it.
    """
    chunks.cancel_submission(submission)
    quotas.remember(submission)
    _hand_over_runs(submission)
    own = Sample.objects.filter(submission=submission)
    own.update(current_attempt=None)
    AttemptText.objects.filter(attempt__sample__submission=submission).delete()
    Attempt.objects.filter(sample__submission=submission).delete()
    Generation.objects.filter(sample__submission=submission).delete()
    TaskScore.objects.filter(submission=submission).delete()
    own.delete()
    Chunk.objects.filter(submission=submission).delete()
    submission.delete()
    _forget(submission.language_model_id)


def _hand_over_runs(submission: Submission) -> None:
    """Make the oldest attempt elsewhere that repeats a run of this submission the run itself."""
    elsewhere = Attempt.objects.filter(repeats__sample__submission=submission).exclude(
        sample__submission=submission
    )
    heirs = list(elsewhere.order_by().values_list("repeats").annotate(heir=Min("pk")))
    for run, heir in heirs:
        elsewhere.filter(repeats=run).exclude(pk=heir).update(repeats=heir)
        Attempt.objects.filter(pk=heir).update(repeats=None)


def _forget(language_model_id: int) -> None:
    LanguageModel.objects.filter(
        pk=language_model_id,
        submissions=None,
        aliases=None,
        merged=None,
        organisation="",
        url="",
        tags=[],
        synthetic=False,
    ).delete()
