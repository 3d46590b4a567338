"""The text that runs: a task's prompt and a model's generation put together."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import lru_cache

from grading.engine import fences, reply, source
from grading.engine.extract import Extracted, Rule, extract_clean, has_fence
from grading.engine.outcome import Extraction
from grading.engine.task import Format, Generation, Kind, Preamble, Task

_FUTURE = re.compile(r"^from[ \t]+__future__[ \t]+import\b[^\n]*+$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Program:
    """``text`` is what the cell compiles; it may hold anything, lone surrogates included."""

    text: str
    extraction: Extraction


def build_program(task: Task, generation: Generation) -> Program:
    """The program of ``generation`` for ``task``; never raises.

    A completion, and a generation without fence that does not define the entry point, continue
    the prompt byte for byte (the latter only a prompt that is Python, and not where that breaks a
    program that is Python by itself). Everything else is extracted, and gets what
    ``task.preamble`` says in front; a program that reads standard input stands alone.
    """
    if generation.format is Format.COMPLETION:
        return Program(task.prompt + generation.text, Extraction(Rule.COMPLETION.value))
    text = reply.normalise(generation.text)
    rest = reply.drop_thoughts(text)
    if rest is None:
        return Program("", Extraction(Rule.UNCLOSED_THOUGHT.value))
    clean = reply.cut_end_tokens(rest)
    names = task.names()
    preamble = Preamble.NOTHING if task.kind is Kind.STDIO else task.preamble
    prompt = _read_prompt(task.prompt, preamble, names)
    if prompt.can_be_continued and not _stands_alone(clean, names):
        untouched = clean == text
        joined = task.prompt + (generation.text if untouched else clean)
        if not _breaks(joined, clean):
            return Program(joined, Extraction(Rule.JOINED.value))
    found = extract_clean(clean, names, task.blocks, prompt.names)
    return _assemble(prompt, names, found)


def prompt_helpers(prompt: str, entry_points: tuple[str, ...]) -> str:
    """Source of the prompt's imports, assignments, and functions and classes but the entry points.

    Empty where the prompt is no Python. The prompt may end in a function without a body.
    """
    tree = source.parse_prompt(prompt)
    if tree is None:
        return ""
    lines = prompt.split("\n")
    kept = [node for node in tree.body if _is_helper(node, entry_points)]
    ranges = dict.fromkeys((_first_line(node), node.end_lineno or node.lineno) for node in kept)
    return "".join("\n".join(lines[start - 1 : end]) + "\n" for start, end in ranges)


@dataclass(frozen=True, slots=True)
class _Prompt:
    """What the task's prompt gives to a program: ``preamble`` in front, which binds ``names``."""

    text: str
    can_be_continued: bool
    preamble: str
    names: frozenset[str]


# Samples of one task come one after another, and a whole upload names few tasks.
@lru_cache(maxsize=1024)
def _read_prompt(text: str, policy: Preamble, entry_points: tuple[str, ...]) -> _Prompt:
    tree = None if policy is Preamble.NOTHING else source.parse_prompt(text)
    if tree is None or _is_words(tree):
        return _Prompt(text, False, "", frozenset())
    preamble = text if policy is Preamble.PROMPT else prompt_helpers(text, entry_points)
    names = source.defined_names(preamble, source.parse(preamble))
    return _Prompt(text, True, preamble, names)


def _is_words(prompt: ast.Module) -> bool:
    """A title such as ``Palindrome``, or a comment, is Python too, and nothing to continue."""
    return all(isinstance(node, ast.Expr) for node in prompt.body)


def _stands_alone(text: str, names: tuple[str, ...]) -> bool:
    """Holds a fence, or defines a name that the targets call."""
    if has_fence(text):
        return True
    return not source.defined_names(text, source.parse(text)).isdisjoint(names)


def _breaks(joined: str, text: str) -> bool:
    """Whether joining makes no Python of a text that is, and that defines something."""
    tree = source.parse(text)
    if tree is None or not any(isinstance(node, source.DEFINITIONS) for node in tree.body):
        return False
    return isinstance(source.parse_or_error(joined), SyntaxError)


def _assemble(prompt: _Prompt, names: tuple[str, ...], found: Extracted) -> Program:
    tree = source.parse(found.code)
    rule, text = found.rule, None
    if prompt.can_be_continued and source.defined_names(found.code, tree).isdisjoint(names):
        text = _graft(prompt.text, found.code)
        rule = found.rule if text is None else Rule.GRAFTED
    if text is None:
        text = _put_in_front(prompt.preamble, found.code, tree)
    return Program(text, Extraction(rule.value, found.block, found.blocks))


def _graft(prompt: str, body: str) -> str | None:
    """Prompt and body, where the body returns a value and parses behind the prompt."""
    last = prompt.rstrip().rsplit("\n", 1)[-1]
    indent = last[: len(last) - len(last.lstrip())] or "    "
    start = prompt if prompt.endswith("\n") else prompt + "\n"
    first_line_lost_its_indent = indent + body.lstrip()
    for attempt in (_indented(body, indent), first_line_lost_its_indent):
        tree = source.parse(start + attempt)
        if tree is not None and _ends_in_returning_function(tree):
            return start + attempt
    return None


def _indented(body: str, indent: str) -> str:
    lines = fences.dedent(body).split("\n")
    return "\n".join(indent + line if line.strip() else line for line in lines)


def _ends_in_returning_function(tree: ast.Module) -> bool:
    """The last function holds a return or yield of its own."""
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    inner = ast.Module(body=last.body, type_ignores=[])
    return any(
        isinstance(node, ast.Return | ast.Raise)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield | ast.YieldFrom))
        for node in source.statements(inner)
    )


def _put_in_front(preamble: str, code: str, tree: ast.Module | None) -> str:
    """``preamble`` before ``code``, but behind its ``__future__`` imports, which must be first."""
    if not preamble:
        return code
    if not preamble.endswith("\n"):
        preamble += "\n"
    line = _last_future_line(code, tree)
    if not line:
        return preamble + code
    lines = code.split("\n")
    return "\n".join(lines[:line]) + "\n" + preamble + "\n".join(lines[line:])


def _last_future_line(code: str, tree: ast.Module | None) -> int:
    """Line number of the last ``__future__`` import, 0 without any."""
    if tree is None:
        ends = [match.end() for match in _FUTURE.finditer(code)]
        return code.count("\n", 0, ends[-1]) + 1 if ends else 0
    futures = [
        node.end_lineno or node.lineno
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module == "__future__"
    ]
    return max(futures, default=0)


def _first_line(node: ast.stmt) -> int:
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _is_helper(node: ast.stmt, entry_points: tuple[str, ...]) -> bool:
    if isinstance(node, source.DEFINITIONS):
        return node.name not in entry_points
    return isinstance(
        node, ast.Import | ast.ImportFrom | ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Try
    )
