"""Calls about submissions: send one, see how it goes, read what came out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any, TypeAlias

from django.db.models import QuerySet
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    JsonResponse,
    StreamingHttpResponse,
)
from ninja import Query, Router

from grading import chunks, queue_control
from grading.api import receiving, records
from grading.api.auth import Caller, viewer_of
from grading.api.errors import Problem
from grading.api.links import absolute
from grading.api.paging import page
from grading.models import Sample, Submission
from grading.permissions import (
    Action,
    Viewer,
    may,
    may_cancel,
    roles_for,
    sees_generations,
    sees_targets,
    submission_or_404,
    visible_submissions,
)
from grading.queries import progress as progress_queries
from grading.queries import submissions as queries
from grading.queries.samples import sample_or_404

# What a waiting client is told to leave between two questions, in seconds.
RETRY_S = (1, 30)
STREAM_BATCH = 500

Results: TypeAlias = Callable[[QuerySet[Sample]], list[dict[str, Any]]]

router = Router(tags=["submissions"])


@router.post("", summary="Send generations", openapi_extra=receiving.BODY, auth=Caller("submit"))
def send(
    request: HttpRequest, benchmark: str, model: str, options: Query[receiving.Options]
) -> HttpResponse:
    """The body is the file itself, or a form with it as the field file.

    202 with where to look, 200 where it was here already, 422 with a report by line.
    """
    return _answer(request, receiving.receive(request, benchmark, model, options))


@router.post(
    "/{public_id}/samples",
    summary="Add the samples of a further file",
    openapi_extra=receiving.BODY,
    auth=Caller("submit"),
)
def add(
    request: HttpRequest, public_id: str, options: Query[receiving.ReadingOptions]
) -> HttpResponse:
    """To a submission of one's own: the same version, model and settings. They get the next
    indexes of their tasks, and only they are graded.

    202 with where to look, 200 where the file is in it already, 409 where nothing can be added.
    """
    found = submission_or_404(request.user, public_id)
    if not may(request.user, Action.ADD_SAMPLES, found):
        raise Problem(403, "not allowed", f"For the {roles_for(Action.ADD_SAMPLES)} only.")
    return _answer(request, receiving.receive_more(request, found, options))


def _answer(request: HttpRequest, accepted: receiving.Accepted | dict[str, Any]) -> HttpResponse:
    """What became of a file: the state of its submission, or the report of a dry run."""
    if not isinstance(accepted, receiving.Accepted):
        return JsonResponse(accepted)
    submission = accepted.submission
    status = 202 if accepted.created else 200
    response = JsonResponse(_state(request, submission), status=status)
    response["Location"] = absolute(request, "api-1:submission", submission.public_id)
    return response


@router.get("", summary="One's own submissions, oldest first", auth=Caller("read"))
def own(request: HttpRequest, cursor: str = "", limit: int = 100) -> dict[str, Any]:
    rows = Submission.objects.filter(uploader=request.user.pk).select_related(
        "version__benchmark", "language_model"
    )
    return page(rows, ["pk"], cursor, limit, lambda some: [_line(request, row) for row in some])


@router.get("/{public_id}", summary="State, and the score once there is one", url_name="submission")
def submission(request: HttpRequest, public_id: str) -> HttpResponse:
    found = submission_or_404(viewer_of(request), public_id)
    response = JsonResponse(_state(request, found))
    if found.state == Submission.State.GRADING:
        response["Retry-After"] = str(_retry_s(found))
    return response


@router.post(
    "/{public_id}/cancel", summary="Stop grading; what is graded stays", auth=Caller("submit")
)
def cancel(request: HttpRequest, public_id: str) -> dict[str, Any]:
    found = submission_or_404(request.user, public_id)
    if found.state != Submission.State.GRADING:
        raise Problem(409, "nothing to cancel", "Grading has ended.", state=found.state)
    if not may_cancel(request.user, found):
        raise Problem(403, "not allowed", "Its uploader or staff can cancel a submission.")
    chunks.cancel_submission(found, request.user.pk)
    found.refresh_from_db()
    return _state(request, found)


@router.get("/{public_id}/results", summary="Verdicts by sample, in task order")
def results(
    request: HttpRequest, public_id: str, outcome: str = "", cursor: str = "", limit: int = 100
) -> dict[str, Any]:
    found, samples = _samples(request, public_id, outcome)
    shown = _results_for(viewer_of(request), found)
    return page(samples, ["task__position", "index"], cursor, limit, shown)


@router.get("/{public_id}/results.jsonl", summary="All verdicts, a line each")
def results_lines(request: HttpRequest, public_id: str, outcome: str = "") -> HttpResponseBase:
    found, samples = _samples(request, public_id, outcome)
    lines = _lines(samples, _results_for(viewer_of(request), found))
    return StreamingHttpResponse(lines, content_type="application/x-ndjson")


@router.get("/{public_id}/results/{task}/{index}", summary="Everything about one sample")
def result(
    request: HttpRequest, public_id: str, task: str, index: int, attempt: int | None = None
) -> dict[str, Any]:
    """The current attempt, or the one asked for. Its case is the line to run it again by."""
    viewer = viewer_of(request)
    found = submission_or_404(viewer, public_id)
    row = sample_or_404(found, task, index)
    if not sees_generations(viewer, found):
        raise Problem(403, "hidden", "The uploader shows outcomes, but no text of a generation.")
    open_ = sees_targets(viewer, found.version.benchmark)
    return records.sample(row, open_, visible_submissions(viewer), attempt)


def _samples(
    request: HttpRequest, public_id: str, outcome: str
) -> tuple[Submission, QuerySet[Sample]]:
    found = submission_or_404(viewer_of(request), public_id)
    if outcome and outcome not in queries.SAMPLE_FILTERS:
        known = ", ".join(queries.SAMPLE_FILTERS)
        raise Problem(422, "unknown outcome", f"{outcome!r} is none of {known}.")
    return found, queries.samples_with(found, outcome)


def _results_for(viewer: Viewer, found: Submission) -> Results:
    """How samples are shown; a detail may hold text of the program."""
    hidden = {} if sees_generations(viewer, found) else {"detail": ""}
    return lambda samples: [asdict(row) | hidden for row in queries.rows(samples)]


def _lines(samples: QuerySet[Sample], shown: Results) -> Iterator[str]:
    cursor: str | None = ""
    while cursor is not None:
        part = page(samples, ["task__position", "index"], cursor, STREAM_BATCH, shown)
        cursor = part["next"]
        for row in part["items"]:
            yield json.dumps(row, default=str) + "\n"


def _line(request: HttpRequest, found: Submission) -> dict[str, Any]:
    return {
        "id": found.public_id,
        "url": absolute(request, "submission", found.public_id),
        "state": found.state,
        "benchmark": found.version.benchmark.slug,
        "version": found.version.number,
        "model": found.language_model.name,
        "samples": found.sample_count,
        "created_at": found.created_at,
    }


def _state(request: HttpRequest, found: Submission) -> dict[str, Any]:
    """Where it stands: progress while it is graded, figures afterwards."""
    answer = _line(request, found)
    if found.state == Submission.State.GRADING:
        progress = progress_queries.progress(found)
        return answer | {
            "done": progress.done,
            "outcomes": progress.counts,
            "eta_s": progress.eta_s,
            "samples_ahead": progress.ahead_samples,
            "heartbeat_at": found.heartbeat_at,
            "workers": [asdict(worker) for worker in progress.workers],
            "lost_workers": [
                {"worker": loss.worker, "samples_requeued": loss.samples, "at": loss.at}
                for loss in progress.losses
            ],
            "queue": queue_control.as_dict(progress.stopped),
        }
    result = queries.result(found)
    return answer | {
        "done": result.samples,
        "outcomes": result.counts,
        "platform_failed": result.failed,
        "mean_fraction": result.mean_fraction,
        "pass_at_k": {str(one.k): one.value for one in result.pass_at_k},
        "complete": result.complete,
        "finished_at": found.finished_at,
    }


def _retry_s(found: Submission) -> int:
    progress = progress_queries.progress(found)
    if progress.stopped:
        return RETRY_S[1]
    eta = progress.eta_s
    return int(min(max(eta[0] / 4 if eta else 2, RETRY_S[0]), RETRY_S[1]))
