"""What the cell tells of the class of an object that stays in it.

A program may pass off its own class as a library's. All it gains is that ``isinstance`` holds for
it in the judge, and the target is labelled for that.

This file runs inside the cell with a private copy of the builtins; written for Python 3.8.
"""

from __future__ import annotations

from grading.engine import kinds
from grading.engine.kinds import mro_of
from grading.engine.loading import FILE_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MODULE_NAME = "program"
# What a stand-in can do besides attributes and calls, where the class can.
ABILITIES = (
    *("__iter__", "__len__", "__getitem__", "__setitem__", "__delitem__"),
    *("__contains__", "__enter__"),
)

_dict_of: Any = type.__dict__["__dict__"].__get__
_builtins = dict(__builtins__ if isinstance(__builtins__, dict) else vars(__builtins__))
_COMPARISONS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__bool__")


def compares_itself(cls: type) -> bool:
    """Whether the program's own text says how instances compare, or when they are true."""
    for base in mro_of(cls):
        content = _dict_of(base)
        for name in _COMPARISONS:
            function = content.get(name)
            if type(function) is _FUNCTION and function.__code__.co_filename == FILE_NAME:
                return True
    return False


_FUNCTION = type(compares_itself)


def abilities(cls: type) -> list[str]:
    return [name for name in ABILITIES if hasattr(cls, name)]


def origin(cls: type) -> list[str] | None:
    """[module, qualified name] of the nearest class in its ancestry that a library defines."""
    for base in mro_of(cls):
        module, name = _dict_of(base).get("__module__"), getattr(base, "__qualname__", None)
        if type(module) is not str or type(name) is not str or is_builtin(base):
            continue
        if module != MODULE_NAME and kinds.class_at(module, name) is base:
            return [module, name]
    return None


def is_always_true(cls: type) -> bool:
    """Whether it is a library's class whose instances have neither truth nor length: re.Match."""
    if any({"__bool__", "__len__"} & set(_dict_of(base)) for base in mro_of(cls)):
        return False
    return origin(cls) == [_dict_of(cls).get("__module__"), getattr(cls, "__qualname__", None)]


def exception_base(cls: type) -> str:
    """Name of the nearest builtin exception class, or an empty string."""
    if BaseException not in mro_of(cls):
        return ""
    return next(kinds.class_name(base) for base in mro_of(cls) if is_builtin(base))


def is_builtin(cls: type) -> bool:
    return _builtins.get(kinds.class_name(cls)) is cls
