"""A folder of upload files as runs: which files, of which model each, under which settings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.contrib.auth.models import AbstractBaseUser

from evalsite import submitting
from grading import quotas, uploads
from grading.intake.container import DATA_SUFFIXES, PACKED_SUFFIXES
from grading.models import BenchmarkVersion, Submission

ENDINGS = f"{', '.join(DATA_SUFFIXES)} (alone or with {' or '.join(PACKED_SUFFIXES)}), .zip"
_DATA, _PACKED = ("|".join(map(re.escape, one)) for one in (DATA_SUFFIXES, PACKED_SUFFIXES))
ENDING = re.compile(rf"(?:(?:{_DATA})(?:{_PACKED})?|\.zip)$", re.IGNORECASE)
WHOLE_NAME = re.compile("(?P<model>.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Run:
    file: Path
    model: str
    settings: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Taken:
    """``created`` is False where the same run was submitted before."""

    run: Run
    submission: Submission
    created: bool


@dataclass(frozen=True, slots=True)
class Refused:
    """``reason`` names the file and, where there are any, its bad lines."""

    run: Run
    reason: str


def in_folder(folder: Path, pattern: re.Pattern[str] = WHOLE_NAME) -> list[Run]:
    """The uploads of ``folder`` by name, hidden files and folders left out.

    ``pattern`` is searched in the name without its ending: its group ``model`` is the model's
    name (else the whole name is), other named groups are settings. Raises `OSError`.
    """
    files = sorted(entry for entry in folder.iterdir() if _is_upload(entry))
    return [_run(file, pattern) for file in files]


def accept(
    run: Run, version: BenchmarkVersion, uploader: AbstractBaseUser, common: dict[str, Any]
) -> Taken | Refused:
    """Submit one run; what its name says goes before the settings ``common`` to all."""
    try:
        with run.file.open("rb") as stream:
            accepted = uploads.accept(
                stream, run.file.name, version, run.model, uploader, common | run.settings
            )
    except OSError as problem:
        return Refused(run, f"{run.file.name}: {problem.strerror}")
    except (uploads.UploadRejected, quotas.QuotaExceeded) as refusal:
        return Refused(run, str(refusal))
    return Taken(run, accepted.submission, accepted.created)


def _is_upload(file: Path) -> bool:
    return not file.name.startswith(".") and bool(ENDING.search(file.name)) and file.is_file()


def _run(file: Path, pattern: re.Pattern[str]) -> Run:
    name = ENDING.sub("", file.name)
    match = pattern.search(name)
    found = {key: text for key, text in match.groupdict().items() if text} if match else {}
    model = _words(found.pop("model", name))
    return Run(file, model, {key: submitting.value(_words(text)) for key, text in found.items()})


def _words(text: str) -> str:
    """Underscores of file names stand for spaces."""
    return " ".join(text.replace("_", " ").split())
