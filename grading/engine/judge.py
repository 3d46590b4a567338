"""The judge: trusted code on untrusted data, in a sandbox of its own.

It evaluates the targets. Names that the program defines are stand-ins whose calls go to the cell
and come back as plain values; so whatever a candidate does to comparison, truth or builtins stays
on its side. Which name means what, in this order:

1. the task's entry points: the program's
2. names bound by set-up code and the prompt's helpers, which run here
3. names the targets call directly and the program defines (a builtin's name only if it is an
   entry point)
4. builtins
5. standard library modules
6. other names of the program

Frames from the host: ``T`` task, ``R`` reply, ``C`` callback. Frames to the host: ``U`` up,
``Q`` request, ``A`` answer to a callback, ``T`` one target's result, ``E`` end.
Runs inside the sandbox; written for Python 3.8.
"""

from __future__ import annotations

import posix
import sys

from grading.engine import framing, inside
from grading.engine.encoder import Encoder
from grading.engine.in_place import Diverged
from grading.engine.remote import Peer
from grading.engine.stand_ins import DataWithClass, Remote, RemoteFunction
from grading.engine.targets import DISCARD, Target, mark_discarded, nodes_of, parse, statements

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

NO_ID = b"\0" * 8
CELL_TRICKS = ("own comparison", "patched builtins")
SHOWN_BYTES = 20_000
DETAIL_LENGTH = 400

_builtins: dict[str, Any] = dict(sys.modules["builtins"].__dict__)
_import = sys.modules["builtins"].__import__


def seeding_import(name: str, *args: Any, **kwargs: Any) -> Any:
    """Import; the random module starts from a fixed seed."""
    fresh = name == "random" and "random" not in sys.modules
    module = _import(name, *args, **kwargs)
    if fresh:
        sys.modules["random"].seed(0)
    return module


_builtins["__import__"] = seeding_import


def stdlib_names() -> frozenset[str]:
    """Top-level modules of the standard library; Python 3.9 and older keep no list of them."""
    if hasattr(sys, "stdlib_module_names"):
        return sys.stdlib_module_names
    found = set(sys.builtin_module_names)
    for folder in sys.path:
        if folder.startswith(sys.base_prefix) and not folder.endswith(("-packages", ".zip")):
            found.update(name.partition(".")[0] for name in posix.listdir(folder))
    return frozenset(found)


class Namespace(dict):
    """The globals of set-up code and targets; decides what each name means."""

    def __init__(self, peer: Peer, task: Any) -> None:
        super().__init__(__builtins__=_builtins)
        self.peer = peer
        self.entry = frozenset(task["entry_points"])
        self.program_names = dict(task["names"])
        self.called: frozenset[str] = frozenset()
        self.stdlib = stdlib_names()

    def __getitem__(self, name: str) -> Any:
        if name in self.entry:
            return self.of_program(name)
        return dict.__getitem__(self, name)

    def __missing__(self, name: str) -> Any:
        known = name in self.program_names
        if known and name in self.called and name not in _builtins:
            return self.of_program(name)
        if name in _builtins:
            raise KeyError(name)
        if name in self.stdlib:
            seeding_import(name)
            return sys.modules[name]
        try:
            return self.of_program(name)
        except NameError:
            raise KeyError(name) from None

    def of_program(self, name: str) -> Any:
        """A stand-in for a function of the program, or the value a name has there now."""
        if self.program_names.get(name) == "f":
            return RemoteFunction(self.peer, ["program", name])
        return self.peer.ask("value", RemoteFunction(self.peer, ["program", name]))

    def is_remote(self, name: str) -> bool:
        if name in self.entry or self.program_names.get(name) == "f":
            return True
        return isinstance(dict.get(self, name), RemoteFunction)

    def is_of_setup(self, name: str) -> bool:
        """Whether set-up code bound the name, and not to something of the program."""
        bound = name not in self.entry and name in self
        return bound and not isinstance(dict.__getitem__(self, name), (Remote, DataWithClass))


class Discarded:
    """``with`` block around a call whose value is thrown away: its changes are kept."""

    def __init__(self, space: Namespace, name: str) -> None:
        self.tape = space.peer.tape
        self.applies = space.is_remote(name)

    def __enter__(self) -> None:
        self.tape.discarding = self.applies

    def __exit__(
        self, kind: type | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.tape.discarding = False


# --- evaluation -----------------------------------------------------------------------------------


class Judge:
    def __init__(self, source: int, sink: int) -> None:
        self.source = source
        self.sink = sink
        self.denied: list[str] = []
        self.tricks: list[str] = []
        self.received = 0

    def send(self, kind: bytes, value: Any) -> None:
        framing.write_all(self.sink, framing.pack(kind, NO_ID, framing.dumps(value)))

    def receive(self) -> tuple[bytes, bytes, bytes]:
        """The next frame; the end of a host's interest is that of this process."""
        try:
            return framing.read_frame(self.source)
        except EOFError:
            posix._exit(0)

    def run(self) -> None:
        self.send(b"U", None)
        task = framing.loads(self.receive()[2])
        inside.set_limits(task["limits"])
        sources = [task["setup"], task["helpers"], *task["targets"]]
        self.peer = Peer(self.request, task["in_place"], "\n".join(sources))
        self.space = Namespace(self.peer, task)
        dict.__setitem__(self.space, DISCARD, lambda name: Discarded(self.space, name))
        targets = [Target(source) for source in task["targets"]]
        self.space.called = frozenset().union(*(target.called for target in targets))
        problem = self.prepare(task)
        for index, target in enumerate(targets):
            self.send(b"T", {"index": index, **self.result(target, problem)})
        self.send(b"E", None)

    def request(self, request: Any) -> Any:
        """Ask the cell; runs the callbacks that come before its reply."""
        self.send(b"Q", request)
        while True:
            kind, _, payload = self.receive()
            self.received += len(payload)
            if self.received > framing.MAX_TOTAL:
                return ["big"]
            message = framing.loads(payload)
            if kind == b"R":
                self.denied = framing.texts(message.pop())
                told = framing.texts(message.pop())
                self.tricks += [name for name in CELL_TRICKS if name in told]
                return message
            self.send(b"A", self.call_back(message))

    def call_back(self, message: Any) -> Any:
        """Call one of the functions that targets passed to the program."""
        try:
            number, args, kwargs = self.peer.decode_parts(message)
            value = self.peer.functions[number][0](*args, **kwargs)
            return ["v", Encoder(self.peer.opaque).encode(value)]
        except Exception as problem:
            return ["x", type(problem).__name__, str(problem)[:200]]

    def prepare(self, task: Any) -> str:
        """Run the prompt's helpers, then set-up; returns what went wrong with set-up."""
        for statement in statements(task["helpers"]):
            try:
                exec(statement, self.space)
            except Exception:
                continue
        try:
            tree = parse(task["setup"], "exec")
            mark_discarded(tree, nodes_of(tree))
            exec(compile(tree, "setup", "exec", 0, True), self.space)
        except BaseException as problem:
            return "set-up: " + described(problem)
        return ""

    def result(self, target: Target, problem: str) -> dict[str, Any]:
        """One target's result as the host wants it."""
        peer = self.peer
        peer.asked, peer.in_process, peer.last = 0, False, None
        self.tricks = []
        self.failure: Any = None
        self.detail = problem or target.problem
        true = not self.detail and self.holds(target)
        label = "in_process" if peer.in_process else "sealed" if peer.asked else "vacuous"
        return {
            "true": true,
            "label": "sealed" if problem else label,
            "detail": "" if true else self.detail[:DETAIL_LENGTH],
            "failure": None if true else self.failure,
            "denied": self.denied,
            # An honest comparison of the program's own makes its target true.
            "tricks": [name for name in self.tricks if not (true and name == "own comparison")],
        }

    def holds(self, target: Target) -> bool:
        """Evaluate as :mod:`in_place` asks; both times from the same names and random state."""
        names = dict(self.space)
        random = sys.modules.get("random")
        state = random.getstate() if random else None

        def evaluate() -> bool:
            if not self.peer.tape.replaying:
                return self.evaluate(target)
            if random:
                random.setstate(state)
            visible = dict(self.space)
            self.bind(names)
            try:
                return self.evaluate(target)
            finally:
                self.bind(visible)
                self.detail = "holds only because a call changed its argument"

        return self.peer.tape.holds(evaluate)

    def bind(self, names: dict[str, Any]) -> None:
        self.space.clear()
        self.space.update(names)

    def evaluate(self, target: Target) -> bool:
        try:
            if not target.expression:
                exec(target.code, self.space)
                return True
            value = eval(target.code, self.space)
            asserted = self.space.is_of_setup(target.asserting)
            if value or (value is None and asserted):
                return True
            self.detail = "false" + self.last_call()
        except Diverged:
            raise
        except BaseException as problem:
            self.failure = getattr(problem, "_evalsite_failure", None)
            self.detail = described(problem)
            if self.failure is None:
                self.failure = {"exception": type(problem).__name__, "message": ""}
                self.detail += self.last_call()
        return False

    def last_call(self) -> str:
        """What the program's last call returned, for the reader; never what was expected."""
        try:
            shown = framing.dumps(Encoder(self.peer.opaque).encode(self.peer.last))
            if not self.peer.asked or len(shown) > SHOWN_BYTES:
                return ""
            return "; the last call returned " + plain(self.peer.last)[:200]
        except Exception:
            return ""


def plain(value: Any) -> str:
    """repr without asking the cell."""
    if isinstance(value, Remote):
        return "an object of the program"
    return repr(value)


def described(problem: BaseException) -> str:
    try:
        text = str(problem)
    except Exception:
        text = ""
    name = type(problem).__name__
    failure = getattr(problem, "_evalsite_failure", None)
    if failure and failure.get("denied"):
        return "denied: " + str(failure["denied"])
    return name + ": " + text[:300] if text else name


def main() -> None:
    source, sink = inside.take_descriptors()
    inside.confine(source)
    inside.prepare_interpreter()
    serve(source, sink)


def serve(source: int, sink: int) -> None:
    """Judge one run, as the whole of what this process does."""
    Judge(source, sink).run()
    posix._exit(0)
