"""Synthetic language models for the demo: reference solutions with small, seeded mistakes.

The same profile, task and sample number always give the same text. Pure Python.
"""

from __future__ import annotations

import ast
import json
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

SAMPLES = 5


@dataclass(frozen=True, slots=True)
class Profile:
    """One synthetic model: ``mistakes`` is the chance that a sample of an average task is wrong,
    ``broken`` that it does not compile, ``chatty`` that it is wrapped in prose.
    """

    name: str
    mistakes: float
    broken: float
    chatty: float


PROFILES = (
    Profile("Synthetic A", mistakes=0.30, broken=0.00, chatty=0.9),
    Profile("Synthetic B", mistakes=0.50, broken=0.02, chatty=0.5),
    Profile("Synthetic C", mistakes=0.90, broken=0.06, chatty=0.2),
)


@dataclass(frozen=True, slots=True)
class Solved:
    """A task with its reference program."""

    task_id: str
    program: str


def upload_file(profile: Profile, tasks: Iterable[Solved], samples: int = SAMPLES) -> bytes:
    """The upload of ``profile``: JSON Lines with ``samples`` generations per task."""
    return "".join(json.dumps(line) + "\n" for line in _lines(profile, tasks, samples)).encode()


def _lines(profile: Profile, tasks: Iterable[Solved], samples: int) -> Iterator[dict[str, object]]:
    for task in tasks:
        for index in range(samples):
            text = generation(profile, task, index)
            yield {"task_id": task.task_id, "sample": index, "generation": text}


def generation(profile: Profile, task: Solved, index: int) -> str:
    """What the synthetic model ``profile`` answers to ``task`` at its ``index``-th try."""
    # Some tasks are hard for everybody, so that more tries do not always help.
    difficulty = random.Random(task.task_id).expovariate(1)
    dice = random.Random(f"{profile.name}/{task.task_id}/{index}")
    program = ast.unparse(ast.parse(task.program))
    if dice.random() < profile.mistakes * difficulty:
        program = mutated(program, dice)
    if dice.random() < profile.broken:
        program = program.replace(":\n", "\n", 1)
    return dice.choice(WRAPPERS)(program) if dice.random() < profile.chatty else program + "\n"


def _fenced(program: str) -> str:
    return f"```python\n{program}\n```\n"


def _in_prose(program: str) -> str:
    return (
        f"Sure! Here is a solution:\n\n{_fenced(program)}\n"
        "It goes through the input once and returns the result. Let me know if you need tests!\n"
    )


def _unlabelled(program: str) -> str:
    return f"The function below does what you ask for.\n\n```\n{program}\n```\n"


def _with_install(program: str) -> str:
    return f"Nothing needs to be installed:\n\n```bash\npython3 main.py\n```\n\n{_fenced(program)}"


WRAPPERS: tuple[Callable[[str], str], ...] = (_fenced, _in_prose, _unlabelled, _with_install)


def mutated(program: str, dice: random.Random) -> str:
    """The program with one mistake in it; unchanged where no mistake fits."""
    tree = ast.parse(program)
    changes = [change for node in _places(tree, dice) for change in _mistakes(node)]
    if changes:
        dice.choice(changes)()
    return ast.unparse(ast.fix_missing_locations(tree))


def _places(tree: ast.Module, dice: random.Random) -> Iterator[ast.AST]:
    """Nodes of function bodies. Mistakes in ``while`` loops are rare: each costs a time limit."""
    allow_while = dice.random() < 0.03
    pending: list[ast.AST] = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    while pending:
        node = pending.pop(0)
        if isinstance(node, ast.While) and not allow_while:
            continue
        yield node
        if isinstance(node, ast.FunctionDef):
            pending.extend(node.body)
        else:
            pending.extend(ast.iter_child_nodes(node))


SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.FloorDiv,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


def _mistakes(node: ast.AST) -> Iterator[Callable[[], None]]:
    """The mistakes that fit this node, each as a change to make."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        yield lambda: node.ops.__setitem__(0, _swapped(node.ops[0]))
    if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in SWAPS:
        yield lambda: setattr(node, "op", _swapped(node.op))
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield lambda: setattr(node, "value", int(str(node.value)) + 1)
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and len(node.id) > 2:
        yield lambda: setattr(node, "id", f"{node.id}_")
    if isinstance(node, ast.FunctionDef):
        yield lambda: node.body.insert(0, ast.Return(ast.Constant(None)))
    if isinstance(node, ast.FunctionDef | ast.For | ast.If) and len(node.body) > 1:
        yield lambda: node.body.__delitem__(-1)


def _swapped(operator: ast.AST) -> Any:
    return SWAPS[type(operator)]()
