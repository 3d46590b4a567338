"""Building a virtual environment: by uv where it is on PATH, else by venv and pip.

What is installed and the snippets are the operator's: they run with the network and as the user
of this process, but see none of the application's variables.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import BinaryIO

from grading.engine.locking import Tick
from grading.engine.outcome import PlatformError

Say = Callable[[str], None]

BUILD_S = 1800.0
VENV_VARIABLE = "SANDBOX_VENV"
_LOOK_S = 1.0
_TAIL_LINES = 15
_TAIL_CHARS = 2000
_WITHHELD = ("EVALSITE_", "DJANGO_", "PYTHON", "VIRTUAL_ENV")


class Installer:
    """Makes ``venv``, an empty directory, an environment of its own.

    All output goes to the end of the file ``log``, and line by line to ``say``; ``tick`` is called
    about once a second. Every method raises PlatformError with the last lines of the output.
    """

    def __init__(self, venv: str, log: str, say: Say | None = None, tick: Tick | None = None):
        self.python = os.path.join(venv, "bin", "python")
        self._venv = venv
        self._log = log
        self._say = say
        self._tick = tick
        self._uv = shutil.which("uv")
        self._deadline = time.monotonic() + BUILD_S
        self._told = 0

    def create(self, base_python: str) -> None:
        if self._uv:
            command = [self._uv, "venv", "--no-project", "--python", base_python, self._venv]
        else:
            command = [base_python, "-m", "venv", self._venv]
        self._run("make a virtual environment", command)

    def install(self, packages: Sequence[str]) -> None:
        """``packages`` are lines of a requirements file."""
        if self._uv:
            command = [self._uv, "pip", "install", "--compile-bytecode", "--python", self.python]
        else:
            command = [self.python, "-m", "pip", "install", "--no-input", "--progress-bar", "off"]
            command.append("--disable-pip-version-check")
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".txt") as requirements:
            requirements.writelines(f"{line}\n" for line in packages)
            requirements.flush()
            self._run("install the packages", [*command, "-r", requirements.name])

    def provision(self, snippet: str, number: int) -> None:
        """Run Python source in the environment."""
        own = {
            VENV_VARIABLE: self._venv,
            "PATH": os.path.dirname(self.python) + os.pathsep + os.environ.get("PATH", os.defpath),
        }
        with tempfile.TemporaryFile() as source:
            source.write(snippet.encode("utf-8", "surrogatepass"))
            source.seek(0)
            self._run(f"run provisioning snippet {number}", [self.python, "-"], own, source)

    def _run(
        self,
        what: str,
        command: Sequence[str],
        extra_env: Mapping[str, str] | None = None,
        source: BinaryIO | None = None,
    ) -> None:
        started = self._announce(command)
        try:
            with open(self._log, "ab") as log:
                process = subprocess.Popen(
                    [*_ended_with_us(), *command],
                    stdin=source or subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=_environment() | dict(extra_env or {}),
                    cwd=self._venv,
                    # Programs may run as a user who has to be able to read it.
                    umask=0o022,
                    start_new_session=True,
                )
        except OSError as error:
            raise PlatformError(f"cannot {what}: {command[0]}: {error}") from error
        try:
            status = self._watch(process)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            self._tell()
        if status != 0:
            ended = "not done in time" if status is None else f"exit status {status}"
            raise PlatformError(
                f"cannot {what} ({ended}):\n{self._tail(started)}\nThe whole output: {self._log}"
            )

    def _announce(self, command: Sequence[str]) -> int:
        """Write the command to the log; where its output begins there."""
        with open(self._log, "ab") as log:
            log.write(f"$ {shlex.join(command)}\n".encode("utf-8", "replace"))
            return log.tell()

    def _watch(self, process: subprocess.Popen[bytes]) -> int | None:
        """Its exit status, or None past the deadline."""
        while time.monotonic() < self._deadline:
            try:
                return process.wait(_LOOK_S)
            except subprocess.TimeoutExpired:
                self._tell()
                if self._tick:
                    self._tick()
        return None

    def _tell(self) -> None:
        """Pass on the complete lines written since the last call."""
        with open(self._log, "rb") as log:
            log.seek(self._told)
            lines = log.read().rpartition(b"\n")[0]
        if lines and self._say:
            self._told += len(lines) + 1
            for line in lines.decode("utf-8", "replace").splitlines():
                self._say(line)

    def _tail(self, start: int) -> str:
        with open(self._log, "rb") as log:
            log.seek(start)
            text = log.read().decode("utf-8", "replace")
        return "\n".join(text.strip().splitlines()[-_TAIL_LINES:])[-_TAIL_CHARS:]


def _environment() -> dict[str, str]:
    return {name: text for name, text in os.environ.items() if not name.startswith(_WITHHELD)}


def _ended_with_us() -> list[str]:
    """In front of a command: the kernel ends it with the thread that started it."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []
