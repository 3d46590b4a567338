"""A task as the engine grades it, and one generation for it."""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain

from grading.engine import source
from grading.engine.limits import DEFAULT_TIMEOUT_S


class Format(StrEnum):
    """What a generation's text is."""

    GENERATION = "generation"  # a chat reply or a whole program: code is extracted from it
    COMPLETION = "completion"  # continues the prompt byte for byte


class BlockPolicy(StrEnum):
    """Which fenced block of a reply is the program."""

    AUTO = "auto"  # the first that defines a name the targets call
    FIRST = "first"
    LAST = "last"


class Preamble(StrEnum):
    """What of the prompt stands in front of an extracted program."""

    PROMPT = "prompt"  # the whole prompt
    IMPORTS = "imports"  # its imports and helpers, without the entry points
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Generation:
    text: str
    format: Format = Format.GENERATION


@dataclass(frozen=True, slots=True)
class Task:
    """One problem: what is asked (``prompt``) and what must hold (``targets``).

    ``targets`` are Python expressions or statements; ``setup`` runs in the judge after the
    program has loaded; ``entry_points`` empty means: found from the targets.
    """

    targets: tuple[str, ...]
    task_id: str = ""
    prompt: str = ""
    setup: str = ""
    entry_points: tuple[str, ...] = ()
    timeout_s: float = DEFAULT_TIMEOUT_S
    allow_processes: bool = False
    in_place: bool = False
    blocks: BlockPolicy = BlockPolicy.AUTO
    preamble: Preamble = Preamble.IMPORTS
    denylist: tuple[str, ...] | None = None

    def names(self) -> tuple[str, ...]:
        """The names a program has to define: given, else those the targets call."""
        return self.entry_points or called_names(self.targets, self.setup)


def called_names(targets: tuple[str, ...], setup: str = "") -> tuple[str, ...]:
    """Names the targets call directly and nobody else provides, in order of appearance.

    Builtins count only when nothing else is called: then a builtin called by every target is
    the entry point (MBPP has a task whose function is named ``sum``).
    """
    trees = [tree for tree in map(_parse, targets) if tree is not None]
    bound = _bound_names(_parse(setup)) if setup else set()
    per_target = [
        [name for name in _calls(tree) if name not in _bound_names(tree)] for tree in trees
    ]
    own = [
        name
        for calls in per_target
        for name in calls
        if name not in bound and not hasattr(builtins, name)
    ]
    if setup:
        own += [name for name in _free_names(setup) if name not in own]
    if own:
        return tuple(dict.fromkeys(own))
    common = set.intersection(*map(set, per_target)) if per_target else set()
    return tuple(name for name in dict.fromkeys(chain.from_iterable(per_target)) if name in common)


def _parse(code: str) -> ast.Module | None:
    return source.parse(code.strip())


def _calls(tree: ast.AST) -> list[str]:
    return [
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]


def _bound_names(tree: ast.Module | None) -> set[str]:
    bound: set[str] = set()
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            bound.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
    return bound


def _free_names(setup: str) -> list[str]:
    """Names that set-up code reads and does not bind: `candidate = f` needs `f`."""
    tree = _parse(setup)
    bound = _bound_names(tree)
    return [
        node.id
        for node in (ast.walk(tree) if tree else ())
        if isinstance(node, ast.Name)
        and isinstance(node.ctx, ast.Load)
        and node.id not in bound
        and not hasattr(builtins, node.id)
    ]
