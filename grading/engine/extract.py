"""Find the program in a model's reply.

The rules, in order: the first fenced block that defines a name the targets call; else the first
block labelled Python or not labelled; else the first block; without a fence the whole text.
A block that lacks a name another block defines gets that block in front. Linear in the text and
never raises: the reply is hostile.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from grading.engine import fences, reply, source
from grading.engine.task import BlockPolicy

# Parsing stops when this many characters of one reply went through the parser; a scan of the
# lines decides after that.
PARSE_BUDGET = 1_000_000
CUT_BACK_TRIES = 200


class Rule(StrEnum):
    """Which rule found the program."""

    ENTRY_POINT = "entry point"
    PYTHON_BLOCK = "python block"
    FIRST_BLOCK = "first block"
    LAST_BLOCK = "last block"
    WHOLE_TEXT = "whole text"
    UNCLOSED_THOUGHT = "unclosed thought"
    COMPLETION = "completion"
    JOINED = "joined"
    GRAFTED = "grafted"


@dataclass(frozen=True, slots=True)
class Extracted:
    """``code`` and how it was found; ``block`` counts from 0, None where no block was taken."""

    code: str
    rule: Rule
    block: int | None = None
    blocks: int = 0


class _Budget:
    """Characters of this reply that may still go through the parser."""

    def __init__(self, chars: int) -> None:
        self.left = chars

    def parse(self, code: str) -> ast.Module | Exception:
        if len(code) > self.left:
            return ValueError("nothing left to parse with")
        self.left -= len(code)
        return source.parse_or_error(code)


class _Candidate:
    """One block of the reply, parsed when somebody asks."""

    def __init__(self, block: fences.Block, budget: _Budget) -> None:
        self.is_python = block.is_python
        self._block = block
        self._budget = budget

    @cached_property
    def code(self) -> str:
        return self._block.body if self._block.closed else _cut_back(self._block, self._budget)

    @cached_property
    def tree(self) -> ast.Module | None:
        tree = self._budget.parse(self.code)
        return tree if isinstance(tree, ast.Module) else None

    @cached_property
    def names(self) -> frozenset[str]:
        return source.defined_names(self.code, self.tree)

    def defines_one_of(self, names: Collection[str]) -> bool:
        # Most blocks do not hold the name at all, and are never parsed.
        return any(name in self.code for name in names) and not self.names.isdisjoint(names)


def extract(
    text: str,
    names: Collection[str] = (),
    policy: BlockPolicy = BlockPolicy.AUTO,
    provided: Iterable[str] = (),
) -> Extracted:
    """The program in ``text``; ``names`` are those the targets call.

    ``provided`` names come from elsewhere (the prompt's imports and helpers): no block is put in
    front for their sake. Any string is accepted, lone surrogates and NUL characters included.
    """
    rest = reply.drop_thoughts(reply.normalise(text))
    if rest is None:
        return Extracted("", Rule.UNCLOSED_THOUGHT)
    return extract_clean(reply.cut_end_tokens(rest), names, policy, provided)


def extract_clean(
    text: str,
    names: Collection[str] = (),
    policy: BlockPolicy = BlockPolicy.AUTO,
    provided: Iterable[str] = (),
) -> Extracted:
    """`extract` for a reply that is already free of thoughts, end tokens and CR."""
    found = fences.blocks(text)
    budget = _Budget(PARSE_BUDGET)
    if not found or isinstance(budget.parse(text), ast.Module):
        # Python from the first line to the last holds fences only in its strings.
        return Extracted(text, Rule.WHOLE_TEXT)
    candidates = [_Candidate(block, budget) for block in found]
    if _is_stray_closer(found[-1], candidates[-1]):
        candidates[-1] = _code_before(text, found, budget)
    index, rule = _choose(candidates, names, policy)
    code = candidates[index].code
    if policy is BlockPolicy.AUTO:
        code = _with_helpers(candidates, index, frozenset(provided))
    return Extracted(code, rule, index, len(candidates))


def has_fence(text: str) -> bool:
    return bool(fences.blocks(text))


def _choose(
    candidates: list[_Candidate], names: Collection[str], policy: BlockPolicy
) -> tuple[int, Rule]:
    if policy is BlockPolicy.FIRST:
        return 0, Rule.FIRST_BLOCK
    if policy is BlockPolicy.LAST:
        return len(candidates) - 1, Rule.LAST_BLOCK
    tests: list[tuple[Rule, Callable[[_Candidate], bool]]] = [
        (Rule.ENTRY_POINT, lambda one: one.defines_one_of(names)),
        (Rule.PYTHON_BLOCK, lambda one: one.is_python and bool(one.code.strip())),
    ]
    for rule, holds in tests:
        for index, candidate in enumerate(candidates):
            if holds(candidate):
                return index, rule
    return 0, Rule.FIRST_BLOCK


def _with_helpers(candidates: list[_Candidate], chosen: int, provided: frozenset[str]) -> str:
    """The chosen block behind the blocks that define what it, or they, lack."""
    wanted, waiting = {chosen}, [chosen]
    known = set(provided)
    index: dict[str, int] | None = None
    while waiting:
        candidate = candidates[waiting.pop()]
        known |= candidate.names
        lacking = source.missing_names(candidate.tree) - known if candidate.tree else frozenset()
        if not lacking:
            continue
        if index is None:
            index = _definitions(candidates)
        helpers = {index[name] for name in lacking if name in index} - wanted
        wanted |= helpers
        waiting += sorted(helpers)
    wanted.remove(chosen)
    return "\n".join(candidates[place].code for place in [*sorted(wanted), chosen])


def _definitions(candidates: list[_Candidate]) -> dict[str, int]:
    """Name -> the first block that is Python and defines it."""
    found: dict[str, int] = {}
    for index, candidate in enumerate(candidates):
        if candidate.tree:
            for name in candidate.names:
                found.setdefault(name, index)
    return found


def _cut_back(block: fences.Block, budget: _Budget) -> str:
    """The body of an unclosed fence up to the last line at which it parses.

    Every text that holds the line of a syntax error fails at it, so each try ends above the
    last one's error; the parser's budget and a number of tries bound the search.
    """
    body = block.body
    if body.rstrip().endswith(block.fence):  # closed, but not on a line of its own
        body = body.rstrip().removesuffix(block.fence)
    lines = body.split("\n")
    size = len(lines)
    for _ in range(CUT_BACK_TRIES):
        tree = budget.parse("\n".join(lines[:size]))
        if isinstance(tree, ast.Module):
            return "\n".join(lines[:size])
        if not isinstance(tree, SyntaxError):
            break
        size = max(0, min(size, tree.lineno or size) - 1)
    return body


def _is_stray_closer(block: fences.Block, candidate: _Candidate) -> bool:
    """A last fence line with no code behind it closes code that no fence opened."""
    return not block.closed and not block.label and not candidate.code.strip()


def _code_before(text: str, found: list[fences.Block], budget: _Budget) -> _Candidate:
    start = found[-2].end + 1 if len(found) > 1 else 0
    body = fences.dedent(text[start : found[-1].start])
    before = fences.Block(body, "", found[-1].fence, start, found[-1].start, closed=True)
    candidate = _Candidate(before, budget)
    return candidate if candidate.tree else _Candidate(found[-1], budget)
