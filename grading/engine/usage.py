"""What a process tree has used so far, read from /proc (see proc(5))."""

from __future__ import annotations

import os
from dataclasses import dataclass

_READ_BYTES = 65536
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU seconds of the tree, longest run-queue delay in seconds, largest peak RSS in bytes.

    ``wait_s`` is how long the unluckiest process of the tree was runnable without a core;
    None where the kernel keeps no schedstat.
    """

    cpu_s: float = 0.0
    wait_s: float | None = None
    peak_bytes: int = 0


def tree_usage(pid: int) -> Usage:
    """Usage of ``pid`` and its descendants; zeros for what is gone already."""
    return usage_of(pid, *descendants(pid))


def usage_of(*pids: int) -> Usage:
    """Usage of these processes together; zeros for what is gone already."""
    waits = [wait for wait in map(_wait_s, pids) if wait is not None]
    return Usage(
        cpu_s=sum(map(_cpu_s, pids)),
        wait_s=max(waits, default=None),
        peak_bytes=max(map(_peak_bytes, pids)),
    )


def total_wait_s(*pids: int) -> float:
    """Sum of the run-queue delays of these processes in seconds; 0 where not counted."""
    return sum(_wait_s(pid) or 0.0 for pid in pids)


def descendants(pid: int) -> list[int]:
    """Process ids below ``pid``, parents before their children; empty where /proc has none."""
    found = children(pid)
    for child in found:
        found += children(child)
    return found


def children(pid: int) -> list[int]:
    """Direct children of a process, whichever of its threads started them."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    return [
        int(child) for thread in threads for child in _read(pid, f"task/{thread}/children").split()
    ]


def _cpu_s(pid: int) -> float:
    """Own time and that of children already reaped: each process is counted once."""
    # The command name before the last ")" may hold blanks and brackets.
    fields = _read(pid, "stat").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / _TICKS_PER_S


def _wait_s(pid: int) -> float | None:
    fields = _read(pid, "schedstat").split()
    return int(fields[1]) / 1e9 if len(fields) > 1 else None


def _peak_bytes(pid: int) -> int:
    for line in _read(pid, "status").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def _read(pid: int, name: str) -> str:
    try:
        descriptor = os.open(f"/proc/{pid}/{name}", os.O_RDONLY)
    except OSError:
        return ""
    try:
        parts = list(iter(lambda: os.read(descriptor, _READ_BYTES), b""))
    except OSError:
        return ""
    finally:
        os.close(descriptor)
    return b"".join(parts).decode(errors="replace")
