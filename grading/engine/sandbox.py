"""Running untrusted code: one interpreter under the strongest isolation the host allows."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from grading.engine import runtime
from grading.engine.cells import Cell, Cells
from grading.engine.child import Child
from grading.engine.drain import Drained, Ended, drain
from grading.engine.environment import Environment, Spec
from grading.engine.environment_cache import peek, prepare
from grading.engine.installer import Say
from grading.engine.isolation import Probe, choose
from grading.engine.isolation.findings import Finding, findings, safe_for_strangers
from grading.engine.isolation.hardening import Hardening, probe
from grading.engine.isolation.launch import Front, Isolation, launch
from grading.engine.isolation.rlimit import rlimits, running_tasks
from grading.engine.isolation.view import View
from grading.engine.judges import Judge, Judges
from grading.engine.limits import ADDRESS_SPACE_BYTES, Limits
from grading.engine.locking import Tick
from grading.engine.outcome import PlatformError
from grading.engine.turnstile import Turnstile
from grading.engine.workdir import make_workdir, remove_abandoned, remove_tree

RUN_TIMEOUT_S = 15.0
_SUMMARY_CHARS = 400
_CHECKOUT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True, slots=True)
class ExecResult:
    """One finished command. ``status``: ``ok`` (exit 0), ``failed``, ``timeout``, ``error``.

    ``error`` means too much output. ``returncode`` is None where the command was killed for
    time or output; negative is the signal that ended it. ``duration`` in seconds.
    """

    passed: bool
    status: str
    stdout: str
    stderr: str
    returncode: int | None
    duration: float

    def summary(self) -> str:
        """One line of at most 400 characters.

        ``ok``, ``timeout``, else the last non-empty line of stderr, or of stdout, else the
        status with the return code.
        """
        if self.status in ("ok", "timeout"):
            return self.status
        said = (self.stderr.split() and self.stderr) or self.stdout
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        return (lines[-1] if lines else f"{self.status} (rc={self.returncode})")[:_SUMMARY_CHARS]


class Sandbox:
    """A named place to run code in; call :meth:`ensure` once before anything else.

    ``base_python``, ``packages``, ``provision`` and ``env`` make its environment, see
    :class:`Spec`; ``env`` is added to the clean environment of every process. ``isolation`` is a
    tier or ``auto``, which EVALSITE_TIER may decide; ``address_space_limit`` in bytes, None for
    no limit; ``cache_root`` holds locks and environments and is by default EVALSITE_CACHE_DIR or
    ``evalsite`` in the user's cache directory.
    """

    def __init__(
        self,
        name: str,
        packages: Sequence[str] = (),
        cache_root: str | os.PathLike[str] | None = None,
        base_python: str | None = None,
        isolation: str = "auto",
        provision: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        address_space_limit: int | None = ADDRESS_SPACE_BYTES,
    ) -> None:
        self.name = name
        self.address_space_limit = address_space_limit
        self.hardening: list[str] = []
        self.probes: list[Probe] = []
        self._spec = Spec(base_python, tuple(packages), tuple(provision), dict(env or {}))
        self._wanted = isolation
        self._cache_root = cache_root
        self._ready: _Ready | None = None

    def ensure(self, force: bool = False, quiet: bool = True) -> None:
        """Build or find the environment and probe the isolation; cheap when done before.

        ``force`` does it again; without ``quiet`` the installer's output and the chosen tier are
        printed. Raises PlatformError with the cause when the environment cannot be built, or the
        interpreter or the tier does not work.
        """
        self.prepare(force, None if quiet else print)

    def prepare(
        self, force: bool = False, say: Say | None = None, tick: Tick | None = None
    ) -> None:
        """As :meth:`ensure`. ``say`` gets what there is to say line by line; ``tick`` is called
        about once a second while the environment is built, here or by another process.
        """
        if self._ready is None or force:
            cache = _cache_directory(self._cache_root)
            before, self._ready = self._ready, self._look(cache, force, say, tick)
            if before:
                before.environment.release()
        if say:
            say(f"sandbox {self.name}: {self.tier}, Python {self.python_version}")

    def _look(self, cache: str, force: bool, say: Say | None, tick: Tick | None) -> _Ready:
        environment = prepare(self._spec, cache, force=force, say=say, tick=tick)
        wanted = self._wanted
        if wanted == "auto":
            wanted = os.environ.get("EVALSITE_TIER") or "auto"
        view = View(
            environment.python, environment.binds, hidden=_hidden(), version=environment.version
        )
        remove_abandoned()
        try:
            isolation, self.probes = choose(wanted, view)
        except PlatformError:
            environment.release()
            raise
        hardening = probe(isolation, view)
        self.hardening = list(hardening.names)
        python = [environment.python, *environment.flags]
        variables = environment.filled(self._spec.variables)
        turnstile = Turnstile(cache)
        runtime.load(environment.version)
        return _Ready(
            environment,
            variables,
            view,
            isolation,
            hardening,
            turnstile,
            _running(isolation),
            Cells(isolation, view, hardening, python, variables, turnstile),
            Judges(isolation, view, hardening, python, variables),
        )

    @property
    def tier(self) -> str:
        return self._get().isolation.tier

    @property
    def isolation(self) -> str:
        return self.tier

    @property
    def python(self) -> str:
        """Path of the interpreter."""
        return self._get().environment.python

    @property
    def python_version(self) -> str:
        return self._get().environment.version

    @property
    def environment(self) -> Environment:
        """What programs run in."""
        return self._get().environment

    @property
    def variables(self) -> dict[str, str]:
        """What is added to the clean environment of every process."""
        return dict(self._get().variables)

    def built(self) -> Environment | None:
        """The environment, if it can be had without building it. Raises PlatformError."""
        return peek(self._spec, _cache_directory(self._cache_root))

    def outdated(self) -> bool:
        """Whether its environment was built anew or removed since; never of a base interpreter."""
        own = self.environment
        if not own.venv:
            return False
        now = self.built()
        return now is None or (now.venv, now.stamp) != (own.venv, own.stamp)

    @property
    def safe_for_strangers(self) -> bool:
        """Whether what is in force is enough for programs of people one does not trust."""
        return safe_for_strangers(self.tier, self.hardening)

    def findings(self) -> list[Finding]:
        """What is not in force here: cause, effect and fix of each."""
        return findings(self.tier, self.hardening, self.probes)

    def rlimits(self, limits: Limits) -> list[tuple[int, int]]:
        """(resource number, value) pairs a process of this sandbox is to set on itself."""
        return rlimits(limits, self._get().running)

    def start(
        self,
        args: Sequence[str],
        *,
        extra_env: Mapping[str, str] | None = None,
        allow_processes: bool = False,
        tick: Callable[[], None] | None = None,
    ) -> Child:
        """Start the interpreter with ``args``; it has to limit itself by :meth:`rlimits`.

        Waits while a :meth:`solo` block is open elsewhere on this host, and counts as running
        until the child is killed; ``tick`` as for :meth:`solo`. Raises PlatformError.
        """
        ready = self._get()
        command = [self.python, *ready.environment.flags, *args]
        program = ready.hardening.program(ready.isolation, allow_processes)
        return self._launch(ready.view, command, extra_env, tick=tick, program=program)

    @contextmanager
    def warm(self) -> Iterator[None]:
        """A block whose runs share what is costly to start, for its length and no longer.

        Each still has an interpreter and a judge that were not used before.
        """
        with self._get().cells.warm(), self._get().judges.warm():
            yield

    def cell(
        self, modules: tuple[str, ...], allow_processes: bool, tick: Tick | None = None
    ) -> AbstractContextManager[Cell]:
        """A cell for one run, see :meth:`Cells.one`. Raises PlatformError."""
        return self._get().cells.one(modules, allow_processes, tick)

    def judge(self) -> AbstractContextManager[Judge]:
        """A judge for one run, whose cell is to be started first. Raises PlatformError."""
        return self._get().judges.one()

    def _launch(
        self,
        view: View,
        command: Sequence[str],
        extra_env: Mapping[str, str] | None,
        capture: bool = True,
        tick: Callable[[], None] | None = None,
        front: Callable[[str], Front] | None = None,
        program: bytes = b"",
    ) -> Child:
        ready = self._get()
        env = ready.variables | dict(extra_env or {})
        leave = ready.turnstile.enter(tick)
        try:
            return launch(
                ready.isolation,
                view,
                command,
                env,
                capture=capture,
                on_end=leave,
                front=front,
                program=program,
            )
        except PlatformError:
            leave()
            raise

    def run(
        self, code: str, timeout: float = RUN_TIMEOUT_S, env: Mapping[str, str] | None = None
    ) -> ExecResult:
        """Run a program from a file in a throw-away directory; exit status 0 is a pass."""
        workdir = make_workdir()
        try:
            program = _write(workdir, code)
            argv = [self.python, *self.environment.flags, program]
            return self.run_argv(argv, workdir, timeout, env)
        finally:
            remove_tree(workdir)

    def run_argv(
        self,
        argv: Sequence[str],
        workdir: str | os.PathLike[str],
        timeout: float = RUN_TIMEOUT_S,
        env: Mapping[str, str] | None = None,
        ro_binds: Sequence[str | os.PathLike[str]] = (),
    ) -> ExecResult:
        """Run any command in a directory of the caller's, which survives.

        ``ro_binds`` are further host paths the command may read. Output over 256 KB ends it.
        Raises PlatformError if the sandbox itself cannot be started.
        """
        extra = tuple(map(_existing, ro_binds))
        view = replace(self._get().view, extra=extra, workdir=_existing(workdir))
        limits = Limits(timeout_s=timeout, address_space_bytes=self.address_space_limit)
        hardening, isolation = self._get().hardening, self._get().isolation

        def front(home: str) -> Front:
            plan = hardening.plan(isolation, view, home, allow_processes=True)
            return Front(self.rlimits(limits), plan)

        program = hardening.program(isolation, allow_processes=True)
        with self._launch(view, argv, env, capture=False, front=front, program=program) as child:
            started = time.monotonic()
            drained = drain(child, timeout)
            return _result(drained, time.monotonic() - started)

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Count as a running cell of this host; every start does so by itself."""
        with self._get().turnstile.shared():
            yield

    @contextmanager
    def solo(self, tick: Callable[[], None] | None = None) -> Iterator[None]:
        """Be the only one on this host to start cells; waits for the running ones to end.

        ``tick`` is called about once a second while it waits.
        """
        with self._get().turnstile.solo(tick):
            yield

    def _get(self) -> _Ready:
        if self._ready is None:
            raise PlatformError(f"sandbox {self.name!r}: call ensure() first")
        return self._ready


@dataclass(frozen=True, slots=True)
class _Ready:
    """What :meth:`Sandbox.ensure` found out."""

    environment: Environment
    variables: dict[str, str]
    view: View
    isolation: Isolation
    hardening: Hardening
    turnstile: Turnstile
    running: int
    cells: Cells
    judges: Judges


def _result(drained: Drained, duration: float) -> ExecResult:
    status = "failed" if drained.returncode else "ok"
    status = {Ended.TIMEOUT: "timeout", Ended.OVERFLOW: "error"}.get(drained.ended, status)
    stdout, stderr = (
        stream.decode("utf-8", "replace") for stream in (drained.stdout, drained.stderr)
    )
    if drained.ended is Ended.OVERFLOW:
        stderr += "\noutput overflow\n"
    code = drained.returncode if drained.ended is Ended.EXIT else None
    return ExecResult(status == "ok", status, stdout, stderr, code, duration)


def _existing(path: str | os.PathLike[str]) -> str:
    if not os.path.exists(path):
        raise PlatformError(f"{os.fspath(path)} does not exist")
    return os.path.abspath(path)


def _write(directory: str, code: str) -> str:
    """A program file; its path."""
    path = os.path.join(directory, "program.py")
    try:
        with open(path, "w", encoding="utf-8", errors="surrogatepass") as file:
            file.write(code)
    except OSError as error:
        raise PlatformError(f"cannot write {path}: {error}") from error
    return path


def _hidden() -> tuple[str, ...]:
    """The application's own files, in case they lie below something a tier shows."""
    data = os.environ.get("EVALSITE_DATA_DIR")
    return (str(_CHECKOUT), os.path.realpath(data)) if data else (str(_CHECKOUT),)


def _running(isolation: Isolation) -> int:
    """What counts against the process limit of a new process before it has started any."""
    if isolation.namespaced and _counts_by_namespace():
        return 0
    return running_tasks(os.getuid() if isolation.user is None else isolation.user)


def _counts_by_namespace() -> bool:
    """Linux counts processes per user namespace since 5.14."""
    release = os.uname().release.split(".")
    return tuple(int(part) for part in release[:2] if part.isdigit()) >= (5, 14)


def _cache_directory(root: str | os.PathLike[str] | None) -> str:
    """The directory of locks and environments; others may pass, but not look."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    chosen = root or os.environ.get("EVALSITE_CACHE_DIR") or os.path.join(home, "evalsite")
    try:
        os.makedirs(chosen, mode=0o711, exist_ok=True)
    except OSError as error:
        raise PlatformError(f"cannot make {chosen}: {error}; set EVALSITE_CACHE_DIR") from error
    return os.fspath(chosen)
