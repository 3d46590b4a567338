"""Files of every kind and what becomes of them, whichever way they are sent."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from grading.models import Generation, LanguageModel, Sample, Submission
from tests.grading import web_records
from tests.intake.uploads import document, lines, zipped, zstd

TASKS = 3
CODE = web_records.PROGRAM


def nothing_stored() -> bool:
    kinds = (Submission, Sample, Generation, LanguageModel)
    return not any(kind.objects.exists() for kind in kinds)  # type: ignore[attr-defined]


def row(task: int = 0, **fields: Any) -> bytes:
    return lines([{"task_id": f"Tidepool/{task}"} | (fields or {"completion": "x = 1\n"})])


def every(**fields: Any) -> bytes:
    return b"".join(row(task, **fields) for task in range(TASKS))


@dataclass(frozen=True)
class Expected:
    """``samples`` of each task once the file is queued, or the rules that keep it out.

    ``words`` stand in the report.
    """

    content: Callable[[], bytes]
    samples: tuple[int, ...] = ()
    rules: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


def bomb() -> bytes:
    return gzip.compress(b" " * 10_000_000, 9) * 10


TABLE = {
    "same task on several lines": Expected(lambda: every() + row(1) + row(1), (1, 3, 1)),
    "unknown task": Expected(
        lambda: every() + row(9), rules=("unknown task",), words=("Queue the 3 good samples only",)
    ),
    "some tasks missing": Expected(
        lambda: row(0) + row(1), (1, 1, 0), words=("1 of 3 tasks has no sample", "not ranked")
    ),
    "n differs": Expected(
        lambda: every() + row(0), (2, 1, 1), words=("1 to 2", "pass@k exists for k = 1")
    ),
    "n under k": Expected(every, (1, 1, 1), words=("so pass@k for k = 1",)),
    "empty file": Expected(lambda: b"", rules=("empty file",)),
    "blank lines only": Expected(lambda: b"\n \r\n\n", rules=("empty file",)),
    "CRLF": Expected(lambda: every().replace(b"\n", b"\r\n"), (1, 1, 1)),
    "byte order mark": Expected(lambda: b"\xef\xbb\xbf" + every(), (1, 1, 1)),
    "no final newline": Expected(lambda: every().rstrip(), (1, 1, 1)),
    "blank lines between": Expected(lambda: every().replace(b"\n", b"\n\n \n"), (1, 1, 1)),
    "only LF ends a line": Expected(
        lambda: every(completion="a\u2028b\x85c\rd").replace(b"\\u2028", "\u2028".encode()),
        (1, 1, 1),
    ),
    "UTF-16": Expected(lambda: every().decode().encode("utf-16"), rules=("not UTF-8",)),
    "invalid UTF-8 byte": Expected(
        lambda: every() + b'{"task_id": "Tidepool/0\xff"}\n', rules=("not UTF-8",), words=(">4<",)
    ),
    "last line cut": Expected(lambda: every()[:-9], rules=("bad JSON",), words=(">3<",)),
    "JSON array": Expected(
        lambda: document([json.loads(line) for line in every().splitlines()]), (1, 1, 1)
    ),
    "LiveCodeBench array": Expected(
        lambda: document(
            [{"question_id": f"Tidepool/{task}", "code_list": [CODE, CODE]} for task in range(3)]
        ),
        (2, 2, 2),
        words=("code_list",),
    ),
    "list of solutions": Expected(lambda: every(solution=[CODE, CODE, CODE]), (3, 3, 3)),
    "null as solution": Expected(
        lambda: every(solution=None), (1, 1, 1), words=("3 of 3 samples looked at hold no Python",)
    ),
    "number as solution": Expected(lambda: every(solution=7), rules=("wrong type",)),
    "solution and completion": Expected(
        lambda: every(solution=CODE, completion="no"), (1, 1, 1), words=("<code>solution</code>",)
    ),
    "integer task id": Expected(
        lambda: lines([{"task_id": task, "code": CODE} for task in range(3)]),
        (1, 1, 1),
        words=("the number in it",),
    ),
    "integer task id of none": Expected(
        lambda: lines([{"task_id": 9, "code": CODE}]), rules=("unknown task",)
    ),
    "NaN": Expected(lambda: every() + row(0, completion="", x=float("nan")), rules=("bad JSON",)),
    "Infinity": Expected(lambda: row(0, completion="", x=float("-inf")), rules=("bad JSON",)),
    "number without end": Expected(
        lambda: b'{"task_id": "Tidepool/0", "x": 1e999}\n', rules=("bad JSON",)
    ),
    "duplicate key": Expected(
        lambda: b'{"task_id": "Tidepool/0", "task_id": "Tidepool/1"}\n', rules=("bad JSON",)
    ),
    "20 MB line": Expected(
        lambda: every() + row(0, completion="x" * 20_000_000), rules=("line too long",)
    ),
    "long text": Expected(lambda: row(0, completion="x" * 1_100_000), rules=("text too long",)),
    "gzip": Expected(lambda: gzip.compress(every()), (1, 1, 1), words=("gzip",)),
    "zstd": Expected(lambda: zstd(every()), (1, 1, 1), words=("zstd",)),
    "zip with one member": Expected(lambda: zipped({"a.jsonl": every()}), (1, 1, 1)),
    "zip with many members": Expected(
        lambda: zipped({"a.jsonl": every(), "b/c.jsonl": b"\n", "b/d.jsonl": row(2)}),
        (1, 1, 2),
        words=("3 files read",),
    ),
    "zip with a name that leads out": Expected(
        lambda: zipped({"../a.jsonl": every()}), rules=("unsafe name",)
    ),
    "gzip bomb": Expected(bomb, rules=("gzip bomb",)),
    "zstd bomb": Expected(lambda: zstd(b" " * 40_000_000), rules=("zstd bomb",)),
    "zip bomb": Expected(lambda: zipped({"a.jsonl": b" " * 40_000_000}), rules=("zip bomb",)),
    "directory zip": Expected(
        lambda: zipped(
            {f"Tidepool_{task}/{n}.py": CODE for task in range(TASKS) for n in (10, 0, 2, 1)}
        ),
        (4, 4, 4),
    ),
    "lone surrogates and NUL": Expected(lambda: every(completion="\ud800\0\udfff"), (1, 1, 1)),
    "NUL bytes": Expected(lambda: b"\0" * 5_000, rules=("bad JSON",)),
    "deep nesting": Expected(lambda: b'{"a":' + b"[" * 200_000 + b"\n", rules=("bad JSON",)),
    "endless array": Expected(lambda: b"[" * 200_000, rules=("bad JSON",)),
    "null": Expected(lambda: b"null\n", rules=("wrong type",)),
    "other JSON": Expected(lambda: b'"x"\n3\n[]\n', rules=("wrong type",)),
    "a picture": Expected(
        lambda: b"\x89PNG\r\n\x1a\n" + bytes(range(256)), rules=("not UTF-8", "bad JSON")
    ),
}
