"""The documents keep up with the code."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest

from grading.engine.records import read_tasks
from grading.engine.task import Kind

ROOT = Path(__file__).resolve().parents[2]
CODE = ("evalsite", "grading", "leaderboard")
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


def variables_in_code() -> set[str]:
    files = [file for package in CODE for file in (ROOT / package).rglob("*.py")]
    # The client runs where its user is, not where the site is.
    files.remove(ROOT / "evalsite" / "client.py")
    found = {name for file in files for name in re.findall(r"EVALSITE_[A-Z_]+", file.read_text())}
    # NAME_FILE is how any of them is read from a file.
    return {name.removesuffix("_FILE") for name in found}


def test_every_setting_is_described() -> None:
    described = set(re.findall(r"`(EVALSITE_[A-Z_]+)`", (ROOT / "docs/operations.md").read_text()))
    assert len(described) > 10
    assert variables_in_code() == described


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)", document.read_text())
    local = [target for target in targets if "://" not in target]
    missing = [target for target in local if not (document.parent / target).exists()]
    assert missing == []


def test_the_readme_names_only_make_targets_that_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    named = set(re.findall(r"^make (\w+)", (ROOT / "README.md").read_text(), re.MULTILINE))
    assert {"demo", "test"} <= named
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in named)


def test_the_task_records_that_are_shown_are_valid() -> None:
    text = (ROOT / "docs/tasks.md").read_text()
    blocks = re.findall(r"^```json\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    read = read_tasks(io.BytesIO(json.dumps([json.loads(block) for block in blocks]).encode()))
    assert read.problems.kept == read.warnings.kept == []
    assert {record.kind for record in read.records} == set(Kind)
