"""What the judge holds for objects that stay in the cell.

A stand-in has attributes and methods by wire and compares equal to other stand-ins only, which
the cell decides (and the target is labelled for it). It never equals a plain value and has no
arithmetic, order, truth value or length, so an operand written in a target is never sent.

Runs inside the judge; written for Python 3.8.
"""

from __future__ import annotations

from grading.engine import framing, kinds
from grading.engine.decoder import Decoder
from grading.engine.encoder import Encoder
from grading.engine.in_place import Tape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_builtins = dict(__builtins__ if isinstance(__builtins__, dict) else vars(__builtins__))
_put = object.__setattr__
# numpy reads these of any object, and takes the addresses in them for its own memory.
_MEMORY = ("__array_interface__", "__array_struct__")


class Remote:
    """An object of the program. ``node`` names it on the wire."""

    def __init__(self, peer: Peer, node: Any) -> None:
        _put(self, "_peer", peer)
        _put(self, "_node", node)

    _peer: Peer
    _node: Any

    def __getattr__(self, name: str) -> Any:
        if name in _MEMORY:
            raise AttributeError(name)
        return self._peer.ask("get", self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._peer.ask("set", self, name, value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Remote):
            return False
        self._peer.in_process = True
        return self._peer.ask("equal", self, other) is True

    def __hash__(self) -> int:
        return hash(str(self._node))

    def __bool__(self) -> bool:
        raise TypeError("an object of the program has no truth value outside it")

    def __str__(self) -> str:
        return str(self._peer.ask("text", self, "str"))

    def __repr__(self) -> str:
        return str(self._peer.ask("text", self, "repr"))

    def __copy__(self) -> Remote:
        return self

    def __deepcopy__(self, memo: Any) -> Remote:
        return self


class RemoteIterable(Remote):
    def __iter__(self) -> Iterator[Any]:
        return iter(self._peer.ask("iter", self))


class RemoteTrue(Remote):
    """Of a library's class, all of whose objects are true."""

    def __bool__(self) -> bool:
        return True


class RemoteFunction(Remote):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._peer.ask("call", self, args, kwargs)

    def __bool__(self) -> bool:
        return True


class RemoteClass(RemoteFunction):
    def __instancecheck__(self, instance: Any) -> bool:
        if not isinstance(instance, (Remote, DataWithClass)):
            return False
        self._peer.in_process = True
        return self._peer.ask("instance", instance, self) is True


class RemoteIterator(Remote):
    """Fetches items in growing batches, MAX_ITEMS at most."""

    def __init__(self, peer: Peer, node: Any) -> None:
        super().__init__(peer, node)
        _put(self, "_items", items_of(self))

    _items: Iterator[Any]

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._items)


def items_of(iterator: Remote) -> Iterator[Any]:
    count, total = 1, 0
    while True:
        items, ended = iterator._peer.ask("next", iterator, count)
        yield from items
        if ended:
            return
        total += len(items)
        if total >= kinds.MAX_ITEMS:
            raise framing.TooLarge("more than 10,000 items")
        count = min(2 * count, 256)


async def awaited(remote: Remote) -> Any:
    return remote._peer.ask("await", remote)


class DataWithClass:
    """Mixed into data whose class the program derived: other methods go by wire."""

    _remote: Remote

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_remote"], name)


class EnumMember:
    """A member of an enum of the program; one object per member."""

    def __init__(self, node: Any, name: str, value: Any) -> None:
        self._node = node
        self.name = name
        self.value = value

    def __repr__(self) -> str:
        return "<" + self.name + ">"


class IntMember(int, EnumMember):
    __repr__ = EnumMember.__repr__

    def __init__(self, node: Any, name: str, value: Any, plain: int) -> None:
        EnumMember.__init__(self, node, name, value)

    def __new__(cls, node: Any, name: str, value: Any, plain: int) -> IntMember:
        return int.__new__(cls, plain)


class TextMember(str, EnumMember):
    __repr__ = EnumMember.__repr__

    def __init__(self, node: Any, name: str, value: Any, plain: str) -> None:
        EnumMember.__init__(self, node, name, value)

    def __new__(cls, node: Any, name: str, value: Any, plain: str) -> TextMember:
        return str.__new__(cls, plain)


class Peer:
    """Asks the cell, and keeps one stand-in per object of the program.

    ``send(request)`` returns the raw reply. ``keep_all``: see :mod:`in_place`. ``may_stop``:
    the targets expect StopIteration; else it comes as a RuntimeError, as out of a generator,
    or ``all(map(f, xs))`` would hold for an ``f`` that only raises it.
    """

    def __init__(self, send: Callable[[Any], Any], keep_all: bool, may_stop: bool = False) -> None:
        self.tape = Tape(send, self.resolve, keep_all)
        self.remotes: dict[int, Any] = {}
        self.members: dict[tuple[int, str], Any] = {}
        self.tuples: dict[int, Any] = {}
        self.functions: list[Any] = []
        self.may_stop = may_stop
        self.asked = 0
        self.in_process = False
        self.last: Any = None

    def ask(self, operation: str, *arguments: Any) -> Any:
        """The value that an operation in the cell gives; raises what it raised there."""
        encoder = Encoder(self.opaque)
        request = [operation, *map(encoder.encode, arguments)]
        self.asked += 1
        kind, value = self.tape.exchange(request, encoder.objects)
        if kind == "big":
            raise framing.TooLarge("the returned value is too large")
        if kind == "x":
            raise self.exception(value)
        if operation == "call":
            self.last = value
        return value

    # --- out ---------------------------------------------------------------------------------

    def opaque(self, encoder: Encoder, value: Any) -> Any:
        """The node for what is not plain data on this side."""
        node = self.known_node(encoder, value)
        if node is not None:
            return node
        try:
            return encoder.library_node(value)
        except kinds.NotData:
            base = kinds.data_base(type(value))
        if base is not None:
            return encoder.base_node(base, value)
        if hasattr(type(value), "__next__"):
            return ["steps", self.function(lambda: step(value), value)]
        if callable(value):
            return ["callback", self.function(value, value)]
        raise TypeError("a " + type(value).__name__ + " cannot be passed to the program")

    def known_node(self, encoder: Encoder, value: Any) -> Any:
        """The node of something that came from the cell, or None."""
        if isinstance(value, (Remote, EnumMember)):
            return value._node
        if isinstance(value, DataWithClass):
            return value._remote._node
        node = getattr(type(value), "_evalsite_class", None)
        if node is not None:
            return ["tuple_of", node, *map(encoder.encode, value)]
        if isinstance(value, type):
            return value.__dict__.get("_evalsite_node")
        return None

    def function(self, function: Any, identity: Any) -> int:
        for number, (_, known) in enumerate(self.functions):
            if known is identity:
                return number
        self.functions.append((function, identity))
        return len(self.functions) - 1

    # --- in ------------------------------------------------------------------------------------

    def resolve(self, tag: str, node: Any) -> Any:
        """The object of this side for a node that is not plain data."""
        if tag in ("handle", "program"):
            return Remote(self, node)
        if tag in ("callback", "steps"):
            return self.functions[node[1]][0]
        if tag == "namedtuple":
            return self.named_tuple(node)
        if tag == "tuple_of":
            return tuple.__new__(self.tuples[node[1]], self.decode_parts(node[2:]))
        if tag == "enum":
            return self.enum_member(node)
        if tag == "member":
            return self.members[node[1], node[2]]
        if tag == "sub":
            return self.data_subclass(node)
        maker = MAKERS.get(tag)
        if maker is None or type(node[1]) is not int:
            raise framing.WireError("unknown tag")
        if tag in ONE_PASS and self.tape.replaying:
            return maker(self, node)
        if node[1] not in self.remotes:
            self.remotes[node[1]] = maker(self, node)
        return self.remotes[node[1]]

    def decode_parts(self, nodes: Any) -> list[Any]:
        decoder = Decoder(self.resolve)
        return [decoder.decode(node) for node in nodes]

    def named_tuple(self, node: Any) -> Any:
        _, number, name, fields, *items = node
        if number not in self.tuples:
            self.tuples[number] = named_tuple_class(number, name, fields)
        return tuple.__new__(self.tuples[number], self.decode_parts(items))

    def enum_member(self, node: Any) -> Any:
        _, number, _, name, *content = node
        if (number, name) not in self.members:
            value, plain = self.decode_parts(content)
            short = ["member", number, name]
            member: Any = EnumMember(short, name, value)
            if type(plain) is int:
                member = IntMember(short, name, value, plain)
            elif type(plain) is str:
                member = TextMember(short, name, value, plain)
            self.members[number, name] = member
        return self.members[number, name]

    def data_subclass(self, node: Any) -> Any:
        base = self.decode_parts([node[3]])[0]
        cls = type(base)
        if cls in (bool, type(None)) or isinstance(base, (Remote, DataWithClass)):
            return base
        derived = type(identifier(node[2]), (DataWithClass, cls), {})
        value: Any = derived.__new__(derived, base) if cls in IMMUTABLE else derived(base)
        value.__dict__["_remote"] = Remote(self, ["handle", node[1]])
        return value

    def exception_class(self, number: int, name: str, base: str) -> Any:
        if number not in self.remotes:
            parent = _builtins.get(base)
            if not isinstance(parent, type) or not issubclass(parent, BaseException):
                parent = Exception
            content = {"_evalsite_node": ["handle", number]}
            self.remotes[number] = type(identifier(name), (parent,), content)
        return self.remotes[number]

    def exception(self, failure: Any) -> BaseException:
        """The exception that stands for one raised in the cell."""
        name, base, number = failure["exception"], failure["base"], failure["class"]
        cls = _builtins.get(name) if number is None else self.exception_class(number, name, base)
        if not isinstance(cls, type) or not issubclass(cls, BaseException):
            cls = RuntimeError
        try:
            raised = cls(*self.decode_parts(failure["args"]))
        except Exception:
            raised = RuntimeError(failure["message"])
        if isinstance(raised, (StopIteration, StopAsyncIteration)) and not self.may_stop:
            raised = RuntimeError("the program raised " + name)
        raised._evalsite_failure = framing.reported(failure)  # type: ignore[attr-defined]
        return raised


def step(iterator: Iterator[Any]) -> tuple[Any, ...]:
    for item in iterator:
        return (item,)
    return ()


def identifier(name: Any) -> str:
    return name if type(name) is str and name.isidentifier() else "Unnamed"


def named_tuple_class(number: Any, name: Any, fields: Any) -> Any:
    import collections

    make: Any = collections.namedtuple
    cls = make(identifier(name), fields)
    cls._evalsite_class = number
    return cls


def _class(peer: Peer, node: Any) -> Any:
    if node[3]:
        return peer.exception_class(node[1], node[2], node[3])
    return RemoteClass(peer, ["handle", node[1]])


def _object(peer: Peer, node: Any) -> Any:
    kind = RemoteTrue if node[4] is True else Remote
    if node[3] is True:
        kind = RemoteIterable
    return kind(peer, ["handle", node[1]])


# Used up by the first evaluation of a target; a replay needs another one.
ONE_PASS = ("iterator", "generator", "coroutine")

IMMUTABLE = (int, float, complex, str, bytes, tuple, frozenset)

MAKERS: dict[str, Callable[[Peer, Any], Any]] = {
    "object": _object,
    "class": _class,
    "function": lambda peer, node: RemoteFunction(peer, ["handle", node[1]]),
    "iterator": lambda peer, node: RemoteIterator(peer, ["handle", node[1]]),
    "generator": lambda peer, node: items_of(Remote(peer, ["handle", node[1]])),
    "coroutine": lambda peer, node: awaited(Remote(peer, ["handle", node[1]])),
}
