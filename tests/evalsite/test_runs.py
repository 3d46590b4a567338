"""Which files of a folder are runs, and what their names say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from evalsite import runs
from tests.leaderboard import builders


def files(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).write_text("")
    return folder


def test_uploads_are_taken_in_order_and_other_files_are_not(tmp_path: Path) -> None:
    taken = ["a.jsonl", "b.jsonl.gz", "c.JSON.zst", "d.zip", "e.ndjson"]
    files(tmp_path, *reversed(taken), "README.md", "FILES.tsv", ".x.jsonl", "._a.jsonl", "f.gz")
    (tmp_path / "folder.jsonl").mkdir()
    found = runs.in_folder(tmp_path)
    assert [run.file.name for run in found] == taken
    assert [run.model for run in found] == ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize(
    ("name", "pattern", "model", "settings"),
    [
        ("acme_7B__v2", "(?P<model>.+)", "acme 7B v2", {}),
        ("m-1.5_T0.2", r"(?P<model>.+)_T(?P<temperature>.+)", "m-1.5", {"temperature": 0.2}),
        ("m_A_B", "_(?P<prompt_style>A.*)", "m A B", {"prompt_style": "A B"}),
        ("m", "_(?P<prompt_style>A.*)", "m", {}),
        ("m_x", "(?P<model>m)(_y(?P<prefix>.*))?", "m", {}),
    ],
)
def test_a_name_says_model_and_settings(
    tmp_path: Path, name: str, pattern: str, model: str, settings: dict[str, object]
) -> None:
    (run,) = runs.in_folder(files(tmp_path, f"{name}.jsonl.gz"), re.compile(pattern))
    assert (run.model, run.settings) == (model, settings)


@pytest.mark.django_db
def test_a_file_that_cannot_be_opened_is_refused_by_name(
    tmp_path: Path, django_user_model: type[User]
) -> None:
    gone = runs.Run(tmp_path / "gone.jsonl", "m", {})
    refused = runs.accept(gone, builders.version(), django_user_model.objects.create(), {})
    assert refused == runs.Refused(gone, "gone.jsonl: No such file or directory")
