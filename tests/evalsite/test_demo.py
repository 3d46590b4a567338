"""What the demo submits and prints."""

from __future__ import annotations

import ast
import json
from collections import Counter

import pytest
from django.contrib.auth.models import User

from evalsite import demo, synthetic
from evalsite.console import table
from evalsite.synthetic import PROFILES, Profile, Solved
from grading import benchmarks
from grading.engine import humaneval
from grading.engine.jsonl import ProblemLog
from grading.models import BenchmarkVersion, LanguageModel, Sample, Submission

CERTAIN = Profile("certain", mistakes=1e9, broken=0.0, chatty=0.0)
RIGHT = Profile("right", mistakes=0.0, broken=0.0, chatty=1.0)


@pytest.fixture(scope="module")
def solved() -> list[Solved]:
    records = humaneval.convert(humaneval.load_rows()).records
    return [Solved(record.task_id, record.reference) for record in records]


def test_the_same_seed_gives_the_same_file(solved: list[Solved]) -> None:
    first = synthetic.upload_file(PROFILES[0], solved)
    assert first == synthetic.upload_file(PROFILES[0], solved)
    assert first != synthetic.upload_file(PROFILES[1], solved)


def test_a_file_has_five_samples_for_every_task(solved: list[Solved]) -> None:
    lines = [json.loads(line) for line in synthetic.upload_file(PROFILES[2], solved).splitlines()]
    assert len(lines) == 5 * 164
    assert set(Counter(line["task_id"] for line in lines).values()) == {5}
    assert {line["sample"] for line in lines} == set(range(5))


def test_a_mistake_changes_every_program_and_keeps_it_python(solved: list[Solved]) -> None:
    for task in solved:
        wrong = synthetic.generation(CERTAIN, task, 0)
        assert ast.dump(ast.parse(wrong)) != ast.dump(ast.parse(task.program)), task.task_id


def test_prose_around_a_program_keeps_it_whole(solved: list[Solved]) -> None:
    for index in range(8):
        text = synthetic.generation(RIGHT, solved[0], index)
        assert ast.unparse(ast.parse(solved[0].program)) in text
        assert "```" in text


def test_some_samples_do_not_compile(solved: list[Solved]) -> None:
    broken = Profile("broken", mistakes=0.0, broken=1.0, chatty=0.0)
    with pytest.raises(SyntaxError):
        ast.parse(synthetic.generation(broken, solved[0], 0))


@pytest.fixture
def version(db: None) -> BenchmarkVersion:
    records = humaneval.convert(humaneval.load_rows()).records[:3]
    imported = benchmarks.import_version(
        "humaneval", "HumanEval", records, ProblemLog(), "test", False, {}
    )
    return imported.version


@pytest.fixture
def admin(db: None) -> User:
    return User.objects.create_superuser("admin", password="a long password")


def test_a_second_demo_doubles_nothing(version: BenchmarkVersion, admin: User) -> None:
    first = demo.submissions(version, admin)
    assert demo.submissions(version, admin) == first
    assert Submission.objects.count() == 3
    assert Sample.objects.count() == 3 * 3 * 5
    assert list(LanguageModel.objects.values_list("name", "synthetic")) == [
        (profile.name, True) for profile in PROFILES
    ]


def test_a_cancelled_submission_is_made_again(version: BenchmarkVersion, admin: User) -> None:
    cancelled, *others = demo.submissions(version, admin)
    Submission.objects.filter(pk=cancelled.pk).update(state=Submission.State.CANCELLED)
    again, *same = demo.submissions(version, admin)
    assert again != cancelled
    assert same == others


def test_the_table_has_a_row_per_model(version: BenchmarkVersion, admin: User) -> None:
    demo.submissions(version, admin)
    head, rule, *rows = demo.board_table(version).splitlines()
    assert head.split("  ")[0] == "model"
    assert [name for name in demo.HEAD if name in head] == list(demo.HEAD)
    assert set(rule) == {"-", " "}
    # Nothing is graded: no number is made up.
    assert [row.split() for row in rows] == [
        [*profile.name.split(), "0", "-", "-", "-", "0/3"] for profile in PROFILES
    ]


def test_columns_line_up() -> None:
    assert table(("model", "n"), [("a", "10"), ("longer", "5")]).splitlines() == [
        "model    n",
        "------  --",
        "a       10",
        "longer   5",
    ]
