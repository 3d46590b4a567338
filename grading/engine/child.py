"""One sandboxed process tree: its pipes, its exit, its end.

Killing removes the whole tree. Where the tier has a pid namespace, killing the first process
inside it does that. Elsewhere daemons may have left the process group, so every process of
the tree carries a tag that fork and exec keep: an otherwise meaningless value of
RLIMIT_RTTIME, the limit for real-time scheduling. The caller is the subreaper of its
children while they run, so a daemon stays below it and is found by its tag; processes the
caller started for other purposes have no tag and are left alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType

from grading.engine.outcome import PlatformError
from grading.engine.usage import Usage, children, descendants, tree_usage
from grading.engine.workdir import remove_tree

CAPTURE_VARIABLE = "EVALSITE_CAPTURE_FD"
KILL_S = 5.0
_POLL_S = 0.002
_PR_SET_CHILD_SUBREAPER = 36


class Child:
    """A process started at construction; leave the ``with`` block or call :meth:`kill`.

    ``stdin_fd`` (write), ``stdout_fd``, ``stderr_fd`` and ``capture_fd`` (read) are the
    caller's ends, non-blocking, valid until :meth:`kill`. The child finds the number of its
    end of the capture pipe in ``EVALSITE_CAPTURE_FD``; ``capture=False`` makes none
    (``capture_fd`` is then -1).

    ``namespaced`` says that ``argv`` puts the command into a pid namespace of its own.
    ``workdir`` is removed with the process, ``on_end`` called after that. Start it from the
    process's main thread: a tier's "die with parent" means the starting thread.

    Raises PlatformError if the process cannot be started.
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
    ) -> None:
        self._namespaced = namespaced
        self._workdir = workdir
        self._on_end = on_end
        self._usage = Usage()
        self._returncode: int | None = None
        self._closed = False
        self._host_fds: list[int] = []
        self._tag = 0
        if not namespaced:
            _become_subreaper()
        try:
            self._spawn(list(argv), dict(env), cwd, capture)
        except OSError as error:
            self._release()
            raise PlatformError(f"cannot start {argv[0]}: {error}") from error
        if not namespaced:
            self._tag = _tag_process(self.pid)

    def _spawn(self, argv: list[str], env: dict[str, str], cwd: str | None, capture: bool) -> None:
        child_fds: list[int] = []
        try:
            stdin, self.stdin_fd = self._pipe(child_fds, writes=True)
            stdout, self.stdout_fd = self._pipe(child_fds)
            stderr, self.stderr_fd = self._pipe(child_fds)
            self.capture_fd = -1
            pass_fds: list[int] = []
            if capture:
                number, self.capture_fd = self._pipe(child_fds)
                pass_fds = [number]
                env[CAPTURE_VARIABLE] = str(number)
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
            )
        finally:
            for fd in child_fds:
                os.close(fd)
        self.pid = self._process.pid

    def _pipe(self, child_fds: list[int], writes: bool = False) -> tuple[int, int]:
        """(the child's end, the host's end); ``writes``: the host writes."""
        reader, writer = os.pipe()
        theirs, ours = (reader, writer) if writes else (writer, reader)
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
        # ru_maxrss is of no use: it starts at the size of the process that forked.
        self._usage = Usage(
            spent.ru_utime + spent.ru_stime, self._usage.wait_s, self._usage.peak_bytes
        )

    def usage(self) -> Usage:
        """What the tree has used; after its end the CPU total and the last other readings."""
        if self.poll() is None:
            self._usage = tree_usage(self.pid)
        return self._usage

    def kill(self) -> None:
        """End the whole tree, reap it, close the pipes, remove the work directory.

        May be called again. Returns within about ``KILL_S`` seconds.
        """
        if self._closed:
            return
        self._closed = True
        try:
            self._end_process()
            if self._tag:
                _end_tagged(self._tag)
        finally:
            self._release()

    def _end_process(self) -> None:
        if self.poll() is not None:
            return
        if self._namespaced:
            self._end_namespace()
        if self._returncode is None:
            os.kill(self.pid, signal.SIGKILL)
            self._collect(0)
        # Wrappers report a killed inside each in their own way.
        self._returncode = -signal.SIGKILL

    def _end_namespace(self) -> None:
        """Kill the namespace's first process: the wrapper ends once all inside are gone.

        Killing the wrapper first would return while the inside is still dying. It is stopped
        meanwhile so that it cannot fork between the look and the kill.
        """
        os.kill(self.pid, signal.SIGSTOP)
        inside = children(self.pid)
        for pid in inside:
            _send_kill(pid)
        if not inside:
            return
        os.kill(self.pid, signal.SIGCONT)
        deadline = time.monotonic() + KILL_S
        while self.poll() is None and time.monotonic() < deadline:
            time.sleep(_POLL_S)

    def _release(self) -> None:
        for fd in self._host_fds:
            os.close(fd)
        self._host_fds.clear()
        if self._workdir:
            remove_tree(self._workdir)
        if self._on_end:
            self._on_end()


def _become_subreaper() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _tag_process(pid: int) -> int:
    """Set the tag of a process; 0 where the kernel has no such limit."""
    tag = secrets.randbits(40) + (1 << 40)
    try:
        resource.prlimit(pid, resource.RLIMIT_RTTIME, (tag, tag))
    except (AttributeError, OSError, ValueError):
        return 0
    return tag


def _end_tagged(tag: int) -> None:
    """Kill and reap what carries the tag, until a look finds nothing more."""
    deadline = time.monotonic() + KILL_S
    while time.monotonic() < deadline:
        tagged = [pid for pid in descendants(os.getpid()) if _tag_of(pid) == tag]
        if not tagged:
            return
        for pid in tagged:
            _send_kill(pid)
        for pid in tagged:
            # Those below another one of them become children of this process when it ends.
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        time.sleep(_POLL_S)


def _tag_of(pid: int) -> int:
    try:
        return resource.prlimit(pid, resource.RLIMIT_RTTIME)[1]
    except OSError:
        return -1


def _send_kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
