"""Uploads: the report, what is stored, and that bad files store nothing."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from typing import Any

import pytest
from django.contrib.auth import get_user_model

from evalsite import queueing
from grading import benchmarks, chunks, language_models, uploads
from grading.engine.records import TaskRecord
from grading.models import (
    BenchmarkVersion,
    Chunk,
    Generation,
    LanguageModel,
    Sample,
    Submission,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def rung(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple[int, ...]]]:
    """What was handed to the queue, without a broker."""
    calls: list[tuple[str, tuple[int, ...]]] = []
    monkeypatch.setattr(queueing, "enqueue", lambda path, *ids: calls.append((path, ids)))
    return calls


@pytest.fixture
def version() -> BenchmarkVersion:
    records = [
        TaskRecord(f"T/{number}", f"def f{number}(x):\n", (f"f{number}(1) == 1",))
        for number in range(30)
    ]
    return benchmarks.import_version("mine", "Mine", records).version


@pytest.fixture
def uploader() -> Any:
    return get_user_model().objects.create_user("ada")


def line(task: int = 0, **fields: Any) -> str:
    values = {"generation": f"def f{task}(x):\n    return x\n"} | fields
    return json.dumps({"task_id": f"T/{task}"} | values) + "\n"


def check(text: str | bytes, version: BenchmarkVersion) -> uploads.UploadReport:
    data = text.encode() if isinstance(text, str) else text
    return uploads.check(io.BytesIO(data), "file.jsonl", version)


def accept(
    text: str | bytes, version: BenchmarkVersion, uploader: Any, model: str = "Kea 1B", **more: Any
) -> uploads.Accepted:
    stream = io.BytesIO(text.encode() if isinstance(text, str) else text)
    return uploads.accept(stream, "file.jsonl", version, model, uploader, **more)


def nothing_stored() -> bool:
    kinds = (Submission, Chunk, Sample, Generation, LanguageModel)
    return not any(kind.objects.exists() for kind in kinds)  # type: ignore[attr-defined]


def test_report_of_a_good_file(version: BenchmarkVersion) -> None:
    text = line(0) + line(0, generation="```python\ndef f0(x): return 2\n```") + "\n" + line(1)
    report = check(text + line(1, generation="no code at all"), version)
    assert report.ok
    assert (report.records, report.samples, report.problem_count) == (4, 4, 0)
    assert (report.tasks_covered, report.tasks_total, report.missing_count) == (2, 30, 28)
    assert report.missing[:2] == ("T/2", "T/3")
    assert len(report.missing) == 20
    assert (report.n_min, report.n_max, report.ks) == (2, 2, (1,))
    assert (report.empty_programs, report.without_code, report.share_without_code) == (0, 1, 0.25)
    assert report.detected.readings == {"generation": 4}
    assert (report.detected.layout, report.detected.packing) == ("JSON Lines", "")
    assert [preview.sample for preview in report.previews] == [0, 1, 0]
    assert report.previews[1].program == "def f0(x): return 2\n"
    assert (report.previews[1].rule, report.previews[1].blocks) == ("entry point", 1)


def test_gzip_is_known_by_its_content(version: BenchmarkVersion) -> None:
    report = check(gzip.compress(line().encode()), version)
    assert (report.ok, report.samples, report.detected.packing) == (True, 1, "gzip")


def huge_line() -> bytes:
    return line().encode() + b'{"task_id": "T/1", "generation": "' + b"x" * 20_000_000 + b'"}\n'


def bomb() -> bytes:
    packed = zlib.compressobj(9, wbits=31)
    return b"".join(packed.compress(b"0" * 10**6) for _ in range(100)) + packed.flush()


BAD_FILES: list[tuple[str, Any, int, str]] = [
    ("unknown task", line() + line(99), 2, "unknown task"),
    ("broken line", line() + '{"task_id": "T/0", \n' + line(1), 2, "bad JSON"),
    ("last line cut", line() + line(1)[:-20], 2, "bad JSON"),
    ("wrong type", line() + line(1, generation=7), 2, "wrong type"),
    ("no text", line() + '{"task_id": "T/1"}\n', 2, "missing field"),
    ("same sample twice", line(sample=4) + line(sample=4), 2, "duplicate sample"),
    ("counted and given sample meet", line(1, sample=1) + line(1), 2, "duplicate sample"),
    ("empty", b"", 0, "empty file"),
    ("blank lines only", "\n \n\r\n", 0, "empty file"),
    ("gzip of nothing", gzip.compress(b""), 0, "empty file"),
    ("gzip bomb", bomb(), 1, "gzip bomb"),
    ("truncated gzip", gzip.compress(line().encode() * 50)[:-12], 51, "broken gzip"),
    ("20 MB line", huge_line(), 2, "line too long"),
    ("packed 20 MB line", gzip.compress(huge_line()), 2, ""),
    ("invalid UTF-8", line().encode() + b'{"task_id": "T/1\xff"}\n', 2, "not UTF-8"),
    ("UTF-16", line().encode("utf-16"), 0, "not UTF-8"),
    ("NaN", line() + line(1, x=float("nan")), 2, "bad JSON"),
    ("key twice", '{"task_id": "T/0", "task_id": "T/1", "generation": ""}\n', 1, "bad JSON"),
]


@pytest.mark.parametrize(
    ("data", "number", "rule"), [row[1:] for row in BAD_FILES], ids=[row[0] for row in BAD_FILES]
)
def test_a_bad_file_gets_a_report_and_stores_nothing(
    data: Any, number: int, rule: str, version: BenchmarkVersion, uploader: Any
) -> None:
    with pytest.raises(uploads.UploadRejected) as rejected:
        accept(data, version, uploader)
    report = rejected.value.report
    problem = report.problems[-1]
    assert report.problem_count >= 1
    if rule and rule not in ("gzip bomb", "broken gzip"):
        assert (problem.line, problem.rule) == (number, rule)
    assert rule in problem.rule
    assert problem.detail in str(rejected.value)
    assert nothing_stored()


@pytest.mark.parametrize("name", ["", "  ", "x" * 201, "a\x00b", "\ud800"])
def test_a_model_has_a_name(name: str, version: BenchmarkVersion, uploader: Any) -> None:
    with pytest.raises(uploads.UploadRejected, match="model"):
        accept(line(), version, uploader, name, good_lines_only=True)
    assert nothing_stored()


def test_what_is_stored(version: BenchmarkVersion, uploader: Any, rung: list[Any]) -> None:
    text = "".join(
        line(task, generation=f"text {task} {sample}", note="kept\x00\ud800")
        for task in range(30)
        for sample in range(3)
    )
    accepted = accept(text, version, uploader, settings={"temperature": 0.2}, visibility="private")
    submission = accepted.submission
    assert accepted.created
    assert (submission.sample_count, submission.visibility) == (90, "private")
    assert submission.settings == {"temperature": 0.2}
    assert (submission.language_model.name, submission.language_model.slug) == ("Kea 1B", "kea-1b")
    for sample in Sample.objects.select_related("generation", "task"):
        assert sample.generation.text == f"text {sample.task.position} {sample.index}"
        assert sample.generation.extra == {"note": "kept\x00\ud800"}
        assert sample.state == "queued"
    sizes = [chunk.samples.count() for chunk in submission.chunks.order_by("position")]
    assert sizes == [20, 20, 20, 20, 10]
    first = submission.chunks.get(position=0).samples
    assert first.values("task").distinct().count() == 20
    assert [path for path, _ in rung] == [queueing.GRADE_CHUNK] * min(5, chunks.IN_QUEUE)


def test_hostile_text_comes_back_unchanged(
    version: BenchmarkVersion, uploader: Any, rung: list[Any]
) -> None:
    text = "\x00\ud83d\u2028</script>\r\n\ufeff"
    other = json.dumps({"task_id": "T/1", "completion": text}) + "\n"
    accept(line(generation=text) + other, version, uploader)
    assert {row.text for row in Generation.objects.all()} == {text}
    assert {row.format for row in Generation.objects.all()} == {"generation", "completion"}


def test_samples_are_counted_per_task_in_file_order_unless_given(
    version: BenchmarkVersion, uploader: Any, rung: list[Any]
) -> None:
    accept(line(0) + line(1) + line(0) + line(1, sample=7) + line(1, sample=3), version, uploader)
    found = Sample.objects.order_by("task", "index").values_list("task__task_id", "index")
    assert list(found) == [("T/0", 0), ("T/0", 1), ("T/1", 0), ("T/1", 3), ("T/1", 7)]


def test_the_same_upload_again_is_the_same_submission(
    version: BenchmarkVersion, uploader: Any, rung: list[Any]
) -> None:
    first = accept(line(), version, uploader)
    again = accept(line(), version, uploader)
    assert (first.created, again.created) == (True, False)
    assert again.submission == first.submission
    others = [
        accept(line(), version, uploader, "Other"),
        accept(line() + "\n", version, uploader),
        accept(line(), version, get_user_model().objects.create_user("bob")),
    ]
    assert all(other.created for other in others)
    Submission.objects.filter(pk=first.submission.pk).update(state="cancelled")
    assert accept(line(), version, uploader).created
    assert Sample.objects.count() == 5


def test_good_lines_alone_when_asked_for(
    version: BenchmarkVersion, uploader: Any, rung: list[Any]
) -> None:
    text = line(0) + line(99) + "{\n" + line(1)
    submission = accept(text, version, uploader, good_lines_only=True).submission
    assert submission.sample_count == Sample.objects.count() == Generation.objects.count() == 2
    assert submission.settings == {"lines_left_out": 2}


@pytest.mark.parametrize(
    "data",
    [b"", gzip.compress(line().encode() * 9)[:-12], b"{\n"],
    ids=["empty", "cut gzip", "no good line"],
)
def test_good_lines_alone_need_a_readable_file_with_some(
    data: bytes, version: BenchmarkVersion, uploader: Any
) -> None:
    with pytest.raises(uploads.UploadRejected):
        accept(data, version, uploader, good_lines_only=True)
    assert nothing_stored()


def test_a_failure_while_storing_stores_nothing(
    version: BenchmarkVersion, uploader: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Submission) -> None:
        raise OSError("no broker")

    monkeypatch.setattr(chunks, "start", fail)
    with pytest.raises(OSError, match="no broker"):
        accept(line(), version, uploader)
    assert nothing_stored()


def test_names_of_models_become_unique_slugs() -> None:
    names = ["Kea 1B", "Kea: 1B", "猫", "犬", "--"]
    slugs = [language_models.named_or_new(name).slug for name in names]
    assert slugs[:2] == ["kea-1b", "kea-1b-2"]
    assert len(set(slugs)) == 5
    assert all(slug.startswith("model-") for slug in slugs[2:])
    assert language_models.named_or_new(" Kea 1B ").slug == "kea-1b"


def test_only_the_first_problems_are_kept(version: BenchmarkVersion) -> None:
    report = check("{\n" * 1_000 + line(), version)
    assert (len(report.problems), report.problem_count, report.records) == (20, 1_000, 1_001)
    assert (report.ok, report.usable) == (False, True)


def test_a_report_holds_nothing_that_cannot_be_written(version: BenchmarkVersion) -> None:
    hostile = "a\ud800\x00\x1b[31m\u202e<b>"
    rows = [
        {"task_id": hostile, "generation": ""},
        {"task_id": hostile, "generation": hostile, "completion": ""},
        {"task_id": hostile, "sample": hostile, "generation": ""},
        {"task_id": hostile, hostile: hostile},
        hostile,
    ]
    report = check("".join(json.dumps(row) + "\n" for row in rows), version)
    assert report.problem_count == 5
    for problem in report.problems:
        for text in (problem.task_id, problem.field, problem.detail, problem.found):
            assert text.isprintable()
