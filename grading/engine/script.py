"""The cell of a program that reads standard input: runs it as a script, once.

It never holds the expected output: the host compares. Descriptor 0 is a file that holds the input,
descriptor 1 the capture pipe. The interpreter ends as it does after any script: threads are
waited for, ``atexit`` functions run, streams are flushed, and the exit status is the program's.

Frames from the host: ``L`` load, ``I`` input, ``G`` go on. Frames to the host: ``U`` up, ``R``
ready, ``X`` the program's text has been executed. Written for Python 3.8.
"""

from __future__ import annotations

import posix
import sys

from grading.engine import denylist, framing, inside, loading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MODULE_NAME = "__main__"
NO_ID = b"\0" * 8
# Gone before the program runs.
INPUT_NAME = "evalsite-input"


class Script:
    """``problem`` is what the program raised, if it did."""

    def __init__(self, source: int, sink: int) -> None:
        self.source = source
        self.sink = sink
        self.pid = posix.getpid()
        self.problem: BaseException | None = None

    def send(self, kind: bytes, value: Any) -> None:
        framing.write_all(self.sink, framing.pack(kind, NO_ID, framing.dumps(value)))

    def run(self) -> None:
        self.send(b"U", None)
        order = framing.loads(framing.read_frame(self.source)[2])
        give_input(framing.read_frame(self.source)[2])
        inside.set_limits(order["limits"])
        denied, processes = order["denied"], order["allow_processes"]
        self.policy = denylist.Policy(denied, processes, loading.library())
        # Kept: the interpreter's own first module would end with its last reference.
        self.first = sys.modules[MODULE_NAME]
        self.module = loading.new_module(MODULE_NAME, order["code"], self.policy.guarded_import)
        self.names_given = self.module.__dict__["__builtins__"]
        self.send(b"R", None)
        framing.read_frame(self.source)
        failure = self.execute(order["code"])
        if posix.getpid() == self.pid:
            self.report(failure)

    def execute(self, text: str) -> Any:
        """Compile and execute; the failure as a dict, or None."""
        try:
            code = loading.compiled(text)
        except loading.COMPILE_PROBLEMS as problem:
            self.problem = problem
            return loading.described(problem, "compile")
        self.policy.install()
        try:
            exec(code, self.module.__dict__)
        except SystemExit as leaving:
            self.problem = leaving
        except BaseException as problem:
            self.problem = problem
            return loading.described(problem, "target")
        return None

    def report(self, failure: Any) -> None:
        """Tell the host, and give it the time to see what this process used."""
        patched = loading.has_patched_builtins(self.names_given)
        told = {
            "failure": failure,
            "denied": self.policy.hits,
            "tricks": ["patched builtins"] if patched else [],
        }
        try:
            self.send(b"X", told)
            framing.read_frame(self.source)
        except (OSError, EOFError):  # the program may close what it likes
            pass

    def leave(self) -> None:
        """Pass on what the program raised, as the interpreter would have seen it."""
        if isinstance(self.problem, SystemExit):
            raise self.problem
        if self.problem is not None:
            self.problem.__traceback__ = own_part(self.problem)
            sys.excepthook(type(self.problem), self.problem, self.problem.__traceback__)
            raise SystemExit(1)


def own_part(problem: BaseException) -> Any:
    """The traceback from the program's first frame on."""
    step = problem.__traceback__
    while step is not None and step.tb_frame.f_code.co_filename != loading.FILE_NAME:
        step = step.tb_next
    return step


def give_input(data: bytes) -> None:
    """Make descriptor 0, and ``sys.stdin``, a file that holds ``data`` and has no name."""
    reading = unnamed_file(data)
    posix.dup2(reading, 0)
    posix.close(reading)
    # The interpreter's own was made for a pipe.
    encoding, errors = sys.stdin.encoding, sys.stdin.errors
    fresh = open(0, encoding=encoding, errors=errors, newline="\n", closefd=False)  # noqa: SIM115
    sys.stdin = sys.__stdin__ = fresh  # type: ignore[misc]


def unnamed_file(data: bytes) -> int:
    """A descriptor that reads ``data`` and cannot change it.

    The file never has a name where the system can do that: in a sandbox that is kept, a trace in
    the work directory would make this the last run there.
    """
    try:
        writing = posix.open(".", posix.O_TMPFILE | posix.O_WRONLY, 0o600)
        reading = posix.open("/proc/self/fd/" + str(writing), posix.O_RDONLY)
    except OSError:
        writing = posix.open(INPUT_NAME, posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL, 0o600)
        reading = posix.open(INPUT_NAME, posix.O_RDONLY)
        posix.unlink(INPUT_NAME)
    framing.write_all(writing, data)
    posix.close(writing)
    return reading


def main() -> None:
    source, sink = inside.take_descriptors()
    inside.confine(source)
    inside.prepare_interpreter()
    sys.argv = [loading.FILE_NAME]
    script = Script(source, sink)
    try:
        script.run()
    except EOFError:
        posix._exit(0)
    script.leave()
