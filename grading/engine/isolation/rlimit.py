"""Resource limits, which apply in every tier; the tier ``rlimit`` has no others of its own."""

from __future__ import annotations

import os
import resource

from grading.engine.limits import Limits


def rlimits(limits: Limits, running: int = 0) -> list[tuple[int, int]]:
    """(resource number, value) pairs to set as soft and hard limit inside the process.

    ``running`` is how many processes and threads count against the process limit already.
    A value never exceeds the hard limit in force here, since raising that is not allowed.
    """
    wanted = [
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, limits.cpu_s),
        (resource.RLIMIT_FSIZE, limits.file_size_bytes),
        (resource.RLIMIT_STACK, limits.stack_bytes),
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_NPROC, limits.processes + running),
    ]
    if limits.address_space_bytes is not None:
        wanted.append((resource.RLIMIT_AS, limits.address_space_bytes))
    return [(which, _at_most(value, resource.getrlimit(which)[1])) for which, value in wanted]


def _at_most(value: int, hard: int) -> int:
    return value if hard == resource.RLIM_INFINITY else min(value, hard)


def running_tasks(user: int) -> int:
    """Processes and threads of a user now: what RLIMIT_NPROC counts on this host."""
    total = 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        total += _threads_of(user, f"/proc/{name}")
    return total


def _threads_of(user: int, directory: str) -> int:
    try:
        if os.stat(directory).st_uid != user:
            return 0
        return len(os.listdir(f"{directory}/task"))
    except OSError:
        return 0
