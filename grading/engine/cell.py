"""The cell: the untrusted process, which runs one program and serves calls on it.

It never holds a target or an expected value. Order of things: limits; the token comes with the
program; the program is compiled and executed as a module; ``loaded`` echoes the token; then one
request at a time is served until the host closes the pipe or kills.

Everything a candidate could break is bound beforehand: this file and what it carries run with a
private copy of the builtins, on descriptors of their own. Written for Python 3.8.

Frames from the host: ``L`` load, ``Q`` request, ``A`` answer to a callback. Frames to the host:
``U`` up, ``D`` loaded, ``R`` reply, ``C`` callback.
"""

from __future__ import annotations

import posix
import sys

from grading.engine import classes, denylist, framing, inside, kinds, loading
from grading.engine.decoder import Decoder
from grading.engine.encoder import Encoder
from grading.engine.operations import OPERATIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from grading.engine.operations import Pending

NO_ID = b"\0" * 8
MAX_NAMES = 2_000

_mro_of: Any = type.__dict__["__mro__"].__get__
_args_of = BaseException.__dict__["args"].__get__
_builtins = dict(__builtins__ if isinstance(__builtins__, dict) else vars(__builtins__))


class Cell:
    """The program's module, the objects the judge knows by number, and the pipe."""

    def __init__(self, source: int, sink: int) -> None:
        self.source = source
        self.sink = sink
        self.pid = posix.getpid()
        self.handles: list[Any] = []
        self.handle_numbers: dict[int, int] = {}
        self.callbacks: dict[Any, int] = {}
        self.pending: Pending = {}
        self.request_id = NO_ID
        self.own_comparison = False
        self.names_given = _builtins
        self.stdout = sys.stdout
        self.stderr = sys.stderr
        self.sent = 0

    # --- life -------------------------------------------------------------------------------

    def send(self, kind: bytes, ident: bytes, value: Any) -> None:
        payload = framing.dumps(value)
        if len(payload) > framing.MAX_FRAME or self.sent + len(payload) > framing.MAX_TOTAL:
            payload = framing.dumps(["big", []])
        self.sent += len(payload)
        framing.write_all(self.sink, framing.pack(kind, ident, payload))

    def run(self) -> None:
        self.send(b"U", NO_ID, None)
        order = framing.loads(framing.read_frame(self.source)[2])
        inside.set_limits(order["limits"])
        self.policy = denylist.Policy(order["denied"], order["allow_processes"], loading.library())
        failure = self.load(order["code"])
        self.flush()
        self.send(
            b"D",
            NO_ID,
            {
                "token": order["token"],
                "failure": failure,
                "names": [] if failure else self.names(),
                "denied": self.policy.hits,
                "tricks": self.tricks(),
            },
        )
        while True:
            self.serve(*framing.read_frame(self.source))

    def flush(self) -> None:
        """Push what the program printed into the capture pipes, and end a forked copy."""
        for stream in (self.stdout, self.stderr):
            try:
                stream.flush()
            except BaseException:  # closed or replaced from inside
                continue
        if posix.getpid() != self.pid:
            posix._exit(0)

    # --- loading ----------------------------------------------------------------------------

    def load(self, text: str) -> Any:
        """Compile and execute; the failure as a dict, or None."""
        try:
            code = loading.compiled(text)
        except loading.COMPILE_PROBLEMS as problem:
            return self.describe(problem, "compile")
        self.module = loading.new_module(classes.MODULE_NAME, text, self.policy.guarded_import)
        self.names_given = self.module.__dict__["__builtins__"]
        self.policy.install()
        try:
            exec(code, self.module.__dict__)
        except BaseException as problem:
            return self.describe(problem, "import")
        return None

    def names(self) -> list[list[Any]]:
        """[name, kind] of what the module defines: ``f`` callable, ``c`` class, ``v`` value."""
        found = []
        for name, value in list(self.module.__dict__.items())[:MAX_NAMES]:
            if isinstance(name, str) and len(name) < 100:
                kind = "c" if isinstance(value, type) else "f" if callable(value) else "v"
                found.append([str.__str__(name), kind])
        return found

    # --- requests ---------------------------------------------------------------------------

    def serve(self, kind: bytes, ident: bytes, payload: bytes) -> None:
        if kind != b"Q":
            posix._exit(70)
        outer, self.request_id = self.request_id, ident
        self.own_comparison = False
        try:
            reply = self.reply(framing.loads(payload))
        finally:
            self.request_id = outer
        self.flush()
        self.send(b"R", ident, [*reply, self.tricks(), self.policy.hits])

    def tricks(self) -> list[str]:
        """Signs of a program made to fool its grader; see :class:`outcome.Trick`."""
        found = ["own comparison"] if self.own_comparison else []
        if loading.has_patched_builtins(self.names_given):
            found.append("patched builtins")
        return found

    def reply(self, request: Any) -> Any:
        """``["v", value, changes]``, ``["x", exception, changes]`` or ``["big"]``."""
        decoder = Decoder(self.resolve)
        objects: list[Any] = []
        before: list[bytes] = []
        try:
            operation = OPERATIONS[request[0]]
            arguments = [decoder.decode(node) for node in request[1:]]
            objects = [decoder.objects[n] for n in sorted(decoder.objects)]
            before = self.contents(objects)
            answer = ["v", operation(self.pending, *arguments)]
        except framing.TooLarge:
            return ["big"]
        except BaseException as problem:
            answer = ["x", self.describe(problem, "target")]
        try:
            encoder = Encoder(self.opaque, objects)
            if answer[0] == "v":
                answer[1] = encoder.encode(answer[1])
            return [*answer, self.changes(encoder, objects, before)]
        except framing.TooLarge:
            return ["big"]
        except BaseException as problem:
            return ["x", self.describe(problem, "target"), []]

    def contents(self, objects: list[Any]) -> list[bytes]:
        """What each numbered argument holds, as bytes: 1, 1.0 and True differ."""
        if not objects:
            return []
        encoder = Encoder(self.opaque, objects)
        return [framing.dumps(encoder.contents(value)) for value in objects]

    def changes(self, encoder: Encoder, objects: list[Any], before: list[bytes]) -> Any:
        """[number, contents] of the arguments that differ from what was received."""
        after = self.contents(objects)
        return [
            [number, encoder.contents(objects[number])]
            for number in range(len(before))
            if after[number] != before[number]
        ]

    # --- objects that stay here ---------------------------------------------------------------

    def handle(self, value: Any) -> int:
        known = self.handle_numbers.get(id(value))
        if known is None:
            known = self.handle_numbers[id(value)] = len(self.handles)
            self.handles.append(value)
        return known

    def opaque(self, encoder: Encoder, value: Any) -> Any:
        """The node for what is not plain data."""
        cls = type(value)
        self.own_comparison = self.own_comparison or classes.compares_itself(cls)
        try:
            return encoder.library_node(value)
        except kinds.NotData:
            base = kinds.data_base(cls)
        enum = kinds.loaded_class("enum", "Enum")
        if enum is not None and enum in _mro_of(cls):
            return self.enum_member(encoder, cls, base, value)
        if base is not None:
            return self.data_subclass(encoder, cls, base, value)
        if cls is FUNCTION and value in self.callbacks:
            return ["callback", self.callbacks[value]]
        number = self.handle(value)
        if isinstance(value, type):
            return [
                "class",
                number,
                kinds.class_name(value),
                classes.exception_base(value),
                classes.origin(value),
            ]
        if cls is GENERATOR:
            return ["generator", number]
        if cls is COROUTINE:
            return ["coroutine", number]
        if hasattr(cls, "__next__"):
            return ["iterator", number]
        if callable(value):
            return ["function", number]
        true = classes.is_always_true(cls)
        return ["object", number, classes.abilities(cls), true, classes.origin(cls)]

    def enum_member(self, encoder: Encoder, cls: type, base: Any, value: Any) -> Any:
        get = object.__getattribute__
        name = str.__str__(get(value, "_name_"))
        content = encoder.encode(get(value, "_value_"))
        plain = encoder.base_node(base, value) if base in (int, str) else None
        return ["enum", self.handle(cls), kinds.class_name(cls), name, content, plain]

    def data_subclass(self, encoder: Encoder, cls: type, base: type, value: Any) -> Any:
        fields = cls.__dict__.get("_fields") if base is tuple else None
        if type(fields) is tuple and cls.__bases__ == (tuple,):
            items = [encoder.encode(item) for item in tuple.__iter__(value)]
            return ["namedtuple", self.handle(cls), kinds.class_name(cls), list(fields), *items]
        number = self.handle(value)
        return ["sub", number, kinds.class_name(cls), encoder.base_node(base, value)]

    def resolve(self, tag: str, node: Any) -> Any:
        """The object of this side that a node from the judge names."""
        if tag == "handle":
            return self.handles[node[1]]
        if tag == "callback":
            return self.callback(node[1])
        if tag == "steps":
            return steps(self.callback(node[1]))
        if tag == "program":
            return self.lookup(node[1])
        if tag == "tuple_of":
            items = [Decoder(self.resolve).decode(item) for item in node[2:]]
            return tuple.__new__(self.handles[node[1]], items)
        if tag == "member":
            return getattr(self.handles[node[1]], node[2])
        raise framing.WireError("unknown tag")

    def lookup(self, name: str) -> Any:
        try:
            return self.module.__dict__[name]
        except KeyError:
            raise NameError("name " + repr(name) + " is not defined") from None

    def callback(self, number: int) -> Any:
        """The function that stands for function ``number`` of the judge."""
        for function, known in self.callbacks.items():
            if known == number:
                return function

        def callback(*args: Any, **kwargs: Any) -> Any:
            return self.call_back(number, args, kwargs)

        self.callbacks[callback] = number
        return callback

    def call_back(self, number: int, args: Any, kwargs: Any) -> Any:
        """Call a function of the judge; serves the requests that this may lead to."""
        encoder = Encoder(self.opaque)
        request = [number, encoder.encode(args), encoder.encode(kwargs)]
        self.flush()
        self.send(b"C", self.request_id, request)
        while True:
            kind, ident, payload = framing.read_frame(self.source)
            if kind == b"A":
                break
            self.serve(kind, ident, payload)
        answer = framing.loads(payload)
        if answer[0] == "v":
            return Decoder(self.resolve).decode(answer[1])
        raised: Any = _builtins.get(answer[1], RuntimeError)
        raise raised(answer[2])

    # --- failures -----------------------------------------------------------------------------

    def describe(self, problem: BaseException, phase: str) -> dict[str, Any]:
        """A failure as data; nothing in it is formatted by the candidate's code unguarded."""
        cls = type(problem)
        failure = loading.described(problem, phase)
        failure["class"] = None if classes.is_builtin(cls) else self.handle(cls)
        failure["origin"] = classes.origin(cls)
        failure["base"] = classes.exception_base(cls)
        failure["args"] = self.arguments(problem)
        return failure

    def arguments(self, problem: BaseException) -> Any:
        """Nodes of what the exception was raised with, where that is small plain data."""
        try:
            encoder = Encoder(self.opaque)
            encoder.size = framing.MAX_FRAME - 2000
            return [encoder.encode(item) for item in _args_of(problem)]
        except BaseException:
            return []


def _generator() -> Any:
    yield


async def _coroutine() -> None:
    return


GENERATOR = type(_generator())
_unused = _coroutine()
COROUTINE = type(_unused)
_unused.close()

FUNCTION = type(_generator)


def steps(step: Any) -> Any:
    """A generator over an iterator that lives in the judge: each step is one item or none."""
    while True:
        item = step()
        if not item:
            return
        yield item[0]


# --- start -------------------------------------------------------------------------------------


def main() -> None:
    source, sink = inside.take_descriptors()
    inside.confine(source)
    inside.prepare_interpreter()
    sys.argv = [loading.FILE_NAME]
    try:
        Cell(source, sink).run()
    except EOFError:
        posix._exit(0)
