"""What the page on formats says: its examples are detected, its limits are those in force."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from grading.engine.task import Task
from grading.intake import caps
from grading.intake.fields import TEXT_FIELDS
from grading.intake.staging import KEPT_FOR
from grading.intake.task_table import TaskTable
from tests.intake.uploads import PACKINGS, report

PAGE = (Path(__file__).resolve().parents[2] / "docs/uploads.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```json\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
TABLE = TaskTable(
    tuple(
        Task((f"{name}(1) == 1",), task_id=task_id, prompt=f"def {name}(x):\n")
        for task_id, name in [("HumanEval/0", "f"), ("HumanEval/1", "g"), ("abc301_a", "h")]
    )
)


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_is_detected_as_it_stands(example: str, packing: str) -> None:
    found = report(PACKINGS[packing](example.encode()), TABLE)
    assert found.problems == ()
    assert found.samples >= 1


def test_there_is_an_example_of_every_format() -> None:
    assert len(EXAMPLES) >= 12


def test_the_limits_are_those_in_force() -> None:
    mib = 1024**2
    for words in (
        f"| file | {caps.MAX_FILE_BYTES // mib} MB |",
        f"| {caps.TEXT_CAPS.total_bytes // mib} MB, and {caps.TEXT_CAPS.ratio} times",
        f"| members of a zip | {caps.MAX_MEMBERS:,} |",
        f"| line or entry | {caps.MAX_RECORD_BYTES // mib} MiB |",
        f"| one text | {caps.MAX_TEXT_CHARS:,} characters |",
        f"| records, samples | {caps.MAX_RECORDS:,} each |",
        f"| samples of a task | {caps.MAX_SAMPLE_INDEX + 1:,} |",
        f"for {KEPT_FOR.total_seconds() / 3600:.0f} hours",
    ):
        assert words in PAGE
    assert caps.MAX_RECORDS == caps.MAX_SAMPLES


def test_the_order_of_text_fields_is_told() -> None:
    rule = PAGE[PAGE.index("- **Text.**") : PAGE.index("A list is several")]
    assert tuple(re.findall(r"`(\w+)`", rule)) == TEXT_FIELDS
