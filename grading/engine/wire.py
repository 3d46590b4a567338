"""Values as they travel between cell and judge.

A value is tagged JSON, never pickle or marshal: plain scalars stand for themselves, everything else
is a list whose first element is its tag.

Mutable containers are numbered within one call, so that a returned argument is the same object
and a changed argument can be told. What is not data stays where it is behind a number: the two
sides give this module a function that turns such an object into a tagged node and one that does
the reverse.

This file runs inside the cell and the judge, so it is written for Python 3.8 and imports nothing
but what the interpreter has loaded anyway. It is executed with a private copy of the builtins:
what a candidate does to ``builtins`` does not reach it.
"""

from __future__ import annotations

import sys

from grading.engine.framing import MAX_FRAME, TooLarge, WireError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

MAX_DEPTH = 60
MAX_ITEMS = 10_000
SMALL_INT = 2**62


# --- reading types without running a candidate's code -------------------------------------------

_mro_of: Any = type.__dict__["__mro__"].__get__
_name_of = type.__dict__["__name__"].__get__

_STDLIB = {
    "decimal": ("Decimal",),
    "fractions": ("Fraction",),
    "datetime": ("datetime", "date", "time", "timedelta", "timezone"),
    "collections": ("OrderedDict", "defaultdict", "Counter", "deque"),
}

_DICT_VIEWS = {type({}.keys()): "keys", type({}.values()): "values", type({}.items()): "items"}

_PLAIN = (int, float, complex, str, bytes, bytearray, list, tuple, set, frozenset, dict)

_BUILTIN_TYPES = {cls: cls.__name__ for cls in (bool, object, type, range, type(None), *_PLAIN)}


def class_name(cls: type) -> str:
    return _name_of(cls)[:200]


def stdlib_class(module: str, name: str) -> type | None:
    """The class of that name where its module is loaded already."""
    found = sys.modules.get(module)
    cls = getattr(found, name, None)
    return cls if isinstance(cls, type) else None


def _stdlib_name(cls: type) -> str:
    for module, names in _STDLIB.items():
        if module in sys.modules:
            for name in names:
                if stdlib_class(module, name) is cls:
                    return name
    return ""


def data_base(cls: type) -> type | None:
    """The data type that ``cls`` is derived from, if any."""
    for base in _mro_of(cls):
        if base in _ENCODERS or _stdlib_name(base):
            return base
    return None


# --- values out -------------------------------------------------------------------------------


class Encoder:
    """Turns values into tagged nodes within one call.

    ``opaque(encoder, value)`` gives the node for what is not data. ``objects`` are the numbered
    containers in order; a second encoder of the same call starts from those of the first.
    """

    def __init__(self, opaque: Callable[[Encoder, Any], Any], objects: Iterable[Any] = ()) -> None:
        self.opaque = opaque
        self.objects = list(objects)
        self.numbers = {id(value): n for n, value in enumerate(self.objects)}
        self.depth = 0
        self.size = 0

    def encode(self, value: Any) -> Any:
        """The node of ``value``; TooLarge beyond the caps."""
        cls = type(value)
        if cls is str:
            self.spend(len(value))
            return value
        if value is None or cls is bool:
            self.spend(5)
            return value
        if cls is int and -SMALL_INT < value < SMALL_INT:
            self.spend(8)
            return value
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise TooLarge("too deep")
        self.spend(8)
        try:
            return self._encode_other(cls, value)
        finally:
            self.depth -= 1

    def spend(self, size: int) -> None:
        self.size += size
        if self.size > MAX_FRAME:
            raise TooLarge("too large")

    def _encode_other(self, cls: type, value: Any) -> Any:
        encoder = _ENCODERS.get(cls)
        if encoder is not None:
            return encoder(self, value)
        if cls in _DICT_VIEWS:
            return ["view", _DICT_VIEWS[cls], *map(self.encode, value)]
        if cls is type and value in _BUILTIN_TYPES:
            return ["type", _BUILTIN_TYPES[value]]
        if value is Ellipsis or value is NotImplemented:
            return ["const", "Ellipsis" if value is Ellipsis else "NotImplemented"]
        name = _stdlib_name(cls)
        if name:
            return self.stdlib(name, value)
        return self.opaque(self, value)

    def base_node(self, base: type, value: Any) -> Any:
        """Node of a subclass instance as its base data, through the base's own methods."""
        encoder = _ENCODERS.get(base)
        return encoder(self, value) if encoder else self.stdlib(_stdlib_name(base), value)

    def number(self, value: Any) -> tuple[bool, int]:
        """(seen before, number) of a mutable container."""
        known = self.numbers.get(id(value))
        if known is not None:
            return True, known
        self.objects.append(value)
        self.numbers[id(value)] = len(self.objects) - 1
        return False, len(self.objects) - 1

    def mutable(self, tag: str, value: Any, items: Callable[[Any], Iterable[Any]]) -> Any:
        seen, number = self.number(value)
        if seen:
            return ["ref", number]
        return [tag, number, *map(self.encode, items(value))]

    def contents(self, value: Any) -> Any:
        """What a numbered container holds now; nested numbered ones as references."""
        _, items = _CONTENTS[_container_base(type(value))]
        return [self.encode(item) for item in items(value)]

    def stdlib(self, name: str, value: Any) -> Any:
        return _STDLIB_ENCODERS[name](self, value)


def _flat(pairs: Iterable[tuple[Any, Any]]) -> Iterator[Any]:
    for key, item in pairs:
        yield key
        yield item


def _dict_items(value: Any) -> Iterator[Any]:
    return _flat(list(dict.items(value)))


def _int_node(encoder: Encoder, value: Any) -> Any:
    plain = int.__pos__(value)
    if -SMALL_INT < plain < SMALL_INT:
        return plain
    text = hex(plain)
    encoder.spend(len(text))
    return ["int", text]


def _float_node(encoder: Encoder, value: Any) -> Any:
    plain = float.__pos__(value)
    if plain - plain == 0.0:
        return plain
    if plain == plain:
        return ["float", "inf" if plain > 0 else "-inf"]
    math = sys.modules.get("math")
    return ["float", "math.nan" if math and value is getattr(math, "nan", None) else "nan"]


def _complex_node(encoder: Encoder, value: Any) -> Any:
    plain = complex.__pos__(value)
    return ["complex", _float_node(encoder, plain.real), _float_node(encoder, plain.imag)]


def _text_node(encoder: Encoder, value: Any) -> Any:
    plain = str.__str__(value)
    encoder.spend(len(plain))
    return plain


def _bytes_node(encoder: Encoder, value: Any) -> Any:
    plain = bytes.__getitem__(value, slice(None))
    encoder.spend(len(plain))
    return ["bytes", plain.decode("latin-1")]


def _bytearray_items(value: Any) -> Iterable[Any]:
    return (bytes(value).decode("latin-1"),)


_CONTENTS: dict[Any, tuple[str, Callable[[Any], Iterable[Any]]]] = {
    list: ("list", list.__iter__),
    dict: ("dict", _dict_items),
    set: ("set", set.__iter__),
    bytearray: ("bytearray", _bytearray_items),
}


def _container_base(cls: type) -> Any:
    for base in _mro_of(cls):
        if base in _CONTENTS:
            return base
        if stdlib_class("collections", "deque") is base:
            return "deque"
    raise WireError("not a container")


def _deque_items(value: Any) -> Iterable[Any]:
    deque: Any = stdlib_class("collections", "deque")
    return list(deque.__iter__(value))


_CONTENTS["deque"] = ("deque", _deque_items)


def _container_encoder(base: type) -> Callable[[Encoder, Any], Any]:
    tag, items = _CONTENTS[base]
    return lambda encoder, value: encoder.mutable(tag, value, items)


_ENCODERS: dict[type, Callable[[Encoder, Any], Any]] = {
    bool: lambda encoder, value: value,
    int: _int_node,
    float: _float_node,
    complex: _complex_node,
    str: _text_node,
    bytes: _bytes_node,
    tuple: lambda encoder, value: ["tuple", *map(encoder.encode, tuple.__iter__(value))],
    frozenset: lambda encoder, value: [
        "frozenset",
        *map(encoder.encode, frozenset.__iter__(value)),
    ],
    range: lambda encoder, value: ["range", *map(encoder.encode, _range_parts(value))],
    list: _container_encoder(list),
    dict: _container_encoder(dict),
    set: _container_encoder(set),
    bytearray: _container_encoder(bytearray),
}


def _range_parts(value: Any) -> tuple[int, int, int]:
    return value.start, value.stop, value.step


def _fields(tag: str, *names: str) -> Callable[[Encoder, Any], Any]:
    return lambda encoder, value: [tag, *(encoder.encode(getattr(value, name)) for name in names)]


def _dict_like(tag: str) -> Callable[[Encoder, Any], Any]:
    def node(encoder: Encoder, value: Any) -> Any:
        seen, number = encoder.number(value)
        if seen:
            return ["ref", number]
        # OrderedDict keeps an order of its own that dict.items does not follow.
        pairs = list(value.items())
        factory = encoder.encode(getattr(value, "default_factory", None))
        return [tag, number, factory, *map(encoder.encode, _flat(pairs))]

    return node


def _deque_node(encoder: Encoder, value: Any) -> Any:
    seen, number = encoder.number(value)
    if seen:
        return ["ref", number]
    return ["deque", number, value.maxlen, *map(encoder.encode, _deque_items(value))]


_STDLIB_ENCODERS: dict[str, Callable[[Encoder, Any], Any]] = {
    "Decimal": lambda encoder, value: ["Decimal", str(value)],
    "Fraction": _fields("Fraction", "numerator", "denominator"),
    "datetime": _fields(
        "datetime",
        *("year", "month", "day", "hour", "minute", "second", "microsecond", "tzinfo", "fold"),
    ),
    "date": _fields("date", "year", "month", "day"),
    "time": _fields("time", "hour", "minute", "second", "microsecond", "tzinfo", "fold"),
    "timedelta": _fields("timedelta", "days", "seconds", "microseconds"),
    "timezone": lambda encoder, value: ["timezone", encoder.encode(value.utcoffset(None))],
    "OrderedDict": _dict_like("OrderedDict"),
    "defaultdict": _dict_like("defaultdict"),
    "Counter": _dict_like("Counter"),
    "deque": _deque_node,
}


# --- values in --------------------------------------------------------------------------------


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
        except WireError:
            raise
        except Exception as bad:  # whatever a node of the wrong form leads to
            raise WireError("bad value: " + type(bad).__name__) from None
        finally:
            self.depth -= 1

    def _decode_tagged(self, node: Any) -> Any:
        tag = node[0]
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
        if type(node[1]) is not int or node[1] in self.objects:
            raise WireError("number used twice")
        self.objects[node[1]] = value
        fill(value, [self.decode(part) for part in node[skip:]])
        return value

    def refill(self, value: Any, nodes: Any) -> None:
        """Put the contents ``nodes`` into an existing container."""
        base = _container_base(type(value))
        parts = [self.decode(part) for part in nodes]
        if base is bytearray:
            value[:] = parts[0].encode("latin-1")
        else:
            value.clear()
            _FILL[base](value, parts)


def _fill_dict(value: Any, parts: list[Any]) -> None:
    for position in range(0, len(parts), 2):
        dict.__setitem__(value, parts[position], parts[position + 1])


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
    set: set.update,
    dict: _fill_ordered,
    "deque": lambda value, parts: value.extend(parts),
}

# tag: (where the items start, make an empty one from the parts before, fill it)
_FILLERS: dict[str, tuple[int, Callable[[Any], Any], Callable[[Any, list[Any]], None]]] = {
    "list": (2, lambda _: [], list.extend),
    "set": (2, lambda _: set(), set.update),
    "dict": (2, lambda _: {}, _fill_dict),
    "bytearray": (2, lambda _: bytearray(), _fill_bytearray),
    "OrderedDict": (3, lambda _: _collections("OrderedDict")(), _fill_ordered),
    "Counter": (3, lambda _: _collections("Counter")(), _fill_ordered),
    "defaultdict": (3, lambda parts: _collections("defaultdict")(*parts), _fill_ordered),
    "deque": (3, lambda parts: _collections("deque")((), *parts), lambda v, p: v.extend(p)),
}


def _float_value(parts: list[Any]) -> float:
    if parts[0] == "math.nan":
        import math

        return math.nan
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


_TYPES_BY_NAME = {name: cls for cls, name in _BUILTIN_TYPES.items()}
_CONSTANTS = {"Ellipsis": Ellipsis, "NotImplemented": NotImplemented}

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
    "const": lambda parts: _CONSTANTS[parts[0]],
    "Decimal": _decimal,
    "Fraction": _fraction,
    "datetime": _datetime("datetime"),
    "date": _datetime("date"),
    "time": _datetime("time"),
    "timedelta": _datetime("timedelta"),
    "timezone": _datetime("timezone"),
}
