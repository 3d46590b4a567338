from __future__ import annotations

import gzip
import io
import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from grading.models import Chunk, Generation, LanguageModel, Sample, Submission
from tests.grading import web_records

pytestmark = pytest.mark.django_db


@pytest.fixture
def rosa(client: Client) -> Any:
    web_records.benchmark()
    person = web_records.person("rosa")
    client.force_login(person)
    return person


def lines(count: int = 3, **changes: Any) -> bytes:
    rows = [
        {"task_id": f"Tidepool/{position}", "generation": web_records.CHAT} | changes
        for position in range(count)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def send(client: Client, content: bytes, name: str = "quillfish.jsonl", **fields: Any) -> Any:
    from grading.models import BenchmarkVersion

    data = {
        "file": SimpleUploadedFile(name, content),
        "benchmark": BenchmarkVersion.objects.get().pk,
        "model": "Quillfish 8B",
        "visibility": "public",
        "do": "queue",
    }
    return client.post("/submit/", data | fields)


def nothing_stored() -> bool:
    return not any(
        model.objects.exists() for model in (Submission, Sample, Generation, Chunk, LanguageModel)
    )


def test_uploading_needs_an_account(client: Client) -> None:
    version = web_records.benchmark()
    assert client.get("/submit/").headers["Location"] == "/login/?next=/submit/"
    answer = client.post("/submit/", {"benchmark": version.pk})
    assert answer.status_code == 302
    assert nothing_stored()


def test_the_page_offers_benchmarks_models_and_files_to_start_from(
    client: Client, rosa: Any
) -> None:
    LanguageModel.objects.create(name="Petrel <9B>", slug="petrel")
    page = client.get("/submit/?benchmark=tidepool").content.decode()
    assert "Tidepool, version 1</option>" in page
    assert "selected>Tidepool" in page
    assert '<option value="Petrel &lt;9B&gt;">' in page
    assert "/b/tidepool/prompts.jsonl" in page
    assert "/b/tidepool/example.jsonl" in page


def test_a_benchmark_whose_name_is_odd_is_no_fault(client: Client, rosa: Any) -> None:
    assert client.get("/submit/?benchmark='\u202e").status_code == 200


def test_a_good_file_is_stored_and_shown_at_its_own_page(client: Client, rosa: Any) -> None:
    answer = send(
        client,
        lines(),
        temperature="0.2",
        n="1",
        prompt_style="zero-shot",
        notes="first try",
        visibility="private",
    )
    made = Submission.objects.get()
    assert answer.headers["Location"] == f"/s/{made.public_id}/"
    assert made.settings == {
        "temperature": 0.2,
        "n": 1,
        "prompt_style": "zero-shot",
        "notes": "first try",
    }
    assert (made.visibility, made.uploader, made.file_name) == (
        "private",
        rosa,
        "quillfish.jsonl",
    )
    assert made.sample_count == Sample.objects.count() == 3
    assert client.get(f"/s/{made.public_id}/").status_code == 200


def test_a_gzip_file_is_taken_too(client: Client, rosa: Any) -> None:
    answer = send(client, gzip.compress(lines()), "quillfish.jsonl.gz")
    assert answer.status_code == 302
    assert Sample.objects.count() == 3


def test_the_same_file_again_leads_to_the_first_submission(client: Client, rosa: Any) -> None:
    first = send(client, lines())
    again = send(client, lines())
    assert again.headers["Location"] == first.headers["Location"]
    assert Submission.objects.count() == 1
    page = client.get(again.headers["Location"]).content.decode()
    assert "already here" in page


def test_the_report_names_line_field_rule_and_keeps_the_other_inputs(
    client: Client, rosa: Any
) -> None:
    content = lines() + b'{"task_id": "Tidepool/9", "generation": "x"}\n{"task_id": 3}\nnot json\n'
    answer = send(client, content, temperature="0.7", notes="kept <notes>")
    page = answer.content.decode()
    assert answer.status_code == 422
    assert nothing_stored()
    assert "3 problems in 6 records." in page
    assert "Tidepool/9" in page
    for number in (4, 5, 6):
        assert f'class="num">{number}</th>' in page
    assert "unknown task" in page
    assert 'value="0.7"' in page
    assert "kept &lt;notes&gt;" in page
    assert 'value="Quillfish 8B"' in page
    assert "Queue the 3 good samples only" in page


def test_a_long_report_shows_twenty_problems_and_counts_them_all(client: Client, rosa: Any) -> None:
    page = send(client, b"{}\n" * 300).content.decode()
    assert "The first 20 of 300 problems: missing field 300." in page
    assert page.count('class="tag bad"') == 20


def test_good_lines_are_used_on_request(client: Client, rosa: Any) -> None:
    answer = send(client, lines(2) + b"not json\n", good_lines_only="1")
    assert answer.status_code == 302
    assert Sample.objects.count() == 2
    assert Submission.objects.get().settings["lines_left_out"] == 1


# Members of a gzip file follow one another: 600 MB without ever holding them.
BOMB = gzip.compress(b" " * 10_000_000, 1) * 60


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"", "empty.jsonl"),
        (b"\n\n", "blank.jsonl"),
        (lines(task_id="Nowhere/1"), "unknown-task.jsonl"),
        (lines()[:-20], "broken-line.jsonl"),
        (lines(generation=7), "wrong-type.jsonl"),
        (lines(generation="x" * 20_000_000), "long-line.jsonl"),
        (b'{"task_id": "Tidepool/0", "generation": "\xff\xfe"}\n', "not-utf8.jsonl"),
        (lines().decode().encode("utf-16"), "utf16.jsonl"),
        (BOMB, "bomb.jsonl.gz"),
        (gzip.compress(lines())[:-9], "cut.jsonl.gz"),
        (b"\x1f\x8b" + b"junk" * 100, "junk.gz"),
        (b"PK\x03\x04 a zip file", "archive.zip"),
        (b"[" * 200_000 + b"\n", "deep.jsonl"),
        (b"null\n", "null.jsonl"),
        (b"\0" * 5_000, "nul.jsonl"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_bad_file_gets_a_report_and_stores_nothing(
    client: Client, rosa: Any, content: bytes, name: str
) -> None:
    answer = send(client, content, name)
    assert answer.status_code in {413, 422}
    assert b'id="rep"' in answer.content
    assert nothing_stored()


def test_a_file_over_the_cap_is_413(
    client: Client, rosa: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grading.intake.caps.MAX_FILE_BYTES", 100)
    answer = send(client, lines())
    assert answer.status_code == 413
    assert b"file too large" in answer.content
    assert nothing_stored()


def test_a_body_over_the_cap_is_refused_before_it_is_stored(
    client: Client, rosa: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalsite.middleware.MAX_BODY_BYTES", 100)
    answer = send(client, lines())
    assert answer.status_code == 413
    assert b"Nothing was stored" in answer.content
    assert nothing_stored()


@pytest.mark.parametrize(
    "fields",
    [
        {"temperature": "0,2"},
        {"temperature": "nan"},
        {"temperature": "-1"},
        {"n": "many"},
        {"n": "1" * 400},
        {"model": ""},
        {"model": " "},
        {"model": "x" * 201},
        {"model": "a\0b"},
        {"model": "a\u202eb"},
        {"benchmark": "999"},
        {"benchmark": "x"},
        {"visibility": "secret"},
        {"notes": "x" * 2_001},
        {"notes": "a\0b"},
        {"prompt_style": "a\0b"},
    ],
    ids=str,
)
def test_a_bad_field_is_named_and_stores_nothing(
    client: Client, rosa: Any, fields: dict[str, str]
) -> None:
    answer = send(client, lines(), **fields)
    assert answer.status_code == 422
    assert b'class="err"' in answer.content
    assert nothing_stored()


def test_no_file_is_a_field_error(client: Client, rosa: Any) -> None:
    answer = client.post("/submit/", {"model": "x"})
    assert answer.status_code == 422
    assert b"Choose a file." in answer.content


def test_hostile_text_in_a_report_is_escaped(client: Client, rosa: Any) -> None:
    content = json.dumps({"task_id": "<script>\u202e", "generation": "x"}).encode() + b"\n"
    page = send(client, content, "<img src=x>.jsonl").content.decode()
    assert "<script>\u202e" not in page
    assert "\u202e" not in page
    assert "<img" not in page


def test_an_unpublished_version_is_not_to_be_submitted_to(client: Client, rosa: Any) -> None:
    from grading.models import BenchmarkVersion

    BenchmarkVersion.objects.update(published=False)
    assert send(client, lines()).status_code == 422
    assert nothing_stored()


def test_prompts_come_without_targets_and_can_be_filled_in(client: Client) -> None:
    web_records.benchmark(hidden=True)
    answer = client.get("/b/tidepool/prompts.jsonl")
    text = b"".join(answer.streaming_content).decode()
    rows = [json.loads(line) for line in text.splitlines()]
    assert [row["task_id"] for row in rows] == ["Tidepool/0", "Tidepool/1", "Tidepool/2"]
    assert rows[0]["prompt"].startswith("def longest")
    assert "secret argument" not in text
    assert "attachment" in answer.headers["Content-Disposition"]


def test_the_example_file_can_be_uploaded_as_it_is(client: Client, rosa: Any) -> None:
    answer = client.get("/b/tidepool/example.jsonl")
    content = b"".join(answer.streaming_content)
    assert send(client, content).status_code == 302
    assert Sample.objects.count() == len(io.BytesIO(content).readlines())


def test_downloads_of_an_unknown_benchmark_are_404(client: Client) -> None:
    assert client.get("/b/nothing/prompts.jsonl").status_code == 404
    assert client.get("/b/nothing/example.jsonl").status_code == 404


def test_the_upload_page_reads_little(
    client: Client, rosa: Any, django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(12):
        assert client.get("/submit/").status_code == 200
