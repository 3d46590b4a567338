"""What the judge holds for objects that stay in the cell.

A stand-in has attributes, methods, items and length by wire and compares equal to other stand-ins
only, which the cell decides (and the target is labelled for it). It never equals a plain value and
has no arithmetic, order or truth value of its own, so what it is compared with is never sent.

Runs inside the judge; written for Python 3.8.
"""

from __future__ import annotations

from grading.engine import framing, kinds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from grading.engine.remote import Peer

_put = object.__setattr__
# numpy reads these of any object, and takes the addresses in them for its own memory.
_MEMORY = ("__array_interface__", "__array_struct__")


class Remote:
    """An object of the program. ``node`` names it on the wire."""

    def __init__(self, peer: Peer, node: Any) -> None:
        _put(self, "_peer", peer)
        _put(self, "_node", node)
        _put(self, "_made", False)

    _peer: Peer
    _node: Any
    _made: bool

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


def _iterate(self: Any) -> Iterator[Any]:
    return iter(self._peer.ask("iter", self))


def _length(self: Any) -> Any:
    return self._peer.ask("length", self)


def _item(self: Any, key: Any) -> Any:
    return self._peer.ask("item", self, key)


def _put_item(self: Any, key: Any, item: Any) -> None:
    self._peer.ask("put_item", self, key, item)


def _delete_item(self: Any, key: Any) -> None:
    self._peer.ask("delete_item", self, key)


def _contains(self: Any, item: Any) -> bool:
    """The object's own word counts only where the target itself made it of a program's class."""
    if not self._made:
        return any(item is found or item == found for found in self)
    self._peer.in_process = True
    return self._peer.ask("contains", self, item) is True


def _enter(self: Any) -> Any:
    return self._peer.ask("enter", self)


def _exit(self: Any, kind: Any, problem: Any, trace: Any) -> bool:
    """Never swallows the exception: it may be what makes the target false."""
    told = ("", "") if problem is None else (kind.__name__, str(problem)[:200])
    self._peer.ask("exit", self, *told)
    return False


def _true(self: Any) -> bool:
    return True


ABILITIES: dict[str, dict[str, Any]] = {
    "__iter__": {"__iter__": _iterate},
    "__len__": {"__len__": _length},
    "__getitem__": {"__getitem__": _item},
    "__setitem__": {"__setitem__": _put_item},
    "__delitem__": {"__delitem__": _delete_item},
    "__contains__": {"__contains__": _contains},
    "__enter__": {"__enter__": _enter, "__exit__": _exit},
}


def stand_in_class(abilities: Any, true: bool, library: type | None) -> type[Remote]:
    """The class of stand-ins that can do this; they say they are of class ``library``."""
    content: dict[str, Any] = {}
    for name in abilities:
        content.update(ABILITIES[name])
    if true:
        content["__bool__"] = _true
    if library is not None:
        content["__class__"] = property(lambda self: self._peer.vouched(library))
    return type("Remote", (Remote,), content)


class RemoteFunction(Remote):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._peer.ask("call", self, args, kwargs)

    def __bool__(self) -> bool:
        return True


class RemoteClass(RemoteFunction):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        made = super().__call__(*args, **kwargs)
        if isinstance(made, Remote):
            _put(made, "_made", True)
        return made

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
