"""Tagged nodes back into values, whatever a candidate may have put into them.

The other side is :mod:`grading.engine.encoder`. The two sides give the decoder a function that
knows the objects behind the numbers of what is not data.

This file runs inside the cell and the judge, so it is written for Python 3.8 and imports nothing
but what the interpreter has loaded anyway. It is executed with a private copy of the builtins:
what a candidate does to ``builtins`` does not reach it.
"""

from __future__ import annotations

import sys

from grading.engine.framing import TooLarge, WireError
from grading.engine.kinds import (
    BUILTIN_TYPES,
    CONSTANTS,
    LIBRARY_CONTAINERS,
    LIBRARY_TAGS,
    MAX_DEPTH,
    container_base,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any


class Decoder:
    """Turns nodes back into values; WireError for any node that breaks the rules.

    ``opaque(tag, node)`` gives the object for a tag that is not data. ``objects`` are the
    numbered containers known so far.
    """

    def __init__(self, opaque: Callable[[str, Any], Any], objects: Iterable[Any] = ()) -> None:
        self.opaque = opaque
        self.objects = dict(enumerate(objects))
        self.depth = 0

    def decode(self, node: Any) -> Any:
        if type(node) is not list:
            return node
        self.depth += 1
        if self.depth > MAX_DEPTH + 4:
            raise TooLarge("too deep")
        try:
            return self._decode_tagged(node)
        except (WireError, NameError):  # the program lacks a name that a target asks for
            raise
        except Exception as bad:  # whatever a node of the wrong form leads to
            raise WireError("bad value: " + type(bad).__name__) from None
        finally:
            self.depth -= 1

    def _decode_tagged(self, node: Any) -> Any:
        tag = node[0]
        if tag in LIBRARY_TAGS:
            from grading.engine import libraries

            return libraries.VALUES[tag](self, node)
        if tag in _FILLERS:
            return self._container(tag, node)
        if tag == "ref":
            return self.objects[node[1]]
        builder = _BUILDERS.get(tag)
        if builder is not None:
            return builder([self.decode(part) for part in node[1:]])
        return self.opaque(tag, node)

    def _container(self, tag: str, node: Any) -> Any:
        skip, make, fill = _FILLERS[tag]
        value = make([self.decode(part) for part in node[2:skip]])
        self.register(node[1], value)
        fill(value, [self.decode(part) for part in node[skip:]])
        return value

    def register(self, number: Any, value: Any) -> Any:
        """Number a new container; returns it."""
        if type(number) is not int or number in self.objects:
            raise WireError("number used twice")
        self.objects[number] = value
        return value

    def refill(self, value: Any, nodes: Any) -> None:
        """Put the contents ``nodes`` into an existing container."""
        base = container_base(type(value))
        if base in LIBRARY_CONTAINERS:
            from grading.engine import libraries

            libraries.refill(value, libraries.CONTAINERS[base](self, nodes))
            return
        parts = [self.decode(part) for part in nodes]
        if base is bytearray:
            value[:] = parts[0].encode("latin-1")
        else:
            value.clear()
            _FILL[base](value, parts)


def _fill_dict(value: Any, parts: list[Any]) -> None:
    for position in range(0, len(parts), 2):
        dict.__setitem__(value, parts[position], parts[position + 1])


def _fill_set(value: Any, parts: list[Any]) -> None:
    """Programs see the order of a set's items: keep it, where one of two ways of filling does.

    Python builds a set display by adding item by item, or from a frozenset made when compiling;
    the two lay their items out differently.
    """
    set.update(value, parts)
    if not all(map(lambda one, other: one is other, value, parts)):
        value.clear()
        set.update(value, frozenset(parts))


def _fill_ordered(value: Any, parts: list[Any]) -> None:
    for position in range(0, len(parts), 2):
        value[parts[position]] = parts[position + 1]


def _fill_bytearray(value: Any, parts: list[Any]) -> None:
    value.extend(parts[0].encode("latin-1"))


def _collections(name: str) -> Any:
    import collections

    return getattr(collections, name)


_FILL: dict[Any, Callable[[Any, list[Any]], None]] = {
    list: list.extend,
    set: _fill_set,
    dict: _fill_ordered,
    "deque": lambda value, parts: value.extend(parts),
}

# tag: (where the items start, make an empty one from the parts before, fill it)
_FILLERS: dict[str, tuple[int, Callable[[Any], Any], Callable[[Any, list[Any]], None]]] = {
    "list": (2, lambda _: [], list.extend),
    "set": (2, lambda _: set(), _fill_set),
    "dict": (2, lambda _: {}, _fill_dict),
    "bytearray": (2, lambda _: bytearray(), _fill_bytearray),
    "OrderedDict": (3, lambda _: _collections("OrderedDict")(), _fill_ordered),
    "Counter": (3, lambda _: _collections("Counter")(), _fill_ordered),
    "defaultdict": (3, lambda parts: _collections("defaultdict")(*parts), _fill_ordered),
    "deque": (3, lambda parts: _collections("deque")((), *parts), lambda v, p: v.extend(p)),
}


def _float_value(parts: list[Any]) -> float:
    if parts[0] in ("math.nan", "numpy.nan"):
        library = parts[0].partition(".")[0]
        __import__(library)
        nan: float = sys.modules[library].nan
        return nan
    return float(parts[0])


def _fraction(parts: list[Any]) -> Any:
    from fractions import Fraction

    return Fraction(*parts)


def _decimal(parts: list[Any]) -> Any:
    from decimal import Decimal

    return Decimal(parts[0])


def _datetime(name: str) -> Callable[[list[Any]], Any]:
    def build(parts: list[Any]) -> Any:
        import datetime

        fold = {"fold": parts.pop()} if name in ("datetime", "time") else {}
        return getattr(datetime, name)(*parts, **fold)

    return build


def _view(parts: list[Any]) -> Any:
    kind, items = parts[0], parts[1:]
    if kind == "keys":
        return dict.fromkeys(items).keys()
    if kind == "items":
        return dict(items).items()
    return dict(enumerate(items)).values()


_TYPES_BY_NAME = {name: cls for cls, name in BUILTIN_TYPES.items()}

_BUILDERS: dict[str, Callable[[list[Any]], Any]] = {
    "int": lambda parts: int(parts[0], 16),
    "float": _float_value,
    "complex": lambda parts: complex(*parts),
    "bytes": lambda parts: parts[0].encode("latin-1"),
    "tuple": tuple,
    "frozenset": frozenset,
    "range": lambda parts: range(*parts),
    "view": _view,
    "type": lambda parts: _TYPES_BY_NAME[parts[0]],
    "const": lambda parts: CONSTANTS[parts[0]],
    "Decimal": _decimal,
    "Fraction": _fraction,
    "datetime": _datetime("datetime"),
    "date": _datetime("date"),
    "time": _datetime("time"),
    "timedelta": _datetime("timedelta"),
    "timezone": _datetime("timezone"),
}
