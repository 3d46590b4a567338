"""One line of an upload."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.engine.formats import BadUploadLine, UploadLine, parse_line
from grading.engine.task import Format


def test_generation_with_other_fields() -> None:
    row = {"task_id": "A/1", "generation": "x", "sample": 3, "model": "m", "tokens": [1]}
    assert parse_line(1, row) == UploadLine(
        "A/1", "x", Format.GENERATION, 3, {"model": "m", "tokens": [1]}
    )


def test_completion_without_sample() -> None:
    line = parse_line(1, {"task_id": "A/1", "completion": ""})
    assert (line.format, line.sample, line.extra) == (Format.COMPLETION, None, {})


@pytest.mark.parametrize(
    ("row", "field", "rule"),
    [
        ([], "", "wrong type"),
        ("x", "", "wrong type"),
        ({}, "task_id", "missing field"),
        ({"task_id": 3, "generation": ""}, "task_id", "wrong type"),
        ({"task_id": "", "generation": ""}, "task_id", "unknown task"),
        ({"task_id": "x" * 201, "generation": ""}, "task_id", "unknown task"),
        ({"task_id": "a", "solution": ""}, "generation", "missing field"),
        ({"task_id": "a", "generation": "", "completion": ""}, "completion", "two texts"),
        ({"task_id": "a", "generation": None}, "generation", "wrong type"),
        ({"task_id": "a", "completion": ["x"]}, "completion", "wrong type"),
        ({"task_id": "a", "generation": "", "sample": True}, "sample", "wrong type"),
        ({"task_id": "a", "generation": "", "sample": 1.0}, "sample", "wrong type"),
        ({"task_id": "a", "generation": "", "sample": None}, "sample", "wrong type"),
        ({"task_id": "a", "generation": "", "sample": -1}, "sample", "out of range"),
        ({"task_id": "a", "generation": "", "sample": 100_000}, "sample", "out of range"),
    ],
)
def test_bad_lines_say_what_was_found_and_expected(row: Any, field: str, rule: str) -> None:
    with pytest.raises(BadUploadLine) as caught:
        parse_line(7, row)
    problem = caught.value.problem
    assert (problem.line, problem.field, problem.rule) == (7, field, rule)
    assert problem.found
    assert problem.expected
    assert len(problem.detail) < 300


@given(
    st.dictionaries(
        st.sampled_from(["task_id", "generation", "completion", "sample", "x"]),
        st.none() | st.text() | st.integers() | st.lists(st.integers(), max_size=2),
    )
)
def test_a_line_is_read_or_refused(row: dict[str, Any]) -> None:
    try:
        line = parse_line(1, row)
    except BadUploadLine:
        return
    rebuilt = {"task_id": line.task_id, line.format.value: line.text, **line.extra}
    assert rebuilt | ({} if line.sample is None else {"sample": line.sample}) == row
