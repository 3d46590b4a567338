"""What a sandboxed process gets to see of the host."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class View:
    """Host paths; ``binds`` are read-only, ``hidden`` are covered where a bind contains them.

    ``workdir`` is a directory of the host that the process may write and starts in; None
    where the tier provides one that lives and ends with the process.
    """

    python: str
    binds: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    workdir: str | None = None
