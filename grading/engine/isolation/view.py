"""What a sandboxed process gets to see of the host."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class View:
    """Host paths.

    ``binds`` are what the interpreter needs, ``extra`` what the caller wants to be read;
    ``hidden`` are covered where the system's or the interpreter's files contain them.

    ``version`` of the interpreter, like ``3.11.7``, where it is known.

    ``workdir`` is a directory of the host that the process may write and starts in; None
    where the tier provides one that lives and ends with the process.
    """

    python: str
    binds: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    workdir: str | None = None
    version: str = ""
