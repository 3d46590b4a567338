"""Small uploads as evaluation tools write them, and a benchmark of the engine's for them."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Mapping
from typing import Any

import zstandard

from grading.engine.task import Task
from grading.intake.fields import AS_DETECTED, Choices
from grading.intake.reading import Found, Reading
from grading.intake.report import UploadReport, checked
from grading.intake.task_table import TaskTable


def prompt(number: int) -> str:
    return f'from typing import List\n\n\ndef f{number}(x):\n    """Return x plus {number}."""\n'


def program(number: int) -> str:
    return f"def f{number}(x):\n    return x + {number}\n"


def table(tasks: int = 12, name: str = "Tide") -> TaskTable:
    """Tasks ``Tide/0`` and so on; task N asks for the function fN."""
    return TaskTable(
        tuple(
            Task(
                (f"f{number}(1) == {number + 1}",),
                task_id=f"{name}/{number}",
                prompt=prompt(number),
            )
            for number in range(tasks)
        )
    )


def lines(rows: list[Any]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def document(value: Any, indent: int | None = None) -> bytes:
    return json.dumps(value, indent=indent).encode()


def zipped(members: Mapping[str, bytes | str]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return packed.getvalue()


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


PACKINGS = {
    "": bytes,
    "gzip": gzip.compress,
    "zstd": zstd,
    "zip": lambda data: zipped({"folder/samples.jsonl": data}),
}


def report(
    data: bytes, tasks: TaskTable | None = None, choices: Choices = AS_DETECTED
) -> UploadReport:
    return checked(io.BytesIO(data), "upload", tasks or table(), choices).report()


def samples(
    data: bytes, tasks: TaskTable | None = None, choices: Choices = AS_DETECTED
) -> list[Found]:
    """Everything usable in a file without problems."""
    items = list(Reading(io.BytesIO(data), tasks or table(), choices))
    assert all(isinstance(item, Found) for item in items), items
    return [item for item in items if isinstance(item, Found)]


def texts(data: bytes, tasks: TaskTable | None = None) -> dict[tuple[int, int], str]:
    """(task, sample) -> text."""
    return {(item.place.task, item.place.sample): item.text for item in samples(data, tasks)}
