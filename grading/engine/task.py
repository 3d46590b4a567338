"""A task as the engine grades it, and one generation for it."""

from __future__ import annotations

import ast
import builtins
import sys
from dataclasses import asdict, dataclass
from enum import StrEnum
from itertools import chain

from grading.engine import source
from grading.engine.limits import DEFAULT_TIMEOUT_S


class Format(StrEnum):
    """What a generation's text is."""

    GENERATION = "generation"  # a chat reply or a whole program: code is extracted from it
    COMPLETION = "completion"  # continues the prompt byte for byte


class Kind(StrEnum):
    """What the targets of a task are; all of one task are of one kind."""

    ASSERTION = "assertion"  # Python expressions or statements
    STDIO = "stdio"  # what a program reads and is to print


@dataclass(frozen=True, slots=True)
class Exchange:
    """A target of the kind ``stdio``: the text on standard input, and the one expected."""

    input: str
    output: str


Target = str | Exchange


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

    ``targets`` are all assertions or all exchanges, as ``kind`` says. ``timeout_s`` limits a run:
    one of the whole program with all assertions, or one for each exchange. ``setup`` runs in the
    judge after the program has loaded; ``entry_points`` empty means: found from the targets.
    """

    targets: tuple[Target, ...]
    kind: Kind = Kind.ASSERTION
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

    @property
    def assertions(self) -> tuple[str, ...]:
        return tuple(target for target in self.targets if isinstance(target, str))

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        return tuple(target for target in self.targets if isinstance(target, Exchange))

    def names(self) -> tuple[str, ...]:
        """The names a program has to define: given, else those the assertions call."""
        return self.entry_points or called_names(self.assertions, self.setup, self.prompt)


def to_json(target: Target) -> str | dict[str, str]:
    """A target as task files and records hold it."""
    return target if isinstance(target, str) else asdict(target)


def from_json(stored: str | dict[str, str]) -> Target:
    """The target that `to_json` gave ``stored`` for."""
    return stored if isinstance(stored, str) else Exchange(**stored)


def called_names(targets: tuple[str, ...], setup: str = "", prompt: str = "") -> tuple[str, ...]:
    """Names the targets call and nobody else provides, in order of appearance.

    Set-up code and the prompt's functions before its last one are others. Where nothing of that
    kind is called, the names that targets only read (``all(map(f, xs))`` reads ``f``); where
    there are none either, the one builtin that every target calls (MBPP has a task whose function
    is named ``sum``). Several such builtins are none: one of them would be the program's to forge.
    """
    trees = [tree for tree in map(_parse, targets) if tree is not None]
    setup_tree = _parse(setup)
    provided = _bound_names(setup_tree) | _helpers(source.parse_prompt(prompt))
    calls = [[name for name in _calls(tree) if name not in _bound_names(tree)] for tree in trees]
    called = [name for name in chain.from_iterable(calls) if not hasattr(builtins, name)]
    own = [name for name in [*called, *_read_names(setup_tree)] if name not in provided]
    if not own:
        read = chain.from_iterable(map(_read_names, trees))
        own = [name for name in read if name not in provided]
    if own:
        return tuple(dict.fromkeys(own))
    common = set.intersection(*map(set, calls)) if calls else set()
    return tuple(common) if len(common) == 1 else ()


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


def _read_names(tree: ast.Module | None) -> list[str]:
    """Names that code reads and nobody binds: ``candidate = f`` needs ``f``."""
    bound = _bound_names(tree)
    return [
        node.id
        for node in (ast.walk(tree) if tree else ())
        if isinstance(node, ast.Name)
        and isinstance(node.ctx, ast.Load)
        and node.id not in bound
        and node.id not in sys.stdlib_module_names
        and not hasattr(builtins, node.id)
    ]


def _helpers(tree: ast.Module | None) -> set[str]:
    """Names of the functions and classes a prompt defines, but for the last: that one is asked."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return {node.name for node in (tree.body if tree else ()) if isinstance(node, kinds)} - {
        node.name for node in (tree.body[-1:] if tree else ()) if isinstance(node, kinds)
    }
