"""Readers of environment variables."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalsite import env
from evalsite.env import BadSetting

NAME = "EVALSITE_TEST_SETTING"


def put(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv(NAME, value)


def test_a_secret_may_come_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("s3cret\n")
    monkeypatch.setenv(f"{NAME}_FILE", str(file))
    assert env.text(NAME) == "s3cret"
    put(monkeypatch, "direct")
    assert env.text(NAME) == "direct"


def test_a_missing_file_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(f"{NAME}_FILE", str(tmp_path / "none"))
    with pytest.raises(BadSetting, match=f"{NAME}_FILE: cannot read .*none: No such file"):
        env.text(NAME)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [("1", True), ("Yes", True), (" on ", True), ("0", False), ("false", False), ("", True)],
)
def test_flags(monkeypatch: pytest.MonkeyPatch, value: str, wanted: bool) -> None:
    put(monkeypatch, value)
    assert env.flag(NAME, default=True) is wanted


def test_a_flag_that_is_none_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, "maybe")
    with pytest.raises(BadSetting, match="'maybe': use 1 or 0"):
        env.flag(NAME)


def test_integers_have_a_minimum(monkeypatch: pytest.MonkeyPatch) -> None:
    assert env.integer(NAME, 7) == 7
    put(monkeypatch, "12")
    assert env.integer(NAME, 7) == 12
    with pytest.raises(BadSetting, match="=12: use 20 or more"):
        env.integer(NAME, 7, minimum=20)
    put(monkeypatch, "twelve")
    with pytest.raises(BadSetting, match="'twelve': use a whole number"):
        env.integer(NAME, 7)


def test_words_are_split_at_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    assert env.words(NAME, ("a",)) == ["a"]
    put(monkeypatch, " one, two,,three ")
    assert env.words(NAME) == ["one", "two", "three"]


def test_paths_are_made_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert env.path(NAME, tmp_path) == tmp_path
    monkeypatch.chdir(tmp_path)
    put(monkeypatch, "data")
    assert env.path(NAME, Path("/nowhere")) == tmp_path / "data"
