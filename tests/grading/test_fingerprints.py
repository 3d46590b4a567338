"""Fingerprints: what keeps failures together, what keeps them apart, and that no text breaks it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.fingerprints import Ending, Fingerprint, fingerprint, template

NAME_ERROR = Ending(
    outcome="error",
    detail="NameError: name 'List' is not defined (line 3)",
    phase="import",
    exception="NameError",
    message="name 'List' is not defined",
    frames=[(3, "<module>")],
    task="tidepool Tidepool/1 abc",
    task_id="Tidepool/1",
)
MISS = Ending(
    outcome="assertion_fail",
    detail="target 4 of 6: false",
    phase="target",
    target=3,
    task="tidepool Tidepool/88 abc",
    task_id="Tidepool/88",
)
words = st.text(max_size=60)
endings = st.builds(
    Ending,
    outcome=st.sampled_from(["assertion_fail", "error", "timeout", "syntax_error", "platform"]),
    detail=words,
    phase=st.sampled_from(["", "compile", "import", "entry", "target"]),
    exception=words,
    message=st.text(max_size=600),
    frames=st.lists(st.tuples(st.integers(0, 10**9), words), max_size=10),
    signal=st.sampled_from(["", "SIGKILL", "SIGSEGV"]),
    exit_status=st.none() | st.integers(0, 255),
    target=st.none() | st.integers(0, 2000),
    task=words,
    task_id=words,
    entry_points=st.lists(words, max_size=3),
    returned=words,
    others=st.lists(st.integers(0, 2000), max_size=5),
    line=words,
)


def of(ending: Ending) -> Fingerprint:
    found = fingerprint(ending)
    assert found is not None
    return found


def same(one: Ending, other: Ending) -> bool:
    return of(one).value == of(other).value


@given(endings)
def test_any_text_has_a_fingerprint_that_stays(ending: Ending) -> None:
    found = of(ending)
    assert re.fullmatch(r"[0-9a-f]{16}", found.value)
    assert found == of(ending)
    assert len(found.kind) <= 20 and found.title


@given(endings, st.lists(st.integers(0, 10**9), min_size=10, max_size=10))
def test_line_numbers_have_no_part_in_it(ending: Ending, lines: list[int]) -> None:
    names = [name for _, name in ending.frames]
    moved = replace(ending, frames=list(zip(lines, names, strict=False)))
    assert same(ending, moved)


@given(endings, words, words)
def test_the_task_counts_for_misses_and_timeouts_only(ending: Ending, one: str, other: str) -> None:
    scoped = ending.outcome in ("assertion_fail", "timeout")
    a, b = replace(ending, task=one), replace(ending, task=other)
    assert same(a, b) is (one == other or not scoped)


@given(st.lists(st.integers(0, 10**12), min_size=3, max_size=3), st.integers(0, 2**48))
def test_values_at_hand_have_no_part_in_it(numbers: list[int], address: int) -> None:
    a, b, c = numbers
    said = template(f"index {a} of [{b}, '{c}'] at 0x{address:x} in /tmp/run{a}/x", "IndexError")
    assert said == "index <n> of [<n>, <str>] at <addr> in <path>"


@given(st.text("abcdefgh_", min_size=1, max_size=20))
def test_the_entry_point_counts_by_its_role(name: str) -> None:
    def calling(entry: str) -> Ending:
        frames = [(1, "<module>"), (4, entry), (2, "helper")]
        return replace(NAME_ERROR, frames=frames, entry_points=[entry])

    assert same(calling(name), calling("other_name"))


@given(st.integers(1, 10), st.integers(0, 1))
def test_the_depth_of_a_recursion_has_no_part_in_it(depth: int, top: int) -> None:
    cycle = [(1, "even"), (5, "odd")] * 6
    deep = Ending(
        outcome="error",
        phase="import",
        exception="RecursionError",
        message="maximum recursion depth exceeded",
        frames=cycle[top : top + 2 * depth],
    )
    assert same(deep, replace(deep, frames=cycle[:2]))


@pytest.mark.parametrize(
    ("exception", "one", "other"),
    [
        ("NameError", "name 'List' is not defined", "name 'np' is not defined"),
        ("ModuleNotFoundError", "No module named 'numpy'", "No module named 'torch'"),
        (
            "AttributeError",
            "'int' object has no attribute 'x'",
            "'str' object has no attribute 'x'",
        ),
        ("SyntaxError", "'(' was never closed (program.py, line 3)", "'[' was never closed"),
        ("TypeError", "f() missing 1 required positional argument: 'a'", "'int' is not iterable"),
    ],
)
def test_the_telling_word_keeps_apart(exception: str, one: str, other: str) -> None:
    assert template(one, exception) != template(other, exception)


@pytest.mark.parametrize(
    ("exception", "one", "other"),
    [
        ("KeyError", "'a'", "17"),
        (
            "ValueError",
            "could not convert string to float: 'x'",
            "could not convert string to float: 'y1'",
        ),
        ("SyntaxError", "invalid syntax (program.py, line 3)", "invalid syntax (<string>, line 9)"),
        (
            "TypeError",
            "f() missing 1 required positional argument: 'a'",
            "g() missing 2 required positional argument: 'b'",
        ),
        (
            "ValueError",
            "id 123e4567-e89b-12d3-a456-426614174000",
            "id 00000000-0000-0000-0000-000000000001",
        ),
    ],
)
def test_a_value_at_hand_does_not(exception: str, one: str, other: str) -> None:
    assert template(one, exception) == template(other, exception)


def test_a_pass_has_none() -> None:
    assert fingerprint(Ending(outcome="pass")) is None


@pytest.mark.parametrize(
    "change",
    [
        {"phase": "entry"},
        {"exception": "TypeError"},
        {"outcome": "timeout"},
        {"exception": "", "signal": "SIGSEGV"},
        {"exception": "", "exit_status": 1},
        {"exception": "ImportError", "detail": "denied: socket"},
    ],
)
def test_another_end_is_another_group(change: dict[str, Any]) -> None:
    assert not same(NAME_ERROR, replace(NAME_ERROR, **change))


def test_misses_are_told_apart_by_target_and_by_what_was_raised() -> None:
    assert not same(MISS, replace(MISS, target=2))
    assert not same(MISS, replace(MISS, exception="IndexError"))
    # An assert of the target is not one of the program.
    assert same(MISS, replace(MISS, exception="AssertionError"))
    own = replace(MISS, exception="AssertionError", frames=[(2, "add")])
    assert not same(MISS, own)
    # How a program came to the wrong value is not asked.
    assert same(MISS, replace(MISS, frames=[(9, "helper")], message="anything"))


def test_misses_are_told_apart_by_what_came_back() -> None:
    """Programs that do nothing are not those that are wrong; right ones share a wrong target."""
    assert not same(replace(MISS, returned="None"), replace(MISS, returned="15"))
    assert same(
        replace(MISS, returned="<object at 0x7f01>"), replace(MISS, returned="<object at 0x7e02>")
    )
    long = "[" + "1, " * 60
    assert not same(replace(MISS, returned=long + "2]"), replace(MISS, returned=long + "3]"))
    assert (
        of(replace(MISS, returned="15")).title == "Tidepool/88: target 4 is not true · returned 15"
    )
    assert len(dict(of(replace(MISS, returned=long)).parts)["returned"]) == 60


def test_misses_are_told_apart_by_what_else_is_missed() -> None:
    more = replace(MISS, returned="15", others=[4, 5])
    assert not same(more, replace(more, others=[4]))
    assert of(more).title == "Tidepool/88: target 4 is not true · returned 15; 2 more missed"
    assert dict(of(more).parts)["missed, too"] == "5, 6"


def test_what_a_call_raised_is_told_apart_by_its_message_and_not_by_an_earlier_value() -> None:
    raising = replace(MISS, exception="ValueError", message="no root", frames=[(2, "<module>")])
    assert not same(raising, replace(raising, message="must be positive"))
    assert same(raising, replace(raising, returned="15"))
    assert of(raising).title == "Tidepool/88: target 4 raises ValueError · no root"


BROKEN = Ending(
    outcome="syntax_error",
    phase="compile",
    exception="SyntaxError",
    message="invalid syntax (program.py, line 2)",
    frames=[(2, "")],
)


@pytest.mark.parametrize(
    ("line", "where"),
    [
        ("    if num  0:", "compile at: if w v :"),
        ("Here is the solution in one object:", "compile at: words"),
        ("    x = [y for y in z if y  0]", "compile at: w = [ w for w in w if w v ]"),
        ("", "compile"),
    ],
)
def test_a_generic_syntax_error_is_told_by_the_look_of_its_line(line: str, where: str) -> None:
    assert dict(of(replace(BROKEN, line=line)).parts)["where"] == where


def test_other_syntax_errors_tell_prose_from_code_only() -> None:
    open_ = replace(BROKEN, message="unterminated string literal (detected at line 2)")
    assert same(replace(open_, line="x = 'a"), replace(open_, line="print('b)"))
    assert not same(replace(open_, line="x = 'a"), replace(open_, line="Let's look at this task"))


@pytest.mark.parametrize(
    ("message", "above", "line", "place"),
    [
        # The first line of the body has lost its indent; a string of many lines was above.
        ("unexpected indent", '    """', "    words = s.split()", ""),
        ("unexpected indent", "words = s.split()", "    for word in words:", ""),
        ("unexpected indent", "  count = 0", "    for i in s:", "a deeper line of a block"),
        ("unexpected indent", "\tcount = 0", "\t\tfor i in s:", "a deeper line of a block"),
        ("unmatched ')'", "", "    n = len(set(xs)))", ""),
        ("unmatched ')'", "", "2):", "a line that only closes"),
        ("expected an indented block after 'if' statement on line 1", "if x:", "return 1", ""),
        ("expected an indented block after 'if' statement on line 2", "", "if x:", "the end"),
        ("expected an indented block after 'if' statement on line 1", "if x:", "", "the end"),
        ("expected an indented block after 'if' statement on line 1", "if x:", "  # go", "the end"),
        ("expected an indented block after 'if' statement on line 21", "", "if x:", ""),
    ],
)
def test_a_syntax_error_is_told_by_what_its_line_says_of_the_cause(
    message: str, above: str, line: str, place: str
) -> None:
    ending = replace(BROKEN, message=f"{message} (program.py, line 2)", line=line, above=above)
    assert dict(of(ending).parts)["where"] == (f"compile at: {place}" if place else "compile")
    assert of(ending).title.endswith(f", when compiled at {place}" if place else ", when compiled")


def test_a_program_cannot_pass_its_own_error_off_as_a_denied_import() -> None:
    denied = replace(NAME_ERROR, exception="ImportError", detail="denied: socket")
    posing = replace(NAME_ERROR, exception="denied", detail="denied: socket")
    assert of(denied).kind == "denied import"
    assert of(posing).kind == "exception"


def test_the_page_can_say_why() -> None:
    found = of(NAME_ERROR)
    assert found.title == "NameError: name 'List' is not defined, while loading"
    assert dict(found.parts) == {
        "kind": "exception",
        "type": "NameError",
        "message": "name 'List' is not defined",
        "where": "import",
    }
    assert of(MISS).title == "Tidepool/88: target 4 is not true"
    assert dict(of(MISS).parts)["task"] == "Tidepool/88"
