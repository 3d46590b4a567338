"""Taking a file from the body of a call."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Literal, cast

from django.contrib.auth.models import AbstractBaseUser, User
from django.http import HttpRequest
from ninja import Schema

from grading import additions, grader, language_models, quotas, uploads
from grading.api import once
from grading.api.auth import viewer_of
from grading.api.errors import Problem
from grading.intake.fields import Choices
from grading.intake.report import UploadReport
from grading.models import BenchmarkVersion, Submission
from grading.permissions import version_or_404
from grading.uploads import Accepted

__all__ = ["BODY", "Accepted", "Options", "ReadingOptions", "receive", "receive_more"]

# Beyond this a body waits on disk.
MEMORY_BYTES = 1024**2
BLOCK_BYTES = 64 * 1024
BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "properties": {"file": {"type": "string", "format": "binary"}},
                }
            },
        },
    }
}


class ReadingOptions(Schema):
    """``text_field``, ``reading`` and ``match`` say how to read the file where it is not what it
    is detected as.
    """

    file_name: str = "upload.jsonl"
    good_lines_only: bool = False
    dry_run: bool = False
    text_field: str = ""
    reading: Literal["", "generation", "completion"] = ""
    match: Literal["", "id", "number", "prompt", "position"] = ""

    def choices(self) -> Choices:
        return Choices(self.text_field, self.reading, self.match)


class Options(ReadingOptions):
    """``settings`` is a JSON object, such as {"temperature": 0.2}."""

    version: str = ""
    visibility: Literal["public", "unlisted", "private"] = "public"
    settings: str = "{}"


def receive(
    request: HttpRequest, benchmark: str, model: str, options: Options
) -> Accepted | dict[str, Any]:
    """Store the file and start grading, or give the report of a dry run. Raises `Problem`."""
    if refusal := grader.refusal():
        raise Problem(503, "no uploads", refusal)
    version = version_or_404(request.user, benchmark, options.version)
    settings = _settings(options.settings)
    with _file(request) as stream:
        if options.dry_run:
            choices = options.choices()
            report = uploads.check(stream, options.file_name, version, choices)
            return _told(request, report, model)
        return _accepted(request, stream, version, model, settings, options)


def _told(request: HttpRequest, report: UploadReport, model: str) -> dict[str, Any]:
    """A report with what only the caller's account and the model's name decide."""
    user = cast(User, request.user)
    named = language_models.told(model, viewer_of(request))
    return report.as_dict() | quotas.told(user, report.samples) | named


def receive_more(
    request: HttpRequest, submission: Submission, options: ReadingOptions
) -> Accepted | dict[str, Any]:
    """Add the file's samples, or give the report of a dry run. Raises `Problem`."""
    if refusal := grader.refusal():
        raise Problem(503, "no uploads", refusal)
    if why := additions.refusal(submission):
        raise Problem(409, "nothing can be added", why, state=submission.state)
    name, choices = options.file_name, options.choices()
    with _file(request) as stream:
        if options.dry_run:
            report, after = additions.check(stream, name, submission, choices)
            quota = quotas.told(cast(User, request.user), report.samples)
            return additions.as_dict(report, after) | quota
        user = cast(User, request.user)

        def add() -> Accepted:
            return additions.add(submission, stream, name, user, options.good_lines_only, choices)

        return _once(request, stream, add)


def _accepted(
    request: HttpRequest,
    stream: BinaryIO,
    version: BenchmarkVersion,
    model: str,
    settings: dict[str, Any],
    options: Options,
) -> Accepted:
    def accept() -> Accepted:
        return uploads.accept(
            stream,
            options.file_name,
            version,
            model,
            cast(AbstractBaseUser, request.user),
            settings,
            options.visibility,
            options.good_lines_only,
            options.choices(),
        )

    return _once(request, stream, accept, lambda report: _told(request, report, model))


def _once(
    request: HttpRequest,
    stream: BinaryIO,
    take: Callable[[], Accepted],
    told: Callable[[UploadReport], dict[str, Any]] = UploadReport.as_dict,
) -> Accepted:
    """Take the file, unless the request's key says that it was taken. Raises `Problem`.

    ``told`` says how a report on a refused file looks.
    """
    user = cast(AbstractBaseUser, request.user)
    key = once.key_of(request)
    seen = once.fingerprint(request, stream) if key else ""
    if key and (earlier := once.earlier(user, key, seen)):
        return Accepted(cast(Submission, earlier), created=False)
    try:
        accepted = take()
    except uploads.UploadRejected as rejected:
        status = 413 if rejected.report.too_large else 422
        report = told(rejected.report)
        raise Problem(status, "file refused", str(rejected), report=report) from None
    except additions.Refused as refused:
        raise Problem(409, "nothing can be added", str(refused)) from None
    except quotas.QuotaExceeded as refusal:
        raise Problem(
            429, "quota used up", str(refusal), retry_after_s=refusal.retry_after_s
        ) from None
    if key:
        once.remember(user, key, seen, accepted.submission)
    return accepted


def _settings(text: str) -> dict[str, Any]:
    try:
        settings = json.loads(text)
    except ValueError:
        settings = None
    if not isinstance(settings, dict):
        raise Problem(422, "invalid parameters", f"settings: {text[:80]!r} is no JSON object")
    return settings


@contextmanager
def _file(request: HttpRequest) -> Iterator[BinaryIO]:
    """The uploaded file, seekable; read from the body block by block."""
    if request.content_type == "multipart/form-data":
        sent = request.FILES.get("file")
        if sent is None:
            raise Problem(422, "no file", "Send the file as the form field 'file'.")
        yield cast(BinaryIO, sent)
        return
    with tempfile.SpooledTemporaryFile(MEMORY_BYTES) as spool:
        while block := request.read(BLOCK_BYTES):
            spool.write(block)
        spool.seek(0)
        yield cast(BinaryIO, spool)
