"""One file per format, as its tool writes it: read without being told anything."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from grading.engine.task import Format
from grading.intake.fields import Choices
from tests.intake.uploads import (
    PACKINGS,
    document,
    lines,
    program,
    prompt,
    report,
    samples,
    table,
    texts,
    zipped,
)

TASKS = range(12)
FENCED = "Sure.\n\n```python\n{}```\n"
BODY = "    return x + 1\n"


def human_eval() -> bytes:
    return lines([{"task_id": f"Tide/{n}", "completion": BODY} for n in TASKS for _ in range(2)])


def human_eval_results() -> bytes:
    rows = [
        {
            "task_id": f"Tide/{n}",
            "completion": BODY,
            "result": "passed" if n % 3 else "failed: AssertionError",
            "passed": bool(n % 3),
        }
        for n in TASKS
    ]
    return lines(rows)


def evalplus() -> bytes:
    rows = [
        {"task_id": f"Tide/{n}", "solution": program(n), "completion": "not this one"}
        for n in TASKS
    ]
    return lines(rows)


def evalplus_results() -> bytes:
    def sample(n: int, status: str) -> dict[str, Any]:
        return {
            "task_id": f"Tide/{n}",
            "solution": program(n),
            "base_status": status,
            "plus_status": "fail",
            "base_fail_tests": [],
            "plus_fail_tests": [[1]],
        }

    results = {f"Tide/{n}": [sample(n, "pass"), sample(n, "timeout")] for n in TASKS}
    return document({"date": "2026-11-30 10:00", "hash": "ab" * 16, "eval": results})


def bigcodebench_results() -> bytes:
    results = {
        f"Tide/{n}": [
            {"task_id": f"Tide/{n}", "solution": program(n), "status": "pass", "details": {}}
        ]
        for n in TASKS
    }
    return document({"date": "2026-11-30 10:00", "eval": results}, indent=2)


def livecodebench() -> bytes:
    return document([{"question_id": f"Tide/{n}", "code_list": [program(n)] * 3} for n in TASKS])


def livecodebench_results() -> bytes:
    rows = [
        {
            "question_title": "Tides",
            "question_id": f"Tide/{n}",
            "output_list": [FENCED.format(program(n))] * 2,
            "code_list": [program(n)] * 2,
            "graded_list": [True, False],
            "pass@1": 0.5,
            "metadata": ["{}", "{}"],
        }
        for n in TASKS
    ]
    return document(rows, indent=4)


def bigcode() -> bytes:
    return document([[prompt(n) + BODY, program(n)] for n in TASKS])


def lm_eval() -> bytes:
    rows = [
        {
            "doc_id": n,
            "doc": {"task_id": f"Tide/{n}", "prompt": prompt(n), "test": "x" * 2_000},
            "target": "check(f)",
            "arguments": {"gen_args_0": {"arg_0": prompt(n)}},
            "resps": [[BODY, BODY]],
            "filtered_resps": [[prompt(n) + BODY, prompt(n) + BODY]],
            "filter": "create_test",
            "metrics": ["pass@1"],
            "doc_hash": "ab",
            "pass@1": 1.0,
        }
        for n in TASKS
    ]
    return lines(rows)


def lm_eval_without_ids() -> bytes:
    rows = [
        {"doc_id": n, "doc": {"text": "…"}, "resps": [[program(n)]], "filtered_resps": [program(n)]}
        for n in reversed(TASKS)
    ]
    return lines(rows)


def inspect() -> bytes:
    def sample(n: int, epoch: int) -> dict[str, Any]:
        reply = FENCED.format(program(n))
        message = {"role": "assistant", "content": [{"type": "text", "text": reply}]}
        return {
            "id": f"Tide/{n}",
            "epoch": epoch,
            "input": prompt(n),
            "target": ["…"],
            "messages": [{"role": "user", "content": prompt(n)}, message],
            "output": {"model": "m", "choices": [{"message": message, "stop_reason": "stop"}]}
            | ({"completion": reply} if epoch == 1 else {}),
            "scores": {"verify": {"value": "C" if epoch == 1 else "I", "answer": "…"}},
        }

    log = {
        "version": 2,
        "status": "success",
        "eval": {"task": "tide", "dataset": {"samples": 12, "sample_ids": ["Tide/0"]}},
        "plan": {"steps": []},
        "results": {"scores": [{"metrics": {"accuracy": {"value": 0.5}}}]},
        "samples": [sample(n, epoch) for epoch in (1, 2) for n in TASKS],
    }
    return document(log, indent=2)


def llama_eval() -> bytes:
    cases = {
        f"tide_{chunk:03d}_{n:03d}": {
            "prompt": "Write it:\n" + prompt(n),
            "expected": "…",
            "response": FENCED.format(program(n)),
            "answer": program(n),
            "correct": chunk == 0,
            "status": "ok" if chunk == 0 else "failed",
            "chunk_idx": chunk,
            "problem_idx": n,
        }
        for chunk in (0, 1)
        for n in TASKS
    }
    state = {
        "id": "tide",
        "model_name": "m",
        "tasks": list(cases),
        "sampling_config": {"temperature": 0},
        "task_states": {"total": 24, "correct": 12, "cases": cases},
    }
    return document(state, indent=4)


def chat() -> bytes:
    return lines([{"id": f"Tide/{n}", "response": FENCED.format(program(n))} for n in TASKS])


def chat_messages() -> bytes:
    rows = [
        {
            "task_id": f"Tide/{n}",
            "messages": [
                {"role": "user", "content": prompt(n)},
                {"role": "assistant", "content": FENCED.format(program(n))},
            ],
        }
        for n in TASKS
    ]
    return lines(rows)


def chat_choices() -> bytes:
    message = {"role": "assistant", "content": "def f(x): pass"}
    rows = [
        {"task_id": f"Tide/{n}", "choices": [{"message": message}, {"message": message}]}
        for n in TASKS
    ]
    return lines(rows)


def chat_in_completion() -> bytes:
    return lines([{"task_id": f"Tide/{n}", "completion": FENCED.format(program(n))} for n in TASKS])


def by_prompt() -> bytes:
    return lines([{"prompt": prompt(n), "samples": [BODY] * 4} for n in reversed(TASKS)])


def by_task() -> bytes:
    return document({f"Tide/{n}": [program(n)] * 2 for n in TASKS})


def by_task_pretty() -> bytes:
    return document({f"Tide/{n}": program(n) for n in TASKS}, indent=1)


def numbers() -> bytes:
    return lines([{"task_id": n, "code": program(n)} for n in TASKS])


def directory() -> bytes:
    members = {f"out/Tide_{n}/{sample}.py": program(n) for n in TASKS for sample in range(11)}
    return zipped({"out/": b"", "__MACOSX/out/._Tide_0": b"\0", "out/.DS_Store": b"x"} | members)


def several_members() -> bytes:
    half = {
        f"run/part{part}.jsonl": lines(
            [{"task_id": f"Tide/{n}", "generation": program(n)} for n in TASKS]
        )
        for part in (10, 2)
    }
    return zipped({"run/README.txt": b"hello"} | half)


# Format, what it is taken for, field, way to the task, n, reading, verdicts (passed, of).
Row = tuple[Any, str, str, str, int, str, tuple[int, int]]
FORMATS: list[Row] = [
    (human_eval, "JSON Lines", "completion", "id", 2, "completion", (0, 0)),
    (human_eval_results, "JSON Lines", "completion", "id", 1, "completion", (8, 12)),
    (evalplus, "JSON Lines", "solution", "id", 1, "generation", (0, 0)),
    (evalplus_results, "EvalPlus results", "solution", "id", 2, "generation", (12, 24)),
    (bigcodebench_results, "EvalPlus results", "solution", "id", 1, "generation", (12, 12)),
    (livecodebench, "JSON array", "code_list", "id", 3, "generation", (0, 0)),
    (livecodebench_results, "JSON array", "code_list", "id", 2, "generation", (12, 24)),
    (
        bigcode,
        "generations in task order (bigcode harness)",
        "generations",
        "position",
        2,
        "generation",
        (0, 0),
    ),
    (
        lm_eval,
        "lm-evaluation-harness samples",
        "filtered_resps",
        "id",
        2,
        "generation",
        (0, 0),
    ),
    (
        lm_eval_without_ids,
        "lm-evaluation-harness samples",
        "filtered_resps",
        "position",
        1,
        "generation",
        (0, 0),
    ),
    (inspect, "inspect log", "output", "id", 2, "generation", (12, 24)),
    (llama_eval, "llama-eval state", "response", "position", 2, "generation", (12, 24)),
    (chat, "JSON Lines", "response", "id", 1, "generation", (0, 0)),
    (chat_messages, "JSON Lines", "messages", "id", 1, "generation", (0, 0)),
    (chat_choices, "JSON Lines", "choices", "id", 2, "generation", (0, 0)),
    (chat_in_completion, "JSON Lines", "completion", "id", 1, "generation", (0, 0)),
    (by_prompt, "JSON Lines", "samples", "prompt", 4, "generation", (0, 0)),
    (by_task, "JSON object by task", "generations", "id", 2, "generation", (0, 0)),
    (by_task_pretty, "JSON object by task", "generations", "id", 1, "generation", (0, 0)),
    (numbers, "JSON Lines", "code", "number", 1, "generation", (0, 0)),
    (directory, "one program a file", "solution", "number", 11, "generation", (0, 0)),
    (several_members, "JSON Lines", "generation", "id", 2, "generation", (0, 0)),
]


@pytest.mark.parametrize("row", FORMATS, ids=[row[0].__name__ for row in FORMATS])
def test_a_format_is_detected_and_read_whole(row: Row) -> None:
    make, layout, text_field, match, n, reading, (passed, of) = row
    found = report(make())
    assert found.problems == ()
    assert (found.samples, found.tasks_covered, found.missing_count) == (12 * n, 12, 0)
    assert (found.n_min, found.n_max) == (n, n)
    detected = found.detected
    assert (detected.layout, detected.match) == (layout, match)
    assert detected.text_fields == {text_field: 12 * n}
    assert detected.readings == {reading: 12 * n}
    assert (found.peer_passes, found.peer_verdicts) == (passed, of)
    assert not found.suspicious


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize(
    "make", [human_eval, livecodebench, evalplus_results, inspect, llama_eval, bigcode]
)
def test_every_format_in_every_packing(make: Any, packing: str) -> None:
    plain, packed = report(make()), report(PACKINGS[packing](make()))
    assert packed.detected.packing == packing
    assert (packed.problems, packed.samples) == ((), plain.samples)
    assert packed.detected.layout == plain.detected.layout


def test_a_zip_may_hold_packed_members() -> None:
    data = zipped({"a.jsonl.gz": PACKINGS["gzip"](human_eval()), "b.zst": b""})
    assert report(data).samples == 24


def test_members_are_read_in_numeric_order() -> None:
    data = zipped(
        {
            f"part{part}.jsonl": lines([{"task_id": "Tide/0", "generation": str(part)}])
            for part in (10, 2, 0, 1)
        }
    )
    assert [item.text for item in samples(data)] == ["0", "1", "2", "10"]


def test_program_files_keep_their_sample_numbers() -> None:
    data = zipped({f"Tide_3/{sample}.py": f"s{sample}" for sample in (10, 2, 0, 1)})
    assert texts(data) == {(3, sample): f"s{sample}" for sample in (0, 1, 2, 10)}


def test_a_program_file_may_stand_without_directory() -> None:
    data = zipped({"Tide_3.py": "three", "answers/Tide_4.py": "four"})
    assert texts(data) == {(3, 0): "three", (4, 0): "four"}


def test_rounds_of_llama_eval_and_epochs_of_inspect_are_samples() -> None:
    for make in (llama_eval, inspect):
        found = {(item.place.task, item.place.sample): item.passed for item in samples(make())}
        assert found == {(n, sample): sample == 0 for n in TASKS for sample in (0, 1)}


def test_llama_eval_cases_without_numbers_have_them_in_their_names() -> None:
    cases = {"tide_001_002": {"response": "x"}, "tide_000_002": {"response": "y"}}
    data = document({"task_states": {"cases": cases}})
    assert texts(data) == {(2, 1): "x", (2, 0): "y"}


def test_a_single_verdict_of_lm_eval_is_that_of_its_reply() -> None:
    row = {"doc_id": 0, "doc": {"task_id": "Tide/0"}, "resps": [["x"]], "metrics": ["pass@1"]}
    for value, passed in ((1.0, True), (0.0, False)):
        assert [item.passed for item in samples(lines([row | {"pass@1": value}]))] == [passed]


def test_verdicts_on_extra_tests_count_where_the_benchmark_has_them() -> None:
    plus = replace(table(), is_plus=True)
    assert report(evalplus_results(), plus).peer_passes == 0
    assert report(evalplus_results()).peer_passes == 12


def test_old_result_files_hold_no_programs() -> None:
    counts = {"nfiles": 1, "base": [["failed", []]], "plus": [["failed", []]]}
    found = report(document({"date": "", "hash": "", "eval": {"Tide/1": counts}}))
    assert (found.samples, found.problem_rules) == (0, {"missing field": 1})


def test_a_text_after_the_field_names_of_the_same_row_is_mixed_reading() -> None:
    rows = [{"task_id": "Tide/0", "generation": "a"}, {"task_id": "Tide/1", "completion": "b"}]
    found = samples(lines(rows))
    assert [item.format for item in found] == [Format.GENERATION, Format.COMPLETION]


def test_another_language_is_reported() -> None:
    rows = [
        {"task_id": "Tide/0", "language": "Python3", "code": "x"},
        {"task_id": "Tide/0", "language": "javascript", "code": "x"},
    ]
    found = report(lines(rows))
    assert (found.samples, found.problem_rules) == (1, {"other language": 1})


def test_a_user_may_decide_otherwise() -> None:
    rows = [{"task_id": f"Tide/{n}", "completion": "some prose", "mine": program(n)} for n in TASKS]
    data = lines(rows)
    detected = report(data)
    assert "mine" in detected.detected.offered_fields
    assert detected.suspicious
    corrected = report(data, choices=Choices("mine", "generation", "number"))
    assert corrected.detected.text_fields == {"mine": 12}
    assert corrected.detected.readings == {"generation": 12}
    assert corrected.detected.match == "number"
    assert corrected.without_code == 0
    assert report(data, choices=Choices("nothing")).problem_rules == {"missing field": 12}


def test_an_exact_id_is_not_taken_for_a_number() -> None:
    rows = [{"task_id": f"Tide/{n}", "code": "x"} for n in TASKS]
    found = report(lines([*rows, {"task_id": "tide_3", "code": "x"}]))
    assert found.problem_rules == {"unknown task": 1}


def test_numbers_mean_nothing_where_tasks_have_several_names() -> None:
    mixed = table(2)
    mixed = replace(mixed, tasks=(*mixed.tasks, *table(2, "Ebb").tasks))
    assert report(lines([{"task_id": 1, "code": "x"}]), mixed).problem_rules == {"unknown task": 1}
    assert report(lines([{"task_id": "ebb_1", "code": "x"}]), mixed).samples == 1


def test_of_prompts_for_the_same_function_the_most_alike_counts() -> None:
    twins = table(1)
    texts_ = ['def f(x):\n    """Add one.\n    >>> 1\n    """\n', 'def f(x):\n    """Add two."""\n']
    tasks = tuple(
        replace(twins.tasks[0], task_id=f"T/{n}", prompt=text, entry_points=("f",))
        for n, text in enumerate(texts_)
    )
    data = lines(
        [
            {"prompt": 'def f(x):\n    """Add one.\n    """\n', "samples": ["a"]},
            {"prompt": 'def f(x):\n    """Add two, please."""\n', "samples": ["b"]},
        ]
    )
    assert texts(data, replace(twins, tasks=tasks)) == {(0, 0): "a", (1, 0): "b"}
    ambiguous = report(
        lines([{"prompt": "def f(x):\n", "samples": ["a"]}]), replace(twins, tasks=tasks)
    )
    assert ambiguous.problem_rules == {"unknown task": 1}


def test_small_fields_are_kept_and_large_ones_left_out() -> None:
    row = {"task_id": "Tide/0", "completion": "x", "tokens": 7, "test": "t" * 501, "doc": {"a": 1}}
    assert samples(lines([row]))[0].extra == {"tokens": 7}
    assert samples(lines([row | {"completion": ["x", "y"]}]))[0].extra == {}


def test_the_report_is_plain_json() -> None:
    found = json.loads(json.dumps(report(inspect()).as_dict()))
    assert found["detected"]["layout"] == "inspect log"
    assert found["ok"] is True
    assert found["previews"][0]["program"].startswith("from typing")
    assert [preview["sample"] for preview in found["previews"]] == [0, 0, 0]
