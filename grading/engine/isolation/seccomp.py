"""The system call filter: classic BPF for seccomp(2), assembled here.

A list of what is refused, not of what is allowed: honest programs use more of the kernel than
anybody would list, and the parts of it that let a program out, reach a neighbour or outlast it
are few. Refused calls fail with EPERM; only a foreign calling convention kills.
"""

from __future__ import annotations

import errno
import platform
import struct
from dataclasses import dataclass

from grading.engine.isolation.syscalls import ARCHITECTURES, NUMBERS

# linux/bpf_common.h: load a word of the data; compare with a constant; and; return.
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06

ALLOW = 0x7FFF0000
KILL = 0x80000000
_ERRNO = 0x00050000
EPERM = _ERRNO | errno.EPERM
ENOSYS = _ERRNO | errno.ENOSYS

# Offsets into struct seccomp_data of linux/seccomp.h.
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_X32_BIT = 0x40000000
_CLONE_THREAD = 0x00010000
# CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
_CLONE_NAMESPACES = 0x7E020000
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_FIOSETOWN, _SIOCSPGRP = 0x8901, 0x8902
_F_SETOWN, _F_SETOWN_EX = 8, 15
_RLIMIT_RTTIME = 15
_O_ACCMODE, _O_TRUNC = 3, 0o1000
_AF_UNIX, _SOCK_TYPE_BITS, _SOCK_STREAM, _SOCK_SEQPACKET = 1, 0xF, 1, 5

REFUSED = (
    # the network, and sockets of neighbours; pairs of connected ones stay, see `pairs`
    "socket",
    # memory that no limit counts, and that outlasts the process
    *("memfd_create", "memfd_secret", "shmget", "shmat", "shmctl", "msgget", "msgsnd", "msgrcv"),
    *("msgctl", "semget", "semop", "semctl", "semtimedop", "mq_open", "mq_unlink"),
    # large kernel interfaces with a history
    *("io_uring_setup", "io_uring_enter", "io_uring_register", "userfaultfd", "bpf"),
    *("perf_event_open", "keyctl", "add_key", "request_key", "modify_ldt"),
    # other processes
    *("ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease"),
    *("kcmp", "pidfd_open", "pidfd_getfd", "pidfd_send_signal", "migrate_pages", "move_pages"),
    *("sched_setaffinity", "sched_setparam", "sched_setscheduler", "sched_setattr", "ioprio_set"),
    # users: root of a namespace that a container brings could become any of them
    *("setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid", "setfsuid"),
    *("setfsgid", "setgroups"),
    # namespaces and mounts
    *("unshare", "setns", "mount", "umount2", "move_mount", "open_tree", "open_tree_attr"),
    *("fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "statmount", "listmount"),
    *("pivot_root", "chroot"),
    # the host
    *("kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "swapon"),
    *("swapoff", "reboot", "sethostname", "setdomainname", "settimeofday", "clock_settime"),
    *("clock_adjtime", "adjtimex", "acct", "quotactl", "quotactl_fd", "syslog", "vhangup"),
    *("iopl", "ioperm", "personality", "lookup_dcookie"),
    # files by other ways than their path, and watching what others do with theirs
    *("open_by_handle_at", "name_to_handle_at", "fanotify_init", "inotify_init"),
    *("inotify_init1", "inotify_add_watch"),
)

# Landlock does not govern these: on a shared file system they reach whatever the user owns.
FILE_ATTRIBUTES = (
    *("chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat"),
    *("utime", "utimes", "futimesat", "utimensat", "setxattr", "lsetxattr", "fsetxattr"),
    *("setxattrat", "removexattr", "lremovexattr", "fremovexattr", "removexattrat"),
    *("truncate", "file_setattr"),
)

# Stands for the number of the process that installs the filter, which puts it in.
OWN_PID = 0x53454C46

# Their arguments lie in memory, where a filter cannot look; callers fall back on older calls.
_UNREADABLE = ("clone3", "openat2")


@dataclass(frozen=True, slots=True)
class Policy:
    """What a filter is for.

    ``own_files``: the files in sight are the sandbox's own or read-only; otherwise attributes
    of files cannot be changed. ``only_self``: signals may go to the process itself only.
    """

    allow_processes: bool = False
    own_files: bool = True
    only_self: bool = False


def supported(machine: str | None = None) -> bool:
    """Whether there is a table for this machine (64-bit x86 or ARM)."""
    return (machine or platform.machine()) in NUMBERS


def program(policy: Policy, machine: str | None = None) -> bytes:
    """The filter as an array of ``struct sock_filter``, 8 bytes each, with OWN_PID in it.

    Raises KeyError for a machine without a table: ask :func:`supported` first.
    """
    machine = machine or platform.machine()
    return _Assembler(NUMBERS[machine]).assemble(ARCHITECTURES[machine], policy)


@dataclass(frozen=True, slots=True)
class _Step:
    """One instruction; after a comparison ``on_true`` or ``on_false`` instructions are skipped."""

    code: int
    value: int
    on_true: int = 0
    on_false: int = 0


class _Assembler:
    """Collects instructions, the calls with conditions on their arguments first."""

    def __init__(self, numbers: dict[str, int]) -> None:
        self.numbers = numbers
        self.steps: list[_Step] = []

    def assemble(self, architecture: int, policy: Policy) -> bytes:
        self.load(_ARCHITECTURE)
        self.steps.append(_Step(_EQUAL, architecture, 1, 0))
        self.answer(KILL)
        self.load(_NUMBER)
        self.x32()
        self.processes(policy.allow_processes)
        self.arguments()
        self.pairs()
        if policy.only_self:
            self.signals()
        if not policy.own_files:
            self.truncation()
        names = REFUSED if policy.own_files else (*REFUSED, *FILE_ATTRIBUTES)
        self.answer_all([*names, *self.forks(policy)], EPERM)
        self.answer_all(_UNREADABLE, ENOSYS)
        self.answer(ALLOW)
        return b"".join(
            struct.pack("<HBBI", step.code, step.on_true, step.on_false, step.value)
            for step in self.steps
        )

    def load(self, offset: int) -> None:
        self.steps.append(_Step(_LOAD, offset))

    def answer(self, verdict: int) -> None:
        self.steps.append(_Step(_RETURN, verdict))

    def x32(self) -> None:
        """The 32-bit calling convention of x86_64 has numbers of its own."""
        self.steps.append(_Step(_AT_LEAST, _X32_BIT, 0, 1))
        self.answer(KILL)

    def answer_all(self, names: list[str] | tuple[str, ...], verdict: int) -> None:
        """One verdict for these calls, in runs that an 8-bit jump spans."""
        known = sorted(self.numbers[name] for name in names if name in self.numbers)
        for start in range(0, len(known), 200):
            run = known[start : start + 200]
            for index, number in enumerate(run):
                left = len(run) - index - 1
                # Past the last one of the run, a call that matched none skips the verdict.
                self.steps.append(_Step(_EQUAL, number, left, 0 if left else 1))
            self.answer(verdict)

    def only_for(self, name: str, body: list[_Step]) -> None:
        """``body`` decides about one call; a call it lets pass goes on as allowed."""
        if name not in self.numbers:
            return
        self.steps.append(_Step(_EQUAL, self.numbers[name], 0, len(body) + 1))
        self.steps += body
        self.answer(ALLOW)

    def processes(self, allowed: bool) -> None:
        flags = _Step(_LOAD, _argument(0))
        namespaces = [_Step(_ANY_BIT, _CLONE_NAMESPACES, 0, 1), _Step(_RETURN, EPERM)]
        thread = [_Step(_ANY_BIT, _CLONE_THREAD, 1, 0), _Step(_RETURN, EPERM)]
        self.only_for("clone", [flags, *namespaces, *([] if allowed else thread)])

    def forks(self, policy: Policy) -> tuple[str, ...]:
        return () if policy.allow_processes else ("fork", "vfork")

    def arguments(self) -> None:
        """Calls that are harmless but for some arguments."""
        # Typing into the terminal of whoever started the server; signals to another process by
        # way of a descriptor.
        terminal = (_TIOCSTI, _TIOCLINUX, _FIOSETOWN, _SIOCSPGRP)
        self.only_for("ioctl", _refuse_values(1, terminal))
        self.only_for("fcntl", _refuse_values(1, (_F_SETOWN, _F_SETOWN_EX)))
        # The tag that finds a run's processes again; the limits and priority of others.
        self.only_for("setrlimit", _refuse_values(0, (_RLIMIT_RTTIME,)))
        self.only_for("prlimit64", [*_require(0, 0), *_refuse_setting_rttime()])
        self.only_for("setpriority", [*_require(0, 0), *_require(1, 0)])

    def pairs(self) -> None:
        """Pairs of stream sockets, which event loops need: a datagram one reaches any address."""
        kind = [
            _Step(_LOAD, _argument(1)),
            _Step(_AND, _SOCK_TYPE_BITS),
            _Step(_EQUAL, _SOCK_STREAM, 2, 0),
            _Step(_EQUAL, _SOCK_SEQPACKET, 1, 0),
            _Step(_RETURN, EPERM),
        ]
        self.only_for("socketpair", [*_require(0, _AF_UNIX), *kind])

    def signals(self) -> None:
        """Signals to this process only: without a pid namespace all of the user's are in reach."""
        for name in ("kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"):
            self.only_for(name, _require(0, OWN_PID))
        self.answer_all(["tkill"], EPERM)

    def truncation(self) -> None:
        """Opening for reading with O_TRUNC needs no right to write in early Landlock."""
        for name, index in (("open", 1), ("openat", 2)):
            body = [
                _Step(_LOAD, _argument(index)),
                _Step(_AND, _O_ACCMODE | _O_TRUNC),
                _Step(_EQUAL, _O_TRUNC, 0, 1),
                _Step(_RETURN, EPERM),
            ]
            self.only_for(name, body)


def _argument(index: int, high: bool = False) -> int:
    """Offset of an argument's low (or high) half; both machines are little-endian."""
    return _ARGUMENTS + 8 * index + (4 if high else 0)


def _refuse_values(index: int, values: tuple[int, ...]) -> list[_Step]:
    """The kernel reads these arguments as 32 bits, so the filter does."""
    steps = [_Step(_LOAD, _argument(index))]
    for value in values:
        steps += [_Step(_EQUAL, value, 0, 1), _Step(_RETURN, EPERM)]
    return steps


def _require(index: int, value: int) -> list[_Step]:
    return [
        _Step(_LOAD, _argument(index)),
        _Step(_EQUAL, value, 1, 0),
        _Step(_RETURN, EPERM),
    ]


def _refuse_setting_rttime() -> list[_Step]:
    return [
        _Step(_LOAD, _argument(1)),
        _Step(_EQUAL, _RLIMIT_RTTIME, 0, 5),
        # A null pointer as new value only asks.
        _Step(_LOAD, _argument(2)),
        _Step(_EQUAL, 0, 0, 2),
        _Step(_LOAD, _argument(2, high=True)),
        _Step(_EQUAL, 0, 1, 0),
        _Step(_RETURN, EPERM),
    ]
