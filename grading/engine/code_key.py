"""When two programs are the same one: what the interpreter makes of them is equal."""

from __future__ import annotations

import ast
import platform
import re

from grading.engine import source

# Real programs are some hundred characters; the tree of a long one costs more than it spares.
_TREE_CHARS = 20_000
# Words of programs that may read their own text, where a comment is more than a comment.
_READS_ITSELF = re.compile(
    r"__(?:loader|spec|file)__|get_?source|inspect|linecache|traceback|pydoc|help\b|\bgc\b|ctypes"
)


def code_key(program: str, python_version: str) -> str:
    """Equal for two texts only if that interpreter compiles them to the same code; never raises.

    The syntax tree with all positions, as tracebacks name them, so that comments and blanks at the
    ends of lines do not count. Or the text itself where that may tell more: it does not parse,
    another version of Python reads it, or it may look at itself. The two start differently, for a
    text may be the description of a tree.
    """
    tree = _tree(program) if python_version == platform.python_version() else ""
    return f"tree {tree}" if tree else f"text {program}"


def _tree(program: str) -> str:
    """All of the syntax tree that code is made of, empty where the text has to count."""
    if len(program) > _TREE_CHARS or _READS_ITSELF.search(program):
        return ""
    tree = source.parse(program)
    try:
        return "" if tree is None else ast.dump(tree, include_attributes=True)
    except RecursionError:
        return ""
