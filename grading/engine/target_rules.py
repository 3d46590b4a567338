"""Rules for the targets of a task record, which depend on the task's kind."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from grading.engine import source
from grading.engine.jsonl import plain, shown
from grading.engine.limits import OUTPUT_BYTES
from grading.engine.task import Exchange, Kind, Target, to_json

# Metadata that means nothing where no judge evaluates anything.
ASSERTION_ONLY = ("entry_point", "setup", "in_place")
EXCHANGE_FORM = "an object with the strings input and output and nothing else"


@dataclass(frozen=True, slots=True)
class Fault:
    """One rule that a record breaks, for a :class:`grading.engine.jsonl.Problem`."""

    field: str
    rule: str
    detail: str
    found: str = ""
    expected: str = ""


def wrong_type(field_name: str, value: object, expected: str) -> Fault:
    found = shown(value)
    detail = f"expected {expected}, found {found}"
    return Fault(field_name, "wrong type", detail, found, expected)


def compile_problem(code: str) -> str:
    """Why ``code`` does not compile; empty where it does."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(code, "<task>", "exec", dont_inherit=True)
    except SyntaxError as problem:
        return f"{problem.msg} (line {problem.lineno})"
    except (ValueError, RecursionError, MemoryError, OverflowError) as problem:
        return f"{type(problem).__name__}: {problem}"
    return ""


def check_kind(metadata: dict[str, Any]) -> Iterator[Fault]:
    """``kind`` is known, and no other key contradicts it."""
    kind = metadata.get("kind", Kind.ASSERTION)
    if kind not in tuple(Kind):
        expected = " or ".join(Kind)
        yield Fault("metadata.kind", "unknown kind", f"use {expected}", shown(kind), expected)
    elif kind == Kind.STDIO:
        for name in ASSERTION_ONLY:
            if metadata.get(name):
                detail = f"a task of the kind stdio has no {name}: its program runs as a script"
                yield Fault(f"metadata.{name}", "illegal pair", detail, shown(metadata[name]))


def check_targets(row: dict[str, Any]) -> Iterator[Fault]:
    """Of the form that the record's kind asks for; silent where the kind itself is wrong."""
    metadata = row.get("metadata")
    kind = metadata.get("kind", Kind.ASSERTION) if isinstance(metadata, dict) else Kind.ASSERTION
    if "targets" not in row or kind not in tuple(Kind):
        return
    targets, is_stdio = row["targets"], kind == Kind.STDIO
    if not isinstance(targets, list):
        form = "objects with input and output" if is_stdio else "strings"
        yield wrong_type("targets", targets, f"a list of {form}")
    elif not targets:
        yield Fault("targets", "no targets", "a task without targets cannot be graded")
    else:
        check = _check_exchange if is_stdio else _check_assertion
        for index, target in enumerate(targets):
            yield from check(f"targets[{index}]", target)


def _check_assertion(name: str, target: object) -> Iterator[Fault]:
    if isinstance(target, dict) and {"input", "output"} <= set(target):
        yield wrong_type(name, target, 'a string; for input and output set metadata.kind "stdio"')
    elif not isinstance(target, str):
        yield wrong_type(name, target, "a string")
    elif not target.strip():
        yield Fault(name, "empty", "the target holds no code")
    elif reason := compile_problem(target.strip()):
        yield Fault(name, "does not compile", reason, shown(target))


def _check_exchange(name: str, target: object) -> Iterator[Fault]:
    if not isinstance(target, dict):
        yield wrong_type(name, target, EXCHANGE_FORM)
        return
    for key in ("input", "output"):
        if key not in target:
            yield Fault(f"{name}.{key}", "missing field", f"expected {EXCHANGE_FORM}")
        elif not isinstance(target[key], str):
            yield wrong_type(f"{name}.{key}", target[key], "a string")
    for key in target:
        if key not in ("input", "output"):
            yield Fault(f"{name}.{plain(key)}", "unknown field", f"expected {EXCHANGE_FORM}")
    output = target.get("output")
    if isinstance(output, str) and len(output.encode("utf-8", "replace")) > OUTPUT_BYTES:
        detail = f"a program may print {OUTPUT_BYTES:,} bytes, so none can print this"
        yield Fault(f"{name}.output", "too long", detail)


def odd_target(name: str, target: Target) -> Fault | None:
    """Why a target tells programs apart badly; it is kept all the same."""
    if isinstance(target, Exchange):
        if target.output.strip():
            return None
        detail = "empty: every program that prints nothing gets it right"
        return Fault(f"{name}.output", "no output", detail, shown(to_json(target)))
    if not is_constant(target):
        return None
    detail = "reads no name: every program gets the same answer"
    return Fault(name, "constant target", detail, shown(target))


def is_constant(target: str) -> bool:
    """The target reads no name at all, so no program can change its answer."""
    tree = source.parse(target.strip())
    return tree is not None and not any(isinstance(node, ast.Name) for node in ast.walk(tree))
