"""Files that other people made, as they made them: counts, and nothing to be told."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from grading.engine.task import Task
from grading.intake.report import UploadReport, checked
from grading.intake.task_table import Match, TaskTable

pytestmark = pytest.mark.slow

HUMANEVAL, MBPP = "humaneval", "mbpp"
# File, benchmark, samples, tasks, text field, verdicts in it (passed, of).
Row = tuple[str, str, int, int, str, tuple[int, int]]
NO_VERDICTS = (0, 0)
CHAT = "gen_mapcoder_raw_chat"
FILES: list[Row] = [
    *(
        (f"derived/upload_{name}.jsonl.gz", HUMANEVAL, 164 * n, 164, "generation", NO_VERDICTS)
        for name, n in [
            ("codegen16b_humaneval_n20", 20),
            ("mistral7b_humaneval_n10", 10),
            ("raw_chatgpt_analogical_humaneval", 1),
            ("raw_chatgpt_cot_humaneval", 1),
            ("raw_gpt4_analogical_humaneval", 1),
            ("raw_gpt4_selfplanning_humaneval", 1),
        ]
    ),
    (
        "gen_codegen16b_humaneval_n100/"
        "HumanEval_codegen16B_temp0.8_topp0.95_num100_max300_code_solution.jsonl.gz",
        HUMANEVAL,
        16_400,
        164,
        "samples",
        NO_VERDICTS,
    ),
    (
        "gen_mistral7b_humaneval_n10/mistral_samples.jsonl_results.jsonl.gz",
        HUMANEVAL,
        1_640,
        164,
        "completion",
        (533, 1_640),
    ),
    *(
        (f"{CHAT}/HumanEval_{name}-Python3-0-1.jsonl.gz", HUMANEVAL, 164, 164, "responses", passed)
        for name, passed in [
            ("ChatGPT-Analogical", (104, 164)),
            ("ChatGPT-CoT", (113, 164)),
            ("ChatGPT-MapCoder-5-5-Human", (132, 164)),
            ("GPT4-Turbo-Analogical-Human", (109, 164)),
            ("GPT4-Turbo-MapCoder-5-5-Human", (154, 164)),
            ("GPT4-Turbo-SelfPlanning-Human", (140, 164)),
            ("Gemini-CoT-Human", (109, 164)),
        ]
    ),
    *(
        (f"{CHAT}/MBPP_{name}-MBPP-Python3-0-1.jsonl.gz", MBPP, 397, 397, "responses", passed)
        for name, passed in [
            ("ChatGPT-Analogical", (280, 397)),
            ("ChatGPT-MapCoder-3-5", (311, 397)),
            ("GPT4-Turbo-CoT", (327, 397)),
            ("GPT4-Turbo-SelfPlanning", (301, 397)),
        ]
    ),
    (
        f"{CHAT}/HumanEvalPlus_ChatGPT-CoT-Python3-0-1.jsonl.gz",
        HUMANEVAL,
        164,
        164,
        "solution",
        NO_VERDICTS,
    ),
    *(
        (f"gen_reflexion/humaneval_{name}.jsonl.gz", HUMANEVAL, 164, 164, "solution", passed)
        for name, passed in [
            ("gpt-4_simple", (141, 164)),
            ("gpt-3.5-turbo_simple", (42, 164)),
            ("text-davinci-003_simple", (96, 164)),
            ("gpt-4_reflexion", (150, 164)),
        ]
    ),
    ("gen_reflexion/mbpp_gpt-4_simple.jsonl.gz", MBPP, 397, 397, "solution", (318, 397)),
    *(
        (f"gen_ldb_seeds/humaneval_{name}.jsonl.gz", HUMANEVAL, 164, 164, "solution", passed)
        for name, passed in [
            ("codellama", (81, 164)),
            ("starcoder", (64, 164)),
            ("gpt-3.5-turbo-0613", (121, 164)),
            ("gpt-4-1106-preview", (143, 164)),
        ]
    ),
    *(
        (f"gen_ldb_seeds/mbpp_{name}.jsonl.gz", MBPP, 500, 500, "solution", passed)
        for name, passed in [
            ("codellama", (256, 500)),
            ("starcoder", (258, 500)),
            ("gpt-3.5-turbo-0613", (338, 500)),
        ]
    ),
    *(
        (f"gen_poe_ollama/{name}_results.jsonl.gz", HUMANEVAL, 164, 164, "completion", passed)
        for name, passed in [
            ("codegemma_7b", (47, 164)),
            ("codellama_7b", (47, 164)),
            ("deepseek-coder_6.7b", (67, 164)),
            ("qwen2.5-coder_7b", (120, 164)),
        ]
    ),
    ("tasks_mbpp/mbpp.jsonl.gz", MBPP, 974, 974, "code", NO_VERDICTS),
]


# Beside generations: tasks, prompts, assertions made from them, and what other tests read whole.
ELSEWHERE = (
    "derived/*_assertion_tasks.jsonl.gz",
    "gen_codegen16b_humaneval_n100/HumanEval_for_code_generation.jsonl.gz",
    "gen_canaicode_raw_chat/derived_python_assertions.jsonl.gz",
    "gen_llm_humaneval_benchmarks_2023/*.jsonl.gz",
    "gen_livecodebench_o1mini_raw_chat/*.json.gz",
    "gen_canaicode_raw_chat/results/*/*.ndjson.gz",
    f"{CHAT}/*eval_results.json.gz",
)


@pytest.fixture(scope="module")
def data(shared: Path) -> Path:
    if not (shared / "data").is_dir():
        pytest.skip("needs the data sets in ../shared/data")
    return shared / "data"


@cache
def table(data: Path, benchmark: str) -> TaskTable:
    rows = gzip.decompress((data / f"derived/{benchmark}_assertion_tasks.jsonl.gz").read_bytes())
    return TaskTable(
        tuple(
            Task(
                tuple(row["targets"]),
                task_id=row["task_id"],
                prompt=row["prompt"],
                setup=row["setup_after_code"],
            )
            for row in map(json.loads, rows.splitlines())
        )
    )


def named(names: list[str]) -> TaskTable:
    """A benchmark of which nothing is known but the ids."""
    return TaskTable(tuple(Task(("f()",), task_id=name) for name in names))


def read(file: Path, tasks: TaskTable) -> UploadReport:
    with file.open("rb") as stream:
        return checked(stream, file.name, tasks).report()


def rows_of(file: Path) -> list[Any]:
    return [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines() if line]


@pytest.mark.parametrize("row", FILES, ids=[row[0].rsplit("/")[-1][:60] for row in FILES])
def test_a_file_is_read_whole(data: Path, row: Row) -> None:
    name, benchmark, samples, tasks, text_field, verdicts = row
    report = read(data / name, table(data, benchmark))
    assert report.problems == ()
    assert (report.samples, report.tasks_covered) == (samples, tasks)
    assert (report.n_min, report.n_max) == (samples // tasks, samples // tasks)
    assert report.detected.text_fields == {text_field: samples}
    assert (report.peer_passes, report.peer_verdicts) == verdicts


def test_no_file_of_generations_is_left_out(data: Path) -> None:
    found = {
        file
        for folder in (data / "derived", *data.glob("gen_*"))
        for file in folder.rglob("*.gz")
        if file.is_file()
    }
    read_here = {data / row[0] for row in FILES}
    elsewhere = {file for pattern in ELSEWHERE for file in data.glob(pattern)}
    assert found - read_here - elsewhere == set()
    assert read_here - {data / "tasks_mbpp/mbpp.jsonl.gz"} <= found


def test_runs_of_many_models_are_read_whole(data: Path) -> None:
    files = sorted((data / "gen_llm_humaneval_benchmarks_2023").glob("*.jsonl.gz"))
    assert len(files) >= 10
    for file in files:
        report = read(file, table(data, HUMANEVAL))
        assert (report.problem_count, report.samples, report.tasks_covered) == (0, 164, 164)
        assert report.detected.text_fields == {"completion": 164}


def test_samples_named_by_their_prompt_alone_find_their_tasks(data: Path) -> None:
    folder = data / "gen_codegen16b_humaneval_n100"
    peers = {
        row["prompt"]: row["task_id"]
        for row in rows_of(folder / "HumanEval_for_code_generation.jsonl.gz")
    }
    tasks = table(data, HUMANEVAL)
    for row in rows_of(next(folder.glob("*solution.jsonl.gz"))):
        place = tasks.find(row["prompt"], Match.PROMPT)
        assert place is not None
        assert tasks.tasks[place].task_id == peers[row["prompt"]]


def test_results_of_livecodebench(data: Path) -> None:
    file = next((data / "gen_livecodebench_o1mini_raw_chat").glob("*.json.gz"))
    names = [row["question_id"] for row in json.loads(gzip.decompress(file.read_bytes()))]
    report = read(file, named(names))
    assert (report.problems, report.samples, report.tasks_covered) == ((), 880, 880)
    assert report.detected.text_fields == {"code_list": 880}
    assert (report.peer_passes, report.peer_verdicts) == (602, 880)


def test_rows_in_another_language_are_named_and_the_others_read(data: Path) -> None:
    files = sorted((data / "gen_canaicode_raw_chat/results").glob("*/*.ndjson.gz"))
    assert len(files) > 100
    tasks = named(list({row["name"]: None for file in files for row in rows_of(file)}))
    for file in files:
        rows = rows_of(file)
        python = [row for row in rows if row["language"] == "python"]
        report = read(file, tasks)
        assert (report.records, report.samples) == (len(rows), len(python))
        assert report.problem_rules == {"other language": len(rows) - len(python)}
        assert report.peer_passes == sum(row["status"] == "PASS" for row in python)


def test_old_results_without_programs_say_so(data: Path) -> None:
    file = next((data / CHAT).glob("*eval_results.json.gz"))
    report = read(file, table(data, HUMANEVAL))
    assert (report.records, report.samples) == (164, 0)
    assert report.problem_rules == {"missing field": 164}
    assert report.detected.layout == "EvalPlus results"
