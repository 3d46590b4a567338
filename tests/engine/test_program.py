"""Prompt and generation put together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.engine.program import build_program, prompt_helpers
from grading.engine.task import Format, Generation, Preamble, Task

PROMPT = (
    "from typing import List\nLIMIT = 3\n\n\ndef helper(x):\n    return x\n\n\n"
    'def total(xs: List[int]) -> int:\n    """Sum."""\n'
)
HELPERS = "from typing import List\nLIMIT = 3\ndef helper(x):\n    return x\n"
TASK = Task(("total([1]) == 1",), prompt=PROMPT, entry_points=("total",))
WHOLE = "def total(xs):\n    return sum(xs)\n"


def built(text: str, task: Task = TASK, form: Format = Format.GENERATION) -> tuple[str, str]:
    program = build_program(task, Generation(text, form))
    return program.text, program.extraction.rule


@pytest.mark.parametrize("text", ["    return 1", "```\nx\n```", "<think>", "\ufeff\r\n\x00\ud800"])
def test_a_completion_continues_the_prompt_byte_for_byte(text: str) -> None:
    assert built(text, form=Format.COMPLETION) == (PROMPT + text, "completion")


@pytest.mark.parametrize("text", ["    return sum(xs)\r\n", "", "\n    x = 1\n\n\n", "prose"])
def test_text_without_fence_or_definition_continues_the_prompt(text: str) -> None:
    assert built(text) == (PROMPT + text, "joined")


def test_what_is_joined_is_free_of_thoughts_and_end_tokens() -> None:
    assert built("<think>a</think>    return 1</s>") == (PROMPT + "    return 1", "joined")


def test_a_thought_never_closed_is_the_empty_program() -> None:
    assert built("<think> return 1") == ("", "unclosed thought")


def test_a_whole_program_gets_imports_and_helpers_in_front() -> None:
    assert built(WHOLE) == (HELPERS + WHOLE, "whole text")
    assert built(f"Sure.\n```python\n{WHOLE}```") == (HELPERS + WHOLE, "entry point")


def test_preamble_policies() -> None:
    whole = Task(TASK.targets, prompt=PROMPT, preamble=Preamble.PROMPT)
    assert built(WHOLE, whole)[0] == PROMPT + WHOLE
    nothing = Task(TASK.targets, prompt=PROMPT, preamble=Preamble.NOTHING)
    assert built(WHOLE, nothing)[0] == WHOLE
    assert built("    return 1", nothing) == ("    return 1", "whole text")


def test_a_prompt_that_is_no_python_is_never_joined_nor_put_in_front() -> None:
    task = Task(("total([1]) == 1",), prompt="Write total(xs), please.")
    assert built("", task) == ("", "whole text")
    assert built(WHOLE, task)[0] == WHOLE


@pytest.mark.parametrize(
    "prompt", ["Palindrome", "two-sum\n", "total(xs)", "sum, product", "# Add up.", '"""Add up."""']
)
@pytest.mark.parametrize("preamble", list(Preamble))
def test_a_title_that_happens_to_be_python_is_neither(prompt: str, preamble: Preamble) -> None:
    task = Task(("total([1]) == 1",), prompt=prompt, preamble=preamble)
    for text in ("", WHOLE, "def misnamed(xs):\n    return sum(xs)\n", "No idea."):
        assert built(text, task) == (text, "whole text")
    assert built("x", task, Format.COMPLETION)[0] == prompt + "x"


OPEN = "def total(xs):\n"
CLOSED = '    """Sum."""'


@pytest.mark.parametrize("prompt", [OPEN, OPEN.rstrip(), OPEN + CLOSED, PROMPT, PROMPT.rstrip()])
@pytest.mark.parametrize("text", ["def misnamed(xs):\n    return sum(xs)\n", "class Sum: pass\n"])
def test_the_prompt_makes_no_syntax_error_of_a_misnamed_program(prompt: str, text: str) -> None:
    program, _ = built(text, Task(TASK.targets, prompt=prompt, entry_points=("total",)))
    assert program.endswith(text)
    compile(program, "x", "exec")


@pytest.mark.parametrize("text", ["return sum(xs)", "def misnamed(xs:", "    return sum(xs)\n  1"])
def test_what_is_no_program_by_itself_continues_an_open_prompt(text: str) -> None:
    task = Task(TASK.targets, prompt=OPEN, entry_points=("total",))
    assert built(text, task) == (OPEN + text, "joined")


@pytest.mark.parametrize(
    "body",
    ["    return sum(xs)\n", "return sum(xs)\n", "y = xs\n    return sum(y)\n", "yield 1"],
    ids=["indented", "at the margin", "first line lost its indent", "generator"],
)
def test_a_fenced_body_is_grafted_on_the_prompt(body: str) -> None:
    text, rule = built(f"Here:\n```python\n{body}```" if body.endswith("\n") else
                       f"```\n{body}\n```")  # fmt: skip
    assert rule == "grafted"
    assert text.startswith(PROMPT + "    ")
    compile(text, "x", "exec")


def test_a_fenced_program_without_the_entry_point_is_not_grafted() -> None:
    assert built("```\nprint(total([1]))\n```") == (HELPERS + "print(total([1]))\n", "python block")


def test_future_imports_stay_first() -> None:
    code = '"""Doc."""\nfrom __future__ import annotations\n' + WHOLE
    text, _ = built(f"```\n{code}```")
    assert text == '"""Doc."""\nfrom __future__ import annotations\n' + HELPERS + WHOLE
    compile(text, "x", "exec")


def test_helpers_of_a_prompt_whose_last_function_has_no_body() -> None:
    prompt = "import math\n@cache\ndef one(): return 1\n\ndef two(x):\n    # to do"
    assert prompt_helpers(prompt, ("two",)) == "import math\n@cache\ndef one(): return 1\n"
    assert prompt_helpers("No Python here.", ("two",)) == ""


@given(st.text(st.characters(exclude_categories=[])), st.sampled_from(list(Format)))
def test_never_raises(text: str, form: Format) -> None:
    for task in (TASK, Task(("f() == 1",)), Task((text,), prompt=text, setup=text)):
        build_program(task, Generation(text, form))


def test_programs_of_the_grader_cases_compile_when_they_should(shared: Path) -> None:
    for line in (shared / "cases/grader_cases.jsonl").read_text().splitlines():
        row = json.loads(line)
        metadata = row["metadata"]
        task = Task(tuple(row["targets"]), prompt=metadata.get("prompt", ""))
        form = Format(metadata.get("format", "generation"))
        text, _ = built(row["generation"], task, form)
        try:
            compile(text, row["id"], "exec")
        except (SyntaxError, ValueError):
            assert row["expected_exit"] == "syntax_error", row["id"]
        else:
            assert row["expected_exit"] != "syntax_error", row["id"]
