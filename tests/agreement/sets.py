"""The public generation sets with a verdict of somebody else's for every sample.

Each set says what was run and what came out. Nothing of them is kept in the project: they are read
from the reference data directory beside the checkout.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grading.engine import humaneval
from grading.engine.task import Format, Generation, Task

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
DATA = SHARED / "data"
VERDICTS = SHARED / "reference" / "verdicts"
# Too many samples for every run: a fixed tenth of them is what a short run takes.
LARGE = ("codegen16b_humaneval_n100", "codegen16b_humaneval_n100_truncated")
# The peer changed these texts before it ran them, so its verdicts are about others.
CHANGED_BY_PEER = ("mistral7b_humaneval_n10_asis",)
STOP_WORDS = ("\nclass", "\ndef", "\n#", "\nif", "\nprint")
ANY_TYPING = "from typing import *\n"

Rows = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Case:
    """One sample and what others say of it.

    ``theirs``: did the whole program pass, or did each target hold, in a fresh interpreter.
    ``peer``: the verdict that came with the data, if any. ``per_target`` says which of the two
    forms ``theirs`` has; ``out_of_time``: theirs is a timeout.
    """

    group: str
    task_id: str
    sample: str
    task: Task
    generation: Generation
    theirs: tuple[bool, ...]
    peer: bool | None = None
    per_target: bool = False
    out_of_time: bool = False

    @property
    def name(self) -> str:
        return f"{self.group} {self.task_id} #{self.sample}"

    @property
    def in_tenth(self) -> bool:
        return self.group not in LARGE or zlib.crc32(self.name.encode()) % 10 == 0


def read(path: Path) -> Rows:
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
    return [json.loads(line) for line in text.split("\n") if line.strip()]


def every_case() -> Iterator[Case]:
    """All sets, one after the other, in a fixed order."""
    human = _human_eval_tasks()
    yield from _codegen(human)
    yield from _mistral(human)
    yield from _chat_parsers(human)
    yield from _agents(human)
    yield from _seeds(human)
    yield from _thirteen(human)
    yield from _small_models(human)
    yield from _fractions()
    yield from _checks()


def raw_replies() -> Iterator[tuple[str, Task, Generation]]:
    """(name, task, raw chat reply) of 1,148 answers, the last reply of each row."""
    tasks = _human_eval_tasks()
    for path in sorted((DATA / "gen_mapcoder_raw_chat").glob("HumanEval_*.jsonl.gz")):
        for row in read(path):
            replies = row["responses"] or [""]
            yield f"{path.stem} {row['task_id']}", tasks[row["task_id"]], Generation(replies[-1])


def _human_eval_tasks() -> dict[str, Task]:
    rows = humaneval.load_rows(DATA / "tasks_humaneval" / "HumanEval.jsonl.gz")
    return {
        record.task_id: Task(
            record.targets,
            task_id=record.task_id,
            prompt=record.prompt,
            setup=record.setup,
            entry_points=record.entry_points,
        )
        for record in humaneval.convert(rows).records
    }


def _whole(code: str) -> Generation:
    """Code that goes behind the task's prompt, if it has one, byte for byte."""
    return Generation(code, Format.COMPLETION)


def _judged(
    group: str, samples: Iterable[tuple[str, Task, Generation]], named: str = ""
) -> Iterator[Case]:
    """Cases of a set with one true or false per sample; samples of a task are counted from 0."""
    known = {
        (row["task_id"], str(row["sample"])): row
        for row in read(VERDICTS / f"{named or group}.jsonl")
    }
    counted: defaultdict[str, int] = defaultdict(int)
    for sample, task, generation in samples:
        number = sample or str(counted[task.task_id])
        counted[task.task_id] += 1
        if row := known.get((task.task_id, number)):
            yield Case(
                group,
                task.task_id,
                number,
                task,
                generation,
                theirs=(row["passed"],),
                peer=None if group in CHANGED_BY_PEER else row.get("peer_passed"),
                out_of_time=row["outcome"] == "timed_out",
            )


def _codegen(human: Mapping[str, Task]) -> Iterator[Case]:
    folder = DATA / "gen_codegen16b_humaneval_n100"
    by_prompt = {
        row["prompt"]: row["task_id"]
        for row in read(folder / "HumanEval_for_code_generation.jsonl.gz")
    }
    rows = read(next(folder.glob("*_code_solution.jsonl.gz")))

    def samples(change: Callable[[str], str]) -> Iterator[tuple[str, Task, Generation]]:
        for row in rows:
            for text in row["samples"]:
                yield "", human[by_prompt[row["prompt"]]], _whole(change(text))

    yield from _judged(LARGE[0], samples(lambda text: text))
    yield from _judged(LARGE[1], samples(_stopped))


def _stopped(text: str) -> str:
    ends = [text.find(word) for word in STOP_WORDS if word in text]
    return text[: min(ends)] if ends else text


def _completions(
    human: Mapping[str, Task], rows: Rows, field: str = "completion"
) -> Iterator[tuple[str, Task, Generation]]:
    """Rows of human-eval's form: the prompt, continued by a field."""
    for row in rows:
        yield "", human[row["task_id"]], _whole(row[field])


def _mistral(human: Mapping[str, Task]) -> Iterator[Case]:
    normalised = read(DATA / "derived" / "upload_mistral7b_humaneval_n10.jsonl.gz")
    yield from _judged("mistral7b_humaneval_n10", _completions(human, normalised, "generation"))
    stored = read(DATA / "gen_mistral7b_humaneval_n10/mistral_samples.jsonl_results.jsonl.gz")
    yield from _judged("mistral7b_humaneval_n10_asis", _completions(human, stored))


def _own_test(
    rows: Rows, program: Callable[[dict[str, Any]], str], name: str = "task_id"
) -> Iterator[tuple[str, Task, Generation]]:
    """Rows that bring their own test, which calls itself: it is the one target."""
    for row in rows:
        task = Task((row["test"],), task_id=row[name], entry_points=(row["entry_point"],))
        yield "", task, _whole(program(row))


def _chat_parsers(human: Mapping[str, Task]) -> Iterator[Case]:
    """Programs that a peer's own parser took out of chat replies."""
    folder = DATA / "gen_mapcoder_raw_chat"
    for group, file in (
        ("chatgpt_cot", "ChatGPT-CoT-Python3-0-1"),
        ("chatgpt_analogical", "ChatGPT-Analogical-Python3-0-1"),
        ("chatgpt_mapcoder", "ChatGPT-MapCoder-5-5-Human-Python3-0-1"),
        ("gpt4_selfplanning", "GPT4-Turbo-SelfPlanning-Human-Python3-0-1"),
        ("gpt4_analogical", "GPT4-Turbo-Analogical-Human-Python3-0-1"),
        ("gpt4_mapcoder", "GPT4-Turbo-MapCoder-5-5-Human-Python3-0-1"),
        ("gemini_cot", "Gemini-CoT-Human-Python3-0-1"),
    ):
        rows = read(folder / f"HumanEval_{file}.jsonl.gz")
        samples = (("", human[row["task_id"]], _whole(_last(row))) for row in rows)
        yield from _judged(f"mapcoder_{group}_humaneval", samples)
    for group, file in (
        ("gpt4_cot", "GPT4-Turbo-CoT-MBPP-Python3-0-1"),
        ("gpt4_selfplanning", "GPT4-Turbo-SelfPlanning-MBPP-Python3-0-1"),
        ("chatgpt_analogical", "ChatGPT-Analogical-MBPP-Python3-0-1"),
        ("chatgpt_mapcoder", "ChatGPT-MapCoder-3-5-MBPP-Python3-0-1"),
    ):
        rows = read(folder / f"MBPP_{file}.jsonl.gz")
        samples = _own_test(rows, lambda row: ANY_TYPING + _last(row), "name")
        yield from _judged(f"mapcoder_{group}_mbpp397", samples)


def _last(row: dict[str, Any]) -> str:
    return str((row["source_codes"] or [""])[-1])


def _agents(human: Mapping[str, Task]) -> Iterator[Case]:
    folder = DATA / "gen_reflexion"
    for group, file in (
        ("gpt4_simple", "gpt-4_simple"),
        ("gpt35_simple", "gpt-3.5-turbo_simple"),
        ("davinci003_simple", "text-davinci-003_simple"),
        ("gpt4_reflexion", "gpt-4_reflexion"),
    ):
        rows = read(folder / f"humaneval_{file}.jsonl.gz")
        yield from _judged(f"reflexion_{group}_humaneval", _completions(human, rows, "solution"))
    rows = read(folder / "mbpp_gpt-4_simple.jsonl.gz")
    samples = _own_test(rows, lambda row: str(row["solution"]), "name")
    yield from _judged("reflexion_gpt4_simple_mbpp397", samples)


def _seeds(human: Mapping[str, Task]) -> Iterator[Case]:
    folder = DATA / "gen_ldb_seeds"
    for group, file in (
        ("codellama", "codellama"),
        ("starcoder", "starcoder"),
        ("gpt35", "gpt-3.5-turbo-0613"),
        ("gpt4", "gpt-4-1106-preview"),
    ):
        rows = read(folder / f"humaneval_{file}.jsonl.gz")
        yield from _judged(f"ldb_{group}_humaneval", _completions(human, rows, "solution"))
    for group, file in (
        ("codellama", "codellama"),
        ("starcoder", "starcoder"),
        ("gpt35", "gpt-3.5-turbo-0613"),
    ):
        rows = read(folder / f"mbpp_{file}.jsonl.gz")
        samples = _own_test(rows, lambda row: str(row["solution"]))
        yield from _judged(f"ldb_{group}_mbpp500", samples)


def _thirteen(human: Mapping[str, Task]) -> Iterator[Case]:
    group = "llm_humaneval_benchmarks_13models"
    folder = DATA / "gen_llm_humaneval_benchmarks_2023"
    names = dict.fromkeys(row["sample"] for row in read(VERDICTS / f"{group}.jsonl"))

    def samples() -> Iterator[tuple[str, Task, Generation]]:
        for name in names:
            rows = read(folder / f"{name.rpartition('#')[0]}.jsonl.gz")
            for _, task, generation in _completions(human, rows):
                yield name, task, generation

    yield from _judged(group, samples())


def _small_models(human: Mapping[str, Task]) -> Iterator[Case]:
    for path in sorted((DATA / "gen_poe_ollama").glob("*_results.jsonl.gz")):
        group = "poe_" + path.name.removesuffix("_results.jsonl.gz")
        yield from _judged(group, _completions(human, read(path)))


def _fractions() -> Iterator[Case]:
    """Target by target, as the task sets with single assertions have them."""
    for prefix, file, sources in (
        (
            "he",
            "humaneval",
            {
                "ldb_codellama": "gen_ldb_seeds/humaneval_codellama",
                "ldb_gpt-3.5-turbo-0613": "gen_ldb_seeds/humaneval_gpt-3.5-turbo-0613",
                "refl_gpt4_simple": "gen_reflexion/humaneval_gpt-4_simple",
            },
        ),
        (
            "ldbmbpp",
            "mbpp",
            {
                "codellama": "gen_ldb_seeds/mbpp_codellama",
                "gpt-3.5-turbo-0613": "gen_ldb_seeds/mbpp_gpt-3.5-turbo-0613",
                "starcoder": "gen_ldb_seeds/mbpp_starcoder",
            },
        ),
    ):
        tasks = _assertion_tasks(file, with_prompt=prefix == "he")
        for name, source in sources.items():
            group = f"fraction_{prefix}_{name}"
            known = {row["task_id"]: row for row in read(VERDICTS / f"{group}.jsonl")}
            for row in read(DATA / f"{source}.jsonl.gz"):
                task = tasks[row["task_id"]]
                theirs = _padded(known[task.task_id]["res"], len(task.targets))
                generation = _whole(row["solution"])
                yield Case(
                    group, task.task_id, "0", task, generation, theirs, row["is_solved"], True
                )


def _assertion_tasks(file: str, with_prompt: bool) -> dict[str, Task]:
    return {
        row["task_id"]: Task(
            tuple(row["targets"]),
            task_id=row["task_id"],
            prompt=row["prompt"] if with_prompt else "",
            setup=row["setup_after_code"],
            entry_points=(row["entry_point"],) if "entry_point" in row else (),
        )
        for row in read(DATA / "derived" / f"{file}_assertion_tasks.jsonl.gz")
    }


def _padded(results: list[str], count: int) -> tuple[bool, ...]:
    held = [result == "pass" for result in results]
    return tuple(held + [False] * (count - len(held)))


def _checks() -> Iterator[Case]:
    """A peer with one result per check, run again in a fresh interpreter."""
    group = "fraction_canaicode"
    known = {row["id"]: row for row in read(VERDICTS / f"{group}.jsonl")}
    for row in read(DATA / "gen_canaicode_raw_chat" / "derived_python_assertions.jsonl.gz"):
        if row["id"] not in known:
            continue
        theirs = tuple(held is True for held in known[row["id"]]["fresh"])
        task = Task(tuple(row["targets"]), task_id=row["task"])
        peer = all(row["peer_target_pass"])
        yield Case(
            group, row["task"], row["id"], task, _whole(row["peer_code"]), theirs, peer, True
        )
