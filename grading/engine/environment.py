"""Environments: an interpreter, alone or with packages in a virtual environment of its own."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from grading.engine.interpreter import Interpreter, resolve_python
from grading.engine.outcome import PlatformError

# Raise when environments built by an earlier version are not to be used any more.
FORMAT = 1
OLDEST_PYTHON = (3, 8)
PLACEHOLDER = "{venv}"
FLAGS = ("-s", "-B")
NO_SITE = "-S"
# What the files they name hold is not part of what an environment is known by.
_REFUSED = ("-r", "--requirement", "-c", "--constraint", "-e", "--editable")


@dataclass(frozen=True, slots=True)
class Spec:
    """What an environment is to be.

    ``python`` as for ``resolve_python``; ``packages`` are lines of a requirements file;
    ``provision`` is Python source that runs once after them, with the network and the
    environment's directory in SANDBOX_VENV; ``variables`` are for every process, their
    ``{venv}`` is that directory. Raises PlatformError for a line that names another file.
    """

    python: str | None = None
    packages: tuple[str, ...] = ()
    provision: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for line in self.packages:
            if line.startswith(_REFUSED) or "\n" in line or not line.strip():
                raise PlatformError(
                    f"package {line!r}: use a line of a requirements file that names no other file"
                )

    @property
    def has_venv(self) -> bool:
        """Without packages the interpreter itself will do."""
        placed = any(PLACEHOLDER in text for text in self.variables.values())
        return bool(self.packages or self.provision or placed)

    def interpreter(self) -> Interpreter:
        """Raises PlatformError where there is none, or one too old to grade with."""
        found = resolve_python(self.python)
        if tuple(map(int, found.version.split(".")[:2])) < OLDEST_PYTHON:
            oldest = ".".join(map(str, OLDEST_PYTHON))
            raise PlatformError(f"Python {found.version} is too old: use {oldest} or newer")
        return found

    def key(self) -> str:
        """The name under which builds are kept, known without looking for an interpreter."""
        running = [os.path.realpath(sys.executable), sys.version] if self.python is None else []
        return self._digest([self.python, *running])[:16]

    def stamp(self, interpreter: Interpreter, installed: Sequence[str] = ()) -> str:
        """What tells the results of one environment from those of another, in 12 digits."""
        return self._digest([interpreter.python, interpreter.version, *installed])[:12]

    def _digest(self, python: list[str | None]) -> str:
        content = [FORMAT, python, self.packages, self.provision]
        return hashlib.sha256(json.dumps(content).encode("ascii")).hexdigest()


@dataclass(frozen=True, slots=True)
class Environment:
    """One that can be used: start ``python`` with ``flags``, with ``binds`` visible.

    ``venv`` is its directory, empty for a base interpreter; ``installed`` like ``numpy==2.1.0``.
    ``stamp`` covers provisioning, packages asked for and installed, path and version of the
    interpreter; empty for the bare interpreter of this process. ``hold`` is the descriptor of a
    lock that keeps the directory from being removed, or -1.
    """

    python: str
    version: str
    binds: tuple[str, ...]
    flags: tuple[str, ...] = FLAGS
    venv: str = ""
    stamp: str = ""
    installed: tuple[str, ...] = ()
    hold: int = -1

    def filled(self, variables: Mapping[str, str]) -> dict[str, str]:
        """``variables`` with the environment's directory in place of ``{venv}``."""
        return {name: text.replace(PLACEHOLDER, self.venv) for name, text in variables.items()}

    def release(self) -> None:
        """Give it up: from then on it may be removed. Forked processes keep a hold of their own."""
        if self.hold != -1:
            os.close(self.hold)


def bare(spec: Spec) -> Environment:
    """The interpreter of a specification without packages. Raises PlatformError."""
    found = spec.interpreter()
    stamp = spec.stamp(found) if spec.python else ""
    return Environment(found.python, found.version, found.binds, (*FLAGS, NO_SITE), stamp=stamp)
