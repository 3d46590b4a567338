"""Virtual environments, built once per host and kept.

``<cache>/environments/<key>/`` holds what was built for one specification: a directory for each
build, and ``ready.json``, which names the one that counts. Virtual environments cannot be moved,
so a build happens where it stays and counts once ``ready.json`` has been replaced; one that was
cut short never does. Who builds holds ``build.lock``. Who uses a build holds a shared lock on its
directory; builds that neither count nor are used are removed by whoever comes next.
"""

from __future__ import annotations

import fcntl
import glob
import json
import os
import tempfile
import time
from typing import Any

from grading.engine.environment import Environment, Spec, bare
from grading.engine.installer import BUILD_S, Installer, Say
from grading.engine.interpreter import Interpreter, needed_directories
from grading.engine.locking import Tick, lock, try_lock
from grading.engine.outcome import PlatformError
from grading.engine.workdir import remove_tree

# A failed build is not tried again sooner: many workers would ask the package index in turn.
RETRY_S = 60.0
_WAIT_S = BUILD_S + 60.0


def prepare(
    spec: Spec,
    cache: str,
    *,
    force: bool = False,
    say: Say | None = None,
    tick: Tick | None = None,
) -> Environment:
    """The environment of a specification, built where ``cache`` has none; release it in the end.

    Starts no process where it is there, waits where another process builds it. ``force`` builds
    it anew, which disturbs nobody. ``say`` gets the installer's output by lines, ``tick`` is
    called about once a second. Raises PlatformError with the end of the installer's output.
    """
    if not spec.has_venv:
        return bare(spec)
    try:
        return _Place(spec, cache).ensure(force, say, tick)
    except OSError as error:
        raise PlatformError(f"cannot build the environment: {error}") from error


def peek(spec: Spec, cache: str) -> Environment | None:
    """What :func:`prepare` would find without building; not held. Raises PlatformError."""
    if not spec.has_venv:
        return bare(spec)
    found = _Place(spec, cache).take()
    if found:
        found.release()
    return found


class _Place:
    """Where the builds of one specification are."""

    def __init__(self, spec: Spec, cache: str) -> None:
        self._spec = spec
        self._folder = os.path.join(cache, "environments", spec.key())
        self._lock = os.path.join(self._folder, "build.lock")
        self._log = os.path.join(self._folder, "build.log")
        self._ready = os.path.join(self._folder, "ready.json")
        self._failed = os.path.join(self._folder, "failed.txt")

    def ensure(self, force: bool, say: Say | None, tick: Tick | None) -> Environment:
        if not force and (found := self.take()):
            self._tidy()
            return found
        self._make_folder()
        held = lock(self._lock, fcntl.LOCK_EX, time.monotonic() + _WAIT_S, tick)
        try:
            if not force:
                if found := self.take():
                    return found
                self._refuse_to_repeat()
            self._sweep()
            try:
                self._build(say, tick)
            finally:
                self._sweep()
            found = self.take()
        finally:
            os.close(held)
        if found is None:
            raise PlatformError(f"{self._folder}: its interpreter changed while it was built")
        return found

    def _make_folder(self) -> None:
        """Others may read it, whatever the umask: programs may run as another user."""
        for folder in (os.path.dirname(self._folder), self._folder):
            os.makedirs(folder, exist_ok=True)
            if os.stat(folder).st_uid == os.getuid():
                os.chmod(folder, 0o755)

    # --- what is there --------------------------------------------------------------------------

    def take(self) -> Environment | None:
        """The build that counts, held; None where there is none that still fits."""
        while record := self._read():
            hold = try_lock(record["venv"], fcntl.LOCK_SH)
            current = self._read() == record
            if current and hold is not None and self._stands(record):
                return _environment(record, hold)
            if hold is not None:
                os.close(hold)
            if current:
                return None
        return None

    def _read(self) -> dict[str, Any] | None:
        try:
            with open(self._ready, encoding="utf-8") as file:
                record: dict[str, Any] = json.load(file)
        except (OSError, ValueError):
            return None
        return record

    def _stands(self, record: dict[str, Any]) -> bool:
        """Whether what its interpreter, and the specification's path, lead to is the same file."""
        try:
            return bool(record["identity"] == self._identity(record["python"]))
        except OSError:
            return False

    def _identity(self, python: str) -> list[list[int]]:
        named = self._spec.python
        paths = [python, named] if named and os.sep in named else [python]
        stats = map(os.stat, paths)
        return [[found.st_ino, found.st_size, found.st_mtime_ns] for found in stats]

    def _refuse_to_repeat(self) -> None:
        try:
            age = time.time() - os.stat(self._failed).st_mtime
            with open(self._failed, encoding="utf-8") as file:
                message = file.read()
        except OSError:
            return
        if 0 <= age < RETRY_S:
            raise PlatformError(message)

    # --- building -------------------------------------------------------------------------------

    def _build(self, say: Say | None, tick: Tick | None) -> None:
        interpreter = self._spec.interpreter()
        venv = tempfile.mkdtemp(prefix="build-", dir=self._folder)
        os.chmod(venv, 0o755)
        os.close(os.open(self._log, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        installer = Installer(venv, self._log, say, tick)
        try:
            installer.create(interpreter.python)
            if self._spec.packages:
                installer.install(self._spec.packages)
            for number, snippet in enumerate(self._spec.provision, 1):
                installer.provision(snippet, number)
        except PlatformError as problem:
            _replace(self._failed, str(problem))
            raise
        _replace(self._ready, json.dumps(self._record(venv, installer.python, interpreter)))

    def _record(self, venv: str, python: str, interpreter: Interpreter) -> dict[str, Any]:
        directories = {*interpreter.binds, *needed_directories(python, [_home(venv)]), venv}
        installed = _installed(venv)
        return {
            "venv": venv,
            "python": python,
            "version": interpreter.version,
            "binds": sorted(directories),
            "identity": self._identity(python),
            "stamp": self._spec.stamp(interpreter, installed),
            "installed": installed,
        }

    # --- removing -------------------------------------------------------------------------------

    def _tidy(self) -> None:
        """Remove what a rebuild had to leave since it was used, unless somebody builds."""
        if len(self._builds()) > 1 and (held := try_lock(self._lock, fcntl.LOCK_EX)) is not None:
            self._sweep()
            os.close(held)

    def _sweep(self) -> None:
        """Remove builds that neither count nor are used; only for who holds the lock."""
        record = self._read()
        for venv in self._builds():
            if record and venv == record["venv"]:
                continue
            if (held := try_lock(venv, fcntl.LOCK_EX)) is not None:
                remove_tree(venv)
                os.close(held)

    def _builds(self) -> list[str]:
        return glob.glob(os.path.join(glob.escape(self._folder), "build-*"))


def _environment(record: dict[str, Any], hold: int) -> Environment:
    return Environment(
        python=record["python"],
        version=record["version"],
        binds=tuple(record["binds"]),
        venv=record["venv"],
        stamp=record["stamp"],
        installed=tuple(record["installed"]),
        hold=hold,
    )


def _home(venv: str) -> str:
    """The prefix of the interpreter that a virtual environment names as its base."""
    with open(os.path.join(venv, "pyvenv.cfg"), encoding="utf-8") as file:
        pairs = dict(line.split("=", 1) for line in file if "=" in line)
    homes = [value.strip() for name, value in pairs.items() if name.strip() == "home"]
    return os.path.dirname(homes[0])


def _installed(venv: str) -> list[str]:
    """``name==version`` of every distribution, from the names of their directories."""
    pattern = os.path.join(glob.escape(venv), "lib*", "python*", "site-packages", "*.dist-info")
    names = {os.path.basename(path).removesuffix(".dist-info") for path in glob.glob(pattern)}
    return sorted(name.replace("-", "==", 1) for name in names)


def _replace(path: str, text: str) -> None:
    """Write a file at once: a reader finds the old content or the new, never a part."""
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{path}.new", path)
