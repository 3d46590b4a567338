"""One sandboxed process tree: its pipes, its exit, its end.

A tree is more than its first process: daemons leave the process group, and a wrapper with a
pid namespace may end before what it wrapped. So every process of the tree carries a tag that
fork and exec keep, an otherwise meaningless value of RLIMIT_RTTIME, the limit for real-time
scheduling. While trees run, this process is the subreaper of its descendants: orphans stay
below it, are found by their tag, killed and reaped. Processes started for other purposes have
no tag and are left alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import resource
import secrets
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType

from grading.engine.outcome import PlatformError
from grading.engine.usage import Usage, descendants, tree_usage
from grading.engine.workdir import remove_tree

CAPTURE_VARIABLE = "EVALSITE_CAPTURE_FD"
KILL_S = 5.0
_POLL_S = 0.0005
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36

logger = logging.getLogger(__name__)
_live: set[Child] = set()
_starting = threading.Lock()


def _renew_lock() -> None:
    """A fork made while another thread holds the lock would wait for that one for ever."""
    global _starting
    _starting = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)


class Child:
    """A process started at construction; leave the ``with`` block or call :meth:`kill`.

    ``stdin_fd`` (write), ``stdout_fd``, ``stderr_fd`` and ``capture_fd`` (read) are the
    caller's ends, non-blocking, valid until :meth:`kill`. The child finds the number of its
    end of the capture pipe in ``EVALSITE_CAPTURE_FD``; ``capture=False`` makes none
    (``capture_fd`` is then -1).

    ``namespaced`` says that ``argv`` puts the command into a pid namespace of its own.
    ``workdir`` is removed with the process, ``on_end`` called after that. ``user`` is the id of
    the user and group it is started as. ``handed``: an option of the first program of ``argv``
    that takes a descriptor, and the bytes to be read there, at most a pipe full. ``core`` is
    the only one the tree may use, where the host allows that. ``socket_in``: stdin is a socket
    in place of a pipe, which can pass descriptors. Start it from the process's main thread: a
    tier's "die with parent" means the starting thread.

    Raises PlatformError if the process cannot be started; then nothing of this happens.
    """

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        *,
        namespaced: bool,
        cwd: str | None = None,
        workdir: str | None = None,
        capture: bool = True,
        on_end: Callable[[], None] | None = None,
        user: int | None = None,
        handed: tuple[str, bytes] | None = None,
        core: int | None = None,
        socket_in: bool = False,
    ) -> None:
        self._namespaced = namespaced
        self.workdir = workdir
        self._on_end = on_end
        self._usage = Usage()
        self._returncode: int | None = None
        self._closed = False
        self._host_fds: list[int] = []
        self._spent_s = 0.0
        self._tag = (1 << 40) + secrets.randbits(40)
        try:
            # What a child inherits is this whole process's, so threads take turns.
            with _starting:
                _reap_orphans(True)
                self._spawn(list(argv), dict(env), cwd, capture, user, handed, core, socket_in)
                _live.add(self)
        except OSError as error:
            self._close_pipes()
            raise PlatformError(f"cannot start {argv[0]}: {error}") from error

    def _spawn(
        self,
        argv: list[str],
        env: dict[str, str],
        cwd: str | None,
        capture: bool,
        user: int | None,
        handed: tuple[str, bytes] | None,
        core: int | None,
        socket_in: bool,
    ) -> None:
        child_fds: list[int] = []
        try:
            if socket_in:
                stdin, self.stdin_fd = self._socket(child_fds)
            else:
                stdin, self.stdin_fd = self._pipe(child_fds, writes=True)
            stdout, self.stdout_fd = self._pipe(child_fds)
            stderr, self.stderr_fd = self._pipe(child_fds)
            self.capture_fd = -1
            pass_fds: list[int] = []
            if capture:
                number, self.capture_fd = self._pipe(child_fds)
                pass_fds = [number]
                env[CAPTURE_VARIABLE] = str(number)
            if handed:
                option, data = handed
                pass_fds.append(_filled_pipe(data, child_fds))
                argv[1:1] = [option, str(pass_fds[-1])]
            with _tagging(self._tag), _pinned(core):
                self._process = subprocess.Popen(
                    argv,
                    stdin=stdin,
                    stdout=stdout,
                    stderr=stderr,
                    env=env,
                    cwd=cwd,
                    pass_fds=pass_fds,
                    close_fds=True,
                    start_new_session=True,
                    user=user,
                    group=user,
                    extra_groups=None if user is None else [],
                )
        finally:
            for fd in child_fds:
                os.close(fd)
        self.pid = self._process.pid

    def _pipe(self, child_fds: list[int], writes: bool = False) -> tuple[int, int]:
        """(the child's end, the host's end); ``writes``: the host writes."""
        reader, writer = os.pipe()
        ends = (reader, writer) if writes else (writer, reader)
        return self._keep(child_fds, *ends)

    def _socket(self, child_fds: list[int]) -> tuple[int, int]:
        """(the child's end, the host's end) of a stream that can pass descriptors."""
        return self._keep(child_fds, *(end.detach() for end in socket.socketpair()))

    def _keep(self, child_fds: list[int], theirs: int, ours: int) -> tuple[int, int]:
        child_fds.append(theirs)
        self._host_fds.append(ours)
        os.set_blocking(ours, False)
        return theirs, ours

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.kill()

    def close_stdin(self) -> None:
        """Give the child end-of-file on fd 0."""
        if self.stdin_fd in self._host_fds:
            self._host_fds.remove(self.stdin_fd)
            os.close(self.stdin_fd)

    def pids(self) -> list[int]:
        """Its processes, parents before their children."""
        return [self.pid, *descendants(self.pid)]

    def poll(self) -> int | None:
        """None while it runs, else the exit status; negative is the signal that ended it.

        Wrappers with a pid namespace report signal n as 128 + n, so there an exit status
        above 128 cannot be told from a signal.
        """
        if self._returncode is None:
            self._collect(os.WNOHANG)
        return self._returncode

    def _collect(self, options: int) -> None:
        pid, status, spent = os.wait4(self.pid, options)
        if pid == 0:
            return
        code = os.waitstatus_to_exitcode(status)
        if self._namespaced and 128 < code <= 128 + signal.NSIG:
            code = 128 - code
        # Popen must not wait for a process that was reaped here.
        self._returncode = self._process.returncode = code
        self._spent_s += spent.ru_utime + spent.ru_stime

    def usage(self) -> Usage:
        """What the tree has used so far.

        Once the first process has ended this ends the rest of the tree, and gives the CPU
        total together with the last other readings: a process takes its peak along.
        """
        if self.poll() is None:
            self._usage = tree_usage(self.pid)
        else:
            self._end_rest()
        cpu_s = max(self._usage.cpu_s, self._spent_s)
        return Usage(cpu_s, self._usage.wait_s, self._usage.peak_bytes)

    def kill(self) -> None:
        """End the whole tree, reap it, close the pipes, remove the work directory.

        May be called again. Returns within about ``KILL_S`` seconds.
        """
        if self._closed:
            return
        self._closed = True
        try:
            if self.poll() is None:
                tree = descendants(self.pid)
                os.killpg(self.pid, signal.SIGKILL)
                self._end(tree, 0)
            self._end_rest()
        finally:
            self._release()

    def _end_rest(self) -> None:
        """Kill and reap what carries the tag, until a look finds nothing more."""
        deadline = time.monotonic() + KILL_S
        while tagged := [pid for pid in descendants(os.getpid()) if _tag_of(pid) == self._tag]:
            self._end(tagged, os.WNOHANG)
            if time.monotonic() > deadline:
                logger.warning("processes %s do not end", tagged)
                return
            time.sleep(_POLL_S)

    def _end(self, pids: list[int], options: int) -> None:
        """Kill these, parents before their children, and reap those that are of this process."""
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self._returncode is None:
            self._collect(options)
        # One below another of the tree becomes a child of this process when that one ends.
        for pid in pids:
            with contextlib.suppress(ChildProcessError):
                _, _, spent = os.wait4(pid, options)
                self._spent_s += spent.ru_utime + spent.ru_stime

    def _close_pipes(self) -> None:
        for fd in self._host_fds:
            os.close(fd)
        self._host_fds.clear()

    def _release(self) -> None:
        with _starting:
            _live.discard(self)
            if not _live:
                _reap_orphans(False)
        self._close_pipes()
        if self.workdir:
            remove_tree(self.workdir)
        if self._on_end:
            self._on_end()


def conceal() -> None:
    """Close this process's memory, environment and descriptors to others of the same user.

    For whoever holds targets; forked children inherit it, an exec ends it. Core dumps and
    debuggers of the user's own are refused, too.
    """
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def _filled_pipe(data: bytes, child_fds: list[int]) -> int:
    """The reading end of a pipe that holds ``data`` and then ends."""
    reader, writer = os.pipe()
    child_fds.append(reader)
    try:
        os.set_blocking(writer, False)
        if os.write(writer, data) != len(data):
            raise BlockingIOError("the data do not fit into a pipe")
    finally:
        os.close(writer)
    return reader


def _reap_orphans(on: bool) -> None:
    """Whether orphaned descendants become children of this process, not of process 1."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(on), 0, 0, 0)


@contextlib.contextmanager
def _tagging(tag: int) -> Iterator[None]:
    """Processes started inside the block carry the tag, from their first moment on."""
    before = resource.getrlimit(resource.RLIMIT_RTTIME)
    resource.setrlimit(resource.RLIMIT_RTTIME, (tag, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_RTTIME, before)


@contextlib.contextmanager
def _pinned(core: int | None) -> Iterator[None]:
    """Processes started inside the block run on this core only."""
    before = os.sched_getaffinity(0)
    try:
        if core is not None:
            with contextlib.suppress(OSError):
                os.sched_setaffinity(0, [core])
        yield
    finally:
        if core is not None:
            os.sched_setaffinity(0, before)


def _tag_of(pid: int) -> int | None:
    try:
        return resource.prlimit(pid, resource.RLIMIT_RTTIME)[0]
    except OSError:
        return None
