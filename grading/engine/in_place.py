"""In-place changes: a target must hold with a change visible and with it undone.

A call may change its argument. Left visible, a candidate could spoil the value that its own
answer is compared with (``f(xs) == sorted(xs)`` after emptying ``xs``). So a target whose calls
changed an argument is evaluated twice: once as Python has it, and once on arguments as they were,
with the recorded replies replayed as copies. Both must hold. The change ends with its target: a
later one may compare with the same object.

Where changing the argument is the task, the change is simply kept: the task says so, or the value
of the call is thrown away.

Runs inside the judge; written for Python 3.8.
"""

from __future__ import annotations

from grading.engine.decoder import Decoder
from grading.engine.kinds import library_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Diverged(BaseException):
    """The second evaluation asks for other calls than the first."""


class Exchange:
    """One request and its reply as they went over the wire; ``kept``: its changes stay."""

    def __init__(self, request: Any, reply: Any, kept: bool) -> None:
        self.request = request
        self.reply = reply
        self.kept = kept


class Tape:
    """Carries requests to the cell and remembers them for the length of one target.

    ``send(request)`` returns the raw reply. ``keep_all``: in-place change is the task.
    """

    def __init__(
        self, send: Callable[[Any], Any], resolve: Callable[[str, Any], Any], keep_all: bool
    ) -> None:
        self.send = send
        self.resolve = resolve
        self.keep_all = keep_all
        self.discarding = False
        self.begin()

    def begin(self) -> None:
        self.exchanges: list[Exchange] = []
        self.undone: dict[int, tuple[Any, Any]] = {}
        self.position: int | None = None

    @property
    def replaying(self) -> bool:
        return self.position is not None

    def exchange(self, request: Any, objects: list[Any]) -> tuple[Any, Any]:
        """(kind, value or failure) of one request whose numbered arguments are ``objects``."""
        if self.position is not None:
            return self._replay(request, objects)
        reply = self.send(request)
        kept = self.keep_all or self.discarding
        self.exchanges.append(Exchange(request, reply, kept))
        if reply[0] == "big":
            return "big", None
        decoder = Decoder(self.resolve, objects)
        value = decoder.decode(reply[1]) if reply[0] == "v" else reply[1]
        self._change(decoder, reply[2], objects, kept)
        return reply[0], value

    def _change(self, decoder: Decoder, changes: Any, objects: list[Any], kept: bool) -> None:
        for number, contents in changes:
            container = objects[number]
            if not kept:
                self.undone.setdefault(id(container), (container, _contents(container)))
            decoder.refill(container, contents)

    def _replay(self, request: Any, objects: list[Any]) -> tuple[Any, Any]:
        assert self.position is not None
        if self.position >= len(self.exchanges):
            raise Diverged
        known = self.exchanges[self.position]
        self.position += 1
        if known.request[:2] != request[:2]:
            raise Diverged
        if known.reply[0] == "big":
            return "big", None
        copies = Decoder(self.resolve)
        for node in known.request[1:]:
            copies.decode(node)
        value = copies.decode(known.reply[1]) if known.reply[0] == "v" else known.reply[1]
        for number, contents in known.reply[2]:
            copies.refill(copies.objects[number], contents)
            if known.kept:
                Decoder(self.resolve, objects).refill(objects[number], contents)
        return known.reply[0], value

    def holds(self, evaluate: Callable[[], bool]) -> bool:
        """Whether ``evaluate`` is true, and stays so with unasked changes undone."""
        self.begin()
        try:
            if not evaluate():
                self._undo()
                return False
            if not self.undone:
                return True
            self._undo()
            self.position = 0
            return evaluate()
        except Diverged:
            return False
        finally:
            self.position = None

    def _undo(self) -> None:
        for container, before in self.undone.values():
            _restore(container, before)


def _contents(container: Any) -> Any:
    if isinstance(container, dict):
        return list(container.items())
    if library_name(type(container)):
        return container.copy()
    return list(container)


def _restore(container: Any, contents: Any) -> None:
    if library_name(type(container)):
        from grading.engine import libraries

        libraries.refill(container, contents)
        return
    container.clear()
    if isinstance(container, dict):
        for key, value in contents:
            container[key] = value
    elif isinstance(container, set):
        container.update(contents)
    else:
        container.extend(contents)
