"""What Python source defines and lacks, asked of text that may be hostile. Never raises.

Sources over `PARSE_CHARS` are not given to the parser: its memory grows to some hundred times
the text. A scan of the lines answers for those, and for text that does not parse.
"""

from __future__ import annotations

import ast
import builtins
import re
import warnings
from collections.abc import Iterator

PARSE_CHARS = 300_000
# The tokenizer itself gives up at 200 open brackets; older ones crash on much deeper text.
MAX_DEPTH = 200
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

_DEFINITION = re.compile(r"(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)")
_ASSIGNMENT = re.compile(r"(\w+)[ \t]*(?::[^=\n]*+)?=(?!=)")
_IMPORT = re.compile(r"(?:from[ \t]+[.\w]+[ \t]+)?import[ \t]+(.+)")
_BRACKET_STEP = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}
_BRACKET = re.compile(r"[()\[\]{}]")


def parse(source: str) -> ast.Module | None:
    """The syntax tree, or None where the text is no Python, too long or too deep."""
    tree = parse_or_error(source)
    return tree if isinstance(tree, ast.Module) else None


def parse_prompt(prompt: str) -> ast.Module | None:
    """The tree of a prompt, or None; a function at its end that lacks a body gets one."""
    tree = parse(prompt)
    if tree is not None:
        return tree
    last = prompt.rstrip().rsplit("\n", 1)[-1]
    indent = last[: len(last) - len(last.lstrip())]
    return parse(f"{prompt.rstrip()}\n{indent}    pass\n")


def parse_or_error(source: str) -> ast.Module | Exception:
    """The syntax tree, or the reason why there is none."""
    if len(source) > PARSE_CHARS or _too_deep(source):
        return ValueError("too long or too deep to parse")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as problem:
        return problem


def _too_deep(source: str) -> bool:
    """More than `MAX_DEPTH` brackets open, those in strings counted too."""
    depth = deepest = 0
    for match in _BRACKET.finditer(source):
        depth = max(0, depth + _BRACKET_STEP[match.group()])
        deepest = max(deepest, depth)
    return deepest > MAX_DEPTH


def defined_names(source: str, tree: ast.Module | None) -> frozenset[str]:
    """Names bound at module level: by the tree, or by its lines where there is no tree."""
    if tree is None:
        return frozenset(_scanned_names(source))
    return frozenset(name for node in statements(tree) for name in _bound_by(node))


def statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Every statement that runs when the module does, bodies of functions and classes apart."""
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.stmt):
            yield node
        if not isinstance(node, DEFINITIONS):
            waiting += [
                child
                for child in ast.iter_child_nodes(node)
                if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case)
            ]


def missing_names(tree: ast.Module) -> frozenset[str]:
    """Names the source reads and neither binds anywhere nor finds among the builtins."""
    read: set[str] = set()
    bound: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (read if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, DEFINITIONS):
            bound.add(node.name)
        elif isinstance(node, ast.ExceptHandler):
            bound.add(node.name or "")
        elif isinstance(node, ast.Import | ast.ImportFrom):
            bound.update(_imported(node))
    return frozenset(name for name in read - bound if not hasattr(builtins, name))


def _bound_by(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name
        case ast.Import() | ast.ImportFrom():
            yield from _imported(node)
        case ast.Assign():
            for target in node.targets:
                yield from _stored(target)
        case ast.AnnAssign() if node.value is not None:
            yield from _stored(node.target)
        case ast.For() | ast.AsyncFor():
            yield from _stored(node.target)


def _stored(target: ast.expr) -> Iterator[str]:
    for node in ast.walk(target):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    for alias in node.names:
        yield alias.asname or alias.name.split(".")[0]


def _scanned_names(source: str) -> Iterator[str]:
    for line in source.split("\n"):
        found = _DEFINITION.match(line) or _ASSIGNMENT.match(line)
        if found:
            yield found[1]
        elif imported := _IMPORT.match(line):
            for part in imported[1].strip("()").split(","):
                words = part.split()
                if words:
                    yield words[-1]
