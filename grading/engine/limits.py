"""The limits a candidate program runs under, and the caps on what is read back from it."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass

DEFAULT_TIMEOUT_S = 3.0
MAX_TIMEOUT_S = 30.0
CPU_GRACE_S = 5
STARTUP_S = 10.0
OUTPUT_BYTES = 256 * 1024
DETAIL_BYTES = 4096
STREAM_HEAD_BYTES = 4096
STREAM_TAIL_BYTES = 4096
ADDRESS_SPACE_BYTES = 4 * 1024**3
FILE_SIZE_BYTES = 64 * 1024**2
# Up to Python 3.10 every call of a Python function takes some of it: 50,000 levels fit.
STACK_BYTES = 64 * 1024**2
OPEN_FILES = 64
PROCESSES = 64
WORK_BYTES = 64 * 1024**2
# As many as a tmpfs of that size has, see the tiers that mount one.
WORK_ENTRIES = WORK_BYTES // 4096


def affordable_address_space(workers: int) -> int:
    """Bytes each program may have so that ``workers`` of them fit into this host's memory.

    ADDRESS_SPACE_BYTES where the host has that much; a program rarely touches what it reserves,
    but one that does must not take the others down.
    """
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(ADDRESS_SPACE_BYTES, memory // max(1, workers))


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one run; stored with every attempt.

    Bytes and seconds; ``address_space_bytes`` None means no cap.
    """

    timeout_s: float = DEFAULT_TIMEOUT_S
    address_space_bytes: int | None = ADDRESS_SPACE_BYTES
    output_bytes: int = OUTPUT_BYTES
    file_size_bytes: int = FILE_SIZE_BYTES
    stack_bytes: int = STACK_BYTES
    open_files: int = OPEN_FILES
    processes: int = PROCESSES
    allow_processes: bool = False

    @property
    def cpu_s(self) -> int:
        """CPU seconds: the wall limit plus a grace, so that the wall clock decides first."""
        return int(self.timeout_s + 0.999) + CPU_GRACE_S

    def as_dict(self) -> dict[str, float | int | bool | None]:
        return asdict(self) | {"cpu_s": self.cpu_s}
