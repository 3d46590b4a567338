"""What an uploader does with a submission later: withdraw it, or delete it and all it brought."""

from __future__ import annotations

import time

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

REMOVED_AT_ONCE = 1_000
# Who waits for SQLite's lock asks for it every tenth of a second.
GIVE_WAY_S = 0.1


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


def delete(submission: Submission) -> None:
    """Remove the submission with every text, verdict and score of it, for good.

    Nobody sees it from the first moment on. Verdicts that other submissions share stay theirs: the
    oldest of them takes the place of the run they repeat. The language model goes too where
    nothing else is known of it.
    """
    _hide(submission)
    remove(submission)


@transaction.atomic
def _hide(submission: Submission) -> None:
    chunks.cancel_submission(submission)
    quotas.remember(submission)
    TaskScore.objects.filter(submission=submission).delete()
    Submission.objects.filter(pk=submission.pk).update(
        state=Submission.State.REMOVING,
        visibility=Submission.Visibility.PRIVATE,
        heartbeat_at=timezone.now(),
    )


def remove(hidden: Submission) -> None:
    """Remove all there is of a submission in the state ``removing``.

    It goes a batch at a time, so that no other process waits long for the database. Where the
    process ends before the last of them, the sweep goes on.
    """
    while remove_some(hidden):
        Submission.everything.filter(pk=hidden.pk).update(heartbeat_at=timezone.now())
        time.sleep(GIVE_WAY_S)


@transaction.atomic
def remove_some(hidden: Submission) -> bool:
    """Remove a batch of its samples, or with the last of them the rest; False when it is gone."""
    samples = Sample.objects.filter(submission=hidden).order_by("pk").select_for_update()
    ids = list(samples.values_list("pk", flat=True)[:REMOVED_AT_ONCE])
    _remove_samples(ids, hidden)
    if len(ids) == REMOVED_AT_ONCE:
        return True
    Chunk.objects.filter(submission=hidden).delete()
    Submission.everything.filter(pk=hidden.pk).delete()
    _forget(hidden.language_model_id)
    return False


def _remove_samples(ids: list[int], submission: Submission) -> None:
    _hand_over_runs(ids, submission)
    samples = Sample.objects.filter(pk__in=ids)
    samples.update(current_attempt=None)
    AttemptText.objects.filter(attempt__sample__in=ids).delete()
    Attempt.objects.filter(sample__in=ids).delete()
    Generation.objects.filter(sample__in=ids).delete()
    samples.delete()


def _hand_over_runs(ids: list[int], submission: Submission) -> None:
    """Make the oldest attempt elsewhere that repeats a run of these samples the run itself."""
    elsewhere = Attempt.objects.filter(repeats__sample__in=ids).exclude(
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
