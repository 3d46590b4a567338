"""Reading as a whole: limits, numbering, and that no content is a fault of ours."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.intake import caps
from grading.intake.fields import ID_FIELDS, TEXT_FIELDS, VERDICT_FIELDS
from grading.intake.places import Place, PlaceKeys, Places
from grading.intake.texts import NoText, texts_of
from tests.intake.uploads import document, lines, report, samples, table, texts, zipped

LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
NAMES = [
    *{name for name, _ in ID_FIELDS},
    *TEXT_FIELDS,
    *VERDICT_FIELDS,
    *("sample", "doc", "scores", "epoch", "metrics", "language", "role", "content", "message"),
    *("eval", "task_states", "cases", "tasks", "sampling_config", "model_name", "status"),
]
ANYTHING = st.recursive(
    LEAVES | st.sampled_from(["Tide/0", "Tide/1", 1]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5)
    ),
    max_leaves=15,
)
START = st.sampled_from([b"", b"{", b"[", b"PK\x03\x04", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd"])


def row(**fields: Any) -> dict[str, Any]:
    return {"task_id": "Tide/0", "completion": "x"} | fields


@given(START, st.binary(max_size=300))
def test_no_bytes_are_a_fault_of_ours(start: bytes, rest: bytes) -> None:
    json.dumps(report(start + rest).as_dict())


@given(ANYTHING, st.sampled_from([None, 1]))
def test_no_document_is_a_fault_of_ours(value: Any, indent: int | None) -> None:
    json.dumps(report(document(value, indent)).as_dict())


@given(st.lists(ANYTHING, max_size=4))
def test_no_lines_are_a_fault_of_ours(values: list[Any]) -> None:
    for problem in report(lines(values)).problems:
        assert (problem.found + problem.field + problem.task_id + problem.member).isprintable()


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), st.binary())
def test_no_archive_is_a_fault_of_ours(name: str, content: bytes) -> None:
    json.dumps(report(zipped({name + ".py": content, name + ".jsonl": content})).as_dict())


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=6))
def test_no_broken_archive_is_a_fault_of_ours(changes: list[tuple[int, int]]) -> None:
    data = bytearray(zipped({"a.jsonl": lines([row()]), "Tide_0/0.py": "x"}))
    for at, byte in changes:
        data[at % len(data)] = byte
    json.dumps(report(bytes(data)).as_dict())


def test_as_many_records_as_the_limit_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caps, "MAX_RECORDS", 5)
    assert report(lines([row()] * 5)).ok
    found = report(lines([row()] * 6))
    assert (found.usable, found.too_large) == (False, True)


def test_as_many_samples_as_the_limit_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caps, "MAX_SAMPLES", 6)
    assert report(lines([row(completion=["x"] * 3)] * 2)).ok
    found = report(lines([row(completion=["x"] * 3)] * 3))
    assert (found.usable, found.too_large) == (False, True)


def test_a_task_has_at_most_so_many_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caps, "MAX_SAMPLE_INDEX", 4)
    found = report(lines([row()] * 7))
    assert (found.samples, found.problem_rules) == (5, {"out of range": 2})


def test_a_document_has_at_most_so_many_brackets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caps, "MAX_BRACKETS", 100)
    assert report(document([row()] * 40)).ok
    assert report(document([row(x=[[]] * 100)])).too_large


def test_a_line_as_long_as_the_limit_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(lines([row()])) - 1
    monkeypatch.setattr(caps, "MAX_RECORD_BYTES", size)
    for data in (lines([row()]), document([row()])):
        assert report(data).ok
    monkeypatch.setattr(caps, "MAX_RECORD_BYTES", size - 1)
    for data in (lines([row()]), document([row()])):
        assert report(data).problem_rules == {"line too long": 1}


def test_a_text_as_long_as_the_limit_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caps, "MAX_TEXT_CHARS", 3)
    assert report(lines([row(completion="xxx")])).ok
    assert report(lines([row(completion=["x", "xxxx"])])).problem_rules == {"text too long": 1}


def test_samples_are_numbered_in_file_order_unless_told() -> None:
    data = lines([row(), row(completion=["a", "b"]), row(sample=9), row(sample=5, completion="c")])
    assert texts(data) == {(0, 0): "x", (0, 1): "a", (0, 2): "b", (0, 9): "x", (0, 5): "c"}


@pytest.mark.parametrize("sample", [True, 1.0, "1", None, -1, 10_000, [1]])
def test_a_bad_sample_number_is_a_problem(sample: Any) -> None:
    found = report(lines([row(sample=sample)]))
    assert [problem.field for problem in found.problems] == ["sample"]


def test_the_same_sample_twice_is_a_duplicate() -> None:
    found = report(lines([row(sample=1), row(sample=1), row(sample=0, completion=["x", "y"])]))
    assert (found.samples, found.duplicates) == (2, 2)


def test_both_readings_of_a_file_find_the_same() -> None:
    data = gzip.compress(lines([row(), 7, row(task_id="no"), row(sample=0), row()]))
    assert report(data).samples == 2
    assert report(data) == report(data)


def test_programs_of_a_large_file_are_looked_at_all_over_it() -> None:
    good, bad = row(completion="    return x\n"), row(completion="no program at all")
    tasks = table(1)
    small = report(lines([good] * 100), tasks)
    large = report(lines([good] * 2_000 + [bad] * 2_000), tasks)
    assert small.looked_at == 100
    assert 500 < large.looked_at < 2_000
    assert 0.1 < large.share_without_code < 0.5


def test_every_line_end_but_lf_is_text() -> None:
    text = "a\x0bb\x0cc\x1cd\x85e\u2028f\u2029g\r"
    raw = json.dumps(row(completion=text), ensure_ascii=False).encode() + b"\n"
    assert [item.text for item in samples(raw)] == [text]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, [""]),
        ("x", ["x"]),
        (["x", None, ["y", ["z"]]], ["x", "", "y", "z"]),
        ([], []),
        ({"content": "x"}, ["x"]),
        ({"message": {"content": None}}, [""]),
        ({"choices": [{"text": "x"}, {"message": {"content": "y"}}]}, ["x", "y"]),
        ([{"role": "user", "content": "q"}], [""]),
        (
            [
                {"role": "assistant", "content": "first"},
                {"role": "user", "content": "again"},
                {"role": "assistant", "content": [{"type": "text", "text": "last"}, {}]},
            ],
            ["last"],
        ),
    ],
)
def test_texts_of_a_value(value: Any, expected: list[str]) -> None:
    assert texts_of(value) == expected


@pytest.mark.parametrize("value", [7, True, 1.5, {}, ["x", 7], {"content": 7}, [[[[[["x"]]]]]]])
def test_what_holds_no_text(value: Any) -> None:
    with pytest.raises(NoText):
        texts_of(value)


@given(st.sets(st.tuples(st.integers(0, 3), st.integers(0, 300)), max_size=40))
def test_places_are_a_set_in_the_order_of_samples(pairs: set[tuple[int, int]]) -> None:
    places, keys = Places(4), PlaceKeys(4)
    for pair in pairs:
        assert places.add(*pair)
        assert not places.add(*pair)
    ordered = list(places)
    assert [(place.sample, place.task) for place in ordered] == sorted((s, t) for t, s in pairs)
    assert (len(places), sum(places.counts())) == (len(pairs), len(pairs))
    for key, place in enumerate(ordered):
        keys.add(place, key)
    assert [keys[place] for place in ordered] == list(range(len(ordered)))
    with pytest.raises(KeyError):
        keys[Place(0, 301)]
