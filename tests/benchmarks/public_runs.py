"""Every public generation set as uploads: which file, for which benchmark, under which name.

The benchmarks are HumanEval, MBPP and the seventeen Python tasks of can-ai-code. Everything is read
from the reference data beside the checkout. Left out are LiveCodeBench's set, which comes without
its tests, and the excerpts of sets that are here whole.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CHECKS = "can-ai-code"
# Organisation, model, then the prompt's form in capitals.
_PROMPT_FORM = re.compile(r"_[A-Z0-9]{3,}_.*")
_GRADED = {
    "category": "code_exec",
    "metric_name": "code_exec",
    "post_process": "extract_code_block",
}
_AROUND = re.compile(
    r"^(HumanEvalPlus|HumanEval|MBPP)_|(_results|(-Human|-MBPP)?-Python3-0-1)?\.(nd)?jsonl\.gz$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Run:
    """One file to upload; ``reading`` empty: as detected."""

    file: Path
    benchmark: str
    model: str
    reading: str = ""


def runs(data: Path, every_sample: bool) -> Iterator[Run]:
    """All files, always in the same order.

    Of the set with a hundred samples per task twenty are taken unless ``every_sample``.
    """
    derived = data / "derived"
    hundred = data / "gen_codegen16b_humaneval_n100"
    twenty = derived / "upload_codegen16b_humaneval_n20.jsonl.gz"
    codegen = next(hundred.glob("*_code_solution.jsonl.gz")) if every_sample else twenty
    for file in sorted((data / "gen_mapcoder_raw_chat").glob("*-0-1.jsonl.gz")):
        yield _named(file)
    for folder in ("gen_reflexion", "gen_ldb_seeds", "gen_poe_ollama"):
        for file in sorted((data / folder).glob("*.jsonl.gz")):
            yield _named(file)
    for file in sorted((data / "gen_canaicode_raw_chat/results").glob("*/*.ndjson.gz")):
        # Replies to prompts that are not here to be continued.
        yield Run(file, CHECKS, _first_row_model(file), "generation")
    yield Run(derived / "upload_mistral7b_humaneval_n10.jsonl.gz", "humaneval", "Mistral 7B")
    for file in (data / "gen_mistral7b_humaneval_n10").glob("*_results.jsonl.gz"):
        yield Run(file, "humaneval", "Mistral 7B")
    for file in sorted((data / "gen_llm_humaneval_benchmarks_2023").glob("*.jsonl.gz")):
        yield Run(file, "humaneval", _PROMPT_FORM.sub("", _stem(file)))
    yield Run(codegen, "humaneval", "CodeGen 16B")


def write_share(source: Path, path: Path, every: int) -> None:
    """One row of ``every`` many of a packed task file."""
    with gzip.open(source, "rt", encoding="utf-8") as file:
        path.write_text("".join(list(file)[::every]), encoding="utf-8")


def write_checks(data: Path, path: Path, every: int) -> None:
    """The tasks of can-ai-code as a task file, one of ``every`` many.

    A program may give its function another name there; the targets taken are those that most
    programs were checked by, with the name that the task asks for where there are such.
    """
    found: defaultdict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
    source = data / "gen_canaicode_raw_chat/derived_python_assertions.jsonl.gz"
    with gzip.open(source, "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            asked = row["called_name"] == row["signature_name"]
            found[row["task"]][tuple(row["targets"])] += 1000 * asked + 1 if row["targets"] else 0
    with path.open("w", encoding="utf-8") as file:
        for name, counted in list(found.items())[::every]:
            ((targets, _),) = counted.most_common(1)
            row = {"task_id": name, "prompt": name, "targets": targets, **_GRADED}
            file.write(json.dumps(row) + "\n")


def _named(file: Path) -> Run:
    benchmark = "mbpp" if file.name.lower().startswith("mbpp") else "humaneval"
    return Run(file, benchmark, _stem(file))


def _stem(file: Path) -> str:
    return _AROUND.sub("", file.name)


def _first_row_model(file: Path) -> str:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return str(json.loads(next(lines)).get("model") or _stem(file))
