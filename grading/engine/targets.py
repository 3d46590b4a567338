"""The source of targets and set-up code, read by the compiler itself.

Runs inside the judge; written for Python 3.8.
"""

from __future__ import annotations

import _ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DISCARD = "__discard__"


def parse(source: str, mode: str) -> Any:
    """A syntax tree by the compiler itself: the ast module costs more to import than a run."""
    return compile(source, "target", mode, 0x400, True)


def nodes_of(tree: Any) -> list[Any]:
    """All nodes of a tree but the contexts of names; parents before their children."""
    nodes = [tree]
    for node in nodes:
        for field in node._fields:
            if field == "ctx":
                continue
            value = getattr(node, field, None)
            if type(value) is list:
                nodes += [child for child in value if isinstance(child, _ast.AST)]
            elif isinstance(value, _ast.AST):
                nodes.append(value)
    return nodes


def called_names(nodes: list[Any]) -> set[str]:
    return {
        node.func.id for node in nodes if type(node) is _ast.Call and type(node.func) is _ast.Name
    }


def asserting_root(tree: Any) -> str:
    """``np`` for the expression ``np.testing.assert_array_equal(...)``; empty for others."""
    called = tree.body.func if isinstance(tree.body, _ast.Call) else None
    node, name = called, ""
    while isinstance(node, _ast.Attribute):
        name = name or node.attr
        node = node.value
    if not isinstance(node, _ast.Name):
        return ""
    return node.id if (name or node.id).startswith("assert_") else ""


def mark_discarded(tree: Any, nodes: list[Any]) -> Any:
    """Wrap each statement that is nothing but ``name(...)`` into ``with __discard__("name")``.

    ``nodes`` are those of ``tree``.
    """
    for node in nodes:
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list):
                body[:] = [wrap_discarded(statement) for statement in body]
    return tree


def wrap_discarded(node: Any) -> Any:
    call = node.value if isinstance(node, _ast.Expr) else None
    if not (isinstance(call, _ast.Call) and isinstance(call.func, _ast.Name)):
        return node
    place = {
        "lineno": node.lineno,
        "col_offset": node.col_offset,
        "end_lineno": node.end_lineno,
        "end_col_offset": node.end_col_offset,
    }
    name = _ast.Constant(value=call.func.id, kind=None, **place)
    marker = _ast.Name(id=DISCARD, ctx=_ast.Load(), **place)
    context = _ast.Call(func=marker, args=[name], keywords=[], **place)
    item = _ast.withitem(context_expr=context, optional_vars=None)
    return _ast.With(items=[item], body=[node], type_comment=None, **place)


class Target:
    """One compiled target; ``expression`` has a value, statements hold if nothing is raised."""

    def __init__(self, source: str) -> None:
        source = source.strip()
        self.problem = ""
        self.called: set[str] = set()
        self.asserting = ""
        self.expression = True
        try:
            tree = self.parsed(source)
            nodes = nodes_of(tree)
            self.called = called_names(nodes)
            if self.expression:
                self.asserting = asserting_root(tree)
            else:
                mark_discarded(tree, nodes)
            mode = "eval" if self.expression else "exec"
            self.code = compile(tree, "target", mode, 0, True)
        except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as problem:
            self.problem = "the target does not compile: " + str(problem)

    def parsed(self, source: str) -> Any:
        # No expression starts with a keyword, and finding that out takes longer than parsing.
        if not source.startswith("assert "):
            try:
                return parse(source, "eval")
            except SyntaxError:
                pass
        self.expression = False
        return parse(source, "exec")


def statements(source: str) -> list[Any]:
    """Compiled top-level statements of helper code; none if it does not compile."""
    try:
        tree = parse(source, "exec")
        bodies = [_ast.Module(body=[node], type_ignores=[]) for node in tree.body]
        return [compile(body, "helpers", "exec", 0, True) for body in bodies]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
