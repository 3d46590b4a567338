"""Taking a file from the body of a call."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Literal, cast

from django.contrib.auth.models import AbstractBaseUser, User
from django.http import HttpRequest
from ninja import Schema

from grading import grader, quotas, uploads
from grading.api import once
from grading.api.errors import Problem
from grading.intake.fields import Choices
from grading.models import BenchmarkVersion, Submission
from grading.permissions import version_or_404
from grading.uploads import Accepted

__all__ = ["BODY", "Accepted", "Options", "receive"]

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


class Options(Schema):
    """``settings`` is a JSON object, such as {"temperature": 0.2}. ``text_field``, ``reading`` and
    ``match`` say how to read the file where it is not what it is detected as.
    """

    version: str = ""
    file_name: str = "upload.jsonl"
    visibility: Literal["public", "unlisted", "private"] = "public"
    settings: str = "{}"
    good_lines_only: bool = False
    dry_run: bool = False
    text_field: str = ""
    reading: Literal["", "generation", "completion"] = ""
    match: Literal["", "id", "number", "prompt", "position"] = ""

    def choices(self) -> Choices:
        return Choices(self.text_field, self.reading, self.match)


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
            return report.as_dict() | quotas.told(cast(User, request.user), report.samples)
        return _accepted(request, stream, version, model, settings, options)


def _accepted(
    request: HttpRequest,
    stream: BinaryIO,
    version: BenchmarkVersion,
    model: str,
    settings: dict[str, Any],
    options: Options,
) -> Accepted:
    user = cast(AbstractBaseUser, request.user)
    key = once.key_of(request)
    seen = once.fingerprint(request, stream) if key else ""
    if key and (earlier := once.earlier(user, key, seen)):
        return Accepted(cast(Submission, earlier), created=False)
    try:
        accepted = uploads.accept_once(
            stream,
            options.file_name,
            version,
            model,
            user,
            settings,
            options.visibility,
            options.good_lines_only,
            options.choices(),
        )
    except uploads.UploadRejected as rejected:
        status = 413 if rejected.report.too_large else 422
        report = rejected.report.as_dict()
        raise Problem(status, "file refused", str(rejected), report=report) from None
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
