"""Equal keys only for programs that compile to the same code."""

from __future__ import annotations

import platform

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.engine.code_key import code_key

ADD = "def add(a, b):\n    return a + b\n"
READS_ITSELF = "import inspect\n" + ADD
LINES = ["x = 1", "x = 2", "x  = 1", "x = 1  # one", "# one", "", "  ", "y = '#'", "y = '# '"]


def key(program: str) -> str:
    return code_key(program, platform.python_version())


def compiled(text: str) -> tuple[object, ...]:
    code = compile(text, "program", "exec")
    return code.co_code, code.co_consts, code.co_names, list(code.co_positions())


@pytest.mark.parametrize(
    "same",
    [
        ADD + "\n\n# That is all.",
        ADD + "  \n",
        ADD.replace("a + b", "a + b  # the sum"),
        ADD.replace("def add(a, b):", "def add(a, b):  # noqa"),
        ADD.replace("\n", "\r\n"),
    ],
)
def test_what_no_interpreter_sees_does_not_count(same: str) -> None:
    assert key(same) == key(ADD)


@pytest.mark.parametrize("other", ["\n" + ADD, ADD.replace("a + b", "b + a")])
def test_code_and_its_lines_count(other: str) -> None:
    assert key(other) != key(ADD)


@pytest.mark.parametrize(
    ("program", "python_version"),
    [
        pytest.param("def add(a, b:\n", platform.python_version(), id="does not parse"),
        pytest.param(READS_ITSELF, platform.python_version(), id="may look at itself"),
        pytest.param(ADD, "3.9.1", id="another interpreter may read it otherwise"),
        pytest.param(ADD + "x = 0\n" * 10_000, platform.python_version(), id="long"),
        pytest.param("x = 1" + " + 1" * 4000, platform.python_version(), id="deep"),
    ],
)
def test_where_the_code_may_not_be_all_the_text_counts(program: str, python_version: str) -> None:
    assert code_key(program, python_version) == f"text {program}"


@pytest.mark.parametrize("hostile", ["\ud800", "\0", "", "#" * 400_000, "(" * 5000])
def test_hostile_text_has_a_key(hostile: str) -> None:
    assert key(hostile) == key(hostile) != key(hostile + "1")


def test_a_tree_written_down_is_another_program() -> None:
    program = "x = [" + "1, " * 200 + "]"
    tree = key(program)
    assert tree.startswith("tree ")
    assert key(tree) != tree != key(tree.removeprefix("tree "))


@given(st.lists(st.sampled_from(LINES), max_size=4), st.lists(st.sampled_from(LINES), max_size=4))
def test_programs_of_one_key_compile_to_the_same_code(one: list[str], other: list[str]) -> None:
    first, second = ("\n".join(lines) for lines in (one, other))
    same = compiled(first) == compiled(second)
    assert (key(first) == key(second)) is same
