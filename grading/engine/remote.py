"""The judge's end of the wire to the cell.

Runs inside the judge; written for Python 3.8.
"""

from __future__ import annotations

from grading.engine import framing, kinds
from grading.engine.decoder import Decoder
from grading.engine.encoder import Encoder
from grading.engine.in_place import Tape
from grading.engine.stand_ins import (
    DataWithClass,
    EnumMember,
    IntMember,
    Remote,
    RemoteClass,
    RemoteFunction,
    RemoteIterator,
    TextMember,
    awaited,
    items_of,
    stand_in_class,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_builtins = dict(__builtins__ if isinstance(__builtins__, dict) else vars(__builtins__))


class Peer:
    """Asks the cell, and keeps one stand-in per object of the program.

    ``send(request)`` returns the raw reply. ``keep_all``: see :mod:`in_place`. ``sources``
    is the text of targets and set-up. Where it does not name StopIteration, that comes as a
    RuntimeError, as out of a generator, or ``all(map(f, xs))`` would hold for an ``f`` that only
    raises it; and a library's class counts only where it names that: unittest has an exception
    for its own use that ends a test as if it had passed.
    """

    def __init__(self, send: Callable[[Any], Any], keep_all: bool, sources: str = "") -> None:
        self.tape = Tape(send, self.resolve, keep_all)
        self.remotes: dict[int, Any] = {}
        self.members: dict[tuple[int, str], Any] = {}
        self.tuples: dict[int, Any] = {}
        self.functions: list[Any] = []
        self.may_stop = "Iteration" in sources
        self.sources = sources
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
        if kinds.library_name(cls):
            raise framing.WireError("arrives without its class")
        derived = type(identifier(node[2]), (DataWithClass, cls), {})
        value: Any = derived.__new__(derived, base) if cls in IMMUTABLE else derived(base)
        value.__dict__["_remote"] = Remote(self, ["handle", node[1]])
        return value

    def vouched(self, library: type) -> type:
        """A class that only the cell says its object is of."""
        self.in_process = True
        return library

    def library_class(self, origin: Any) -> type | None:
        """The class under [module, name] where the judge has loaded it and the sources name it.

        Naming one of its bases does as well. None for classes of data: their values travel, and
        pandas, for one, takes the parts of what says that it is a frame for those of a frame.
        """
        if type(origin) is not list or [type(part) for part in origin] != [str, str]:
            return None
        cls = kinds.class_at(*origin)
        if not isinstance(cls, type) or kinds.library_name(cls) or kinds.data_base(cls):
            return None
        known = [base for base in kinds.mro_of(cls) if base not in _builtins.values()]
        return cls if any(base.__name__ in self.sources for base in known) else None

    def exception_class(self, number: int, name: str, base: str, origin: Any) -> Any:
        """A library's class where the judge has it too, else one made here."""
        if number not in self.remotes:
            library = self.library_class(origin)
            parent = library or _builtins.get(base)
            if not isinstance(parent, type) or not issubclass(parent, BaseException):
                parent = Exception
            if parent is not library or library.__name__ != name:
                content = {"_evalsite_node": ["handle", number]}
                parent = type(identifier(name), (parent,), content)
            self.remotes[number] = parent
        return self.remotes[number]

    def exception(self, failure: Any) -> BaseException:
        """The exception that stands for one raised in the cell."""
        name, number = failure["exception"], failure["class"]
        cls = _builtins.get(name)
        if number is not None:
            cls = self.exception_class(number, name, failure["base"], failure["origin"])
        if not isinstance(cls, type) or not issubclass(cls, BaseException):
            cls = RuntimeError
        try:
            raised = new_exception(cls, self.decode_parts(failure["args"]))
        except Exception:
            raised = RuntimeError(failure["message"])
        if isinstance(raised, (StopIteration, StopAsyncIteration)) and not self.may_stop:
            raised = RuntimeError("the program raised " + name)
        raised._evalsite_failure = framing.reported(failure)  # type: ignore[attr-defined]
        return raised


def new_exception(cls: Any, args: list[Any]) -> BaseException:
    """A library's own ``__init__`` wants other arguments than those that an exception keeps."""
    in_python = type(cls.__init__) is not type(BaseException.__init__)
    raised: BaseException = cls.__new__(cls, *args) if in_python else cls(*args)
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
        return peer.exception_class(*node[1:])
    return RemoteClass(peer, ["handle", node[1]])


def _object(peer: Peer, node: Any) -> Any:
    _, number, abilities, true, origin = node
    kind = stand_in_class(abilities, true is True, peer.library_class(origin))
    return kind(peer, ["handle", number])


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
