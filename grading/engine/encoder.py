"""Values as tagged nodes, on their way between cell and judge.

A value is tagged JSON, never pickle or marshal: plain scalars stand for themselves, everything else
is a list whose first element is its tag. :mod:`grading.engine.decoder` is the way back.

Mutable containers are numbered within one call, so that a returned argument is the same object
and a changed argument can be told. What is not data stays where it is behind a number: the two
sides give the encoder a function that turns such an object into a tagged node.

This file runs inside the cell and the judge, so it is written for Python 3.8 and imports nothing
but what the interpreter has loaded anyway. It is executed with a private copy of the builtins:
what a candidate does to ``builtins`` does not reach it.
"""

from __future__ import annotations

import sys

from grading.engine.framing import MAX_FRAME, TooLarge
from grading.engine.kinds import (
    BUILTIN_TYPES,
    LIBRARY_CONTAINERS,
    MAX_DEPTH,
    NotData,
    container_base,
    is_number_type,
    library_name,
    loaded_class,
    stdlib_name,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

SMALL_INT = 2**62

_DICT_VIEWS = {type({}.keys()): "keys", type({}.values()): "values", type({}.items()): "items"}


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
        if cls is type and value in BUILTIN_TYPES:
            return ["type", BUILTIN_TYPES[value]]
        if value is Ellipsis or value is NotImplemented:
            return ["const", "Ellipsis" if value is Ellipsis else "NotImplemented"]
        if cls is type and is_number_type(value):
            return ["nptype", value.__name__]
        name = stdlib_name(cls)
        if name:
            return self.stdlib(name, value)
        return self.opaque(self, value)

    def base_node(self, base: type, value: Any) -> Any:
        """Node of a subclass instance as its base data, through the base's own methods."""
        encoder = _ENCODERS.get(base)
        return encoder(self, value) if encoder else self.stdlib(stdlib_name(base), value)

    def library_node(self, value: Any) -> Any:
        """Node of numpy's or pandas' data as plain data; NotData for anything else."""
        name = library_name(type(value))
        if not name:
            raise NotData
        # Loaded where it is needed: most programs use neither library.
        from grading.engine import libraries

        node = libraries.NODES.get(name)
        if node is None:
            raise NotData
        known = len(self.objects)
        try:
            return node(self, value)
        except NotData:
            for value in self.objects[known:]:
                del self.numbers[id(value)]
            del self.objects[known:]
            raise

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
        base = container_base(type(value))
        if base in LIBRARY_CONTAINERS:
            from grading.engine import libraries

            return libraries.CONTENTS[base](self, value)
        _, items = _CONTENTS[base]
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
    for module in ("math", "numpy"):
        if value is getattr(sys.modules.get(module), "nan", None):
            return ["float", module + ".nan"]
    return ["float", "nan"]


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


def _deque_items(value: Any) -> Iterable[Any]:
    deque: Any = loaded_class("collections", "deque")
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
