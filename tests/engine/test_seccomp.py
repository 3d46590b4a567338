"""The system call filter: its tables, its verdicts by a machine of our own, and in force."""

from __future__ import annotations

import platform
import re
import struct
from pathlib import Path

import pytest

from grading.engine import Generation, Outcome, Sandbox, Task, Verdict, grade
from grading.engine.isolation import TIERS, seccomp
from grading.engine.isolation.findings import findings
from grading.engine.isolation.syscalls import ARCHITECTURES, NUMBERS
from grading.engine.outcome import PlatformError

MACHINES = sorted(NUMBERS)
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
THREAD = 0x10000
LOOSE = seccomp.Policy(allow_processes=True)
SHARED = seccomp.Policy(own_files=False)
ONLY = seccomp.Policy(only_self=True)


def verdict(program: bytes, number: int, architecture: int, args: tuple[int, ...] = ()) -> int:
    """What classic BPF answers for one call; struct seccomp_data as the kernel fills it."""
    data = struct.pack("<IIQ", number, architecture, 0)
    data += struct.pack("<6Q", *args, *[0] * (6 - len(args)))
    steps = list(struct.iter_unpack("<HBBI", program))
    at = accumulator = 0
    while True:
        code, on_true, on_false, value = steps[at]
        at += 1
        if code == 0x06:
            return value
        if code == 0x20:
            accumulator = struct.unpack_from("<I", data, value)[0]
        elif code == 0x54:
            accumulator &= value
        else:
            holds = {
                0x15: accumulator == value,
                0x35: accumulator >= value,
                0x45: bool(accumulator & value),
            }[code]
            at += on_true if holds else on_false


def ask(machine: str, policy: seccomp.Policy, name: str, *args: int) -> int:
    program = seccomp.program(policy, machine)
    return verdict(program, NUMBERS[machine][name], ARCHITECTURES[machine], args)


@pytest.mark.parametrize("machine", MACHINES)
def test_numbers_are_those_of_the_kernels_headers(machine: str) -> None:
    if not HEADERS[machine].exists():
        pytest.skip("needs the kernel's headers")
    pattern = r"#define __NR(?:3264)?_(\w+)\s+(\d+)"
    defined = dict(re.findall(pattern, HEADERS[machine].read_text()))
    known = {name: number for name, number in NUMBERS[machine].items() if name in defined}
    assert len(known) > 80
    assert {name: int(defined[name]) for name in known} == known


@pytest.mark.parametrize("machine", MACHINES)
def test_every_refused_call_has_a_number_somewhere(machine: str) -> None:
    for name in (*seccomp.REFUSED, *seccomp.FILE_ATTRIBUTES):
        assert any(name in numbers for numbers in NUMBERS.values()), name
    assert len(set(NUMBERS[machine].values())) == len(NUMBERS[machine])


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("policy", [seccomp.Policy(), LOOSE, SHARED, ONLY])
def test_programs_are_well_formed(machine: str, policy: seccomp.Policy) -> None:
    program = seccomp.program(policy, machine)
    steps = list(struct.iter_unpack("<HBBI", program))
    assert len(program) % 8 == 0 and len(steps) <= 4096
    assert steps[-1][0] == 0x06
    for at, (code, on_true, on_false, _) in enumerate(steps):
        if code in (0x15, 0x35, 0x45):
            assert at + 1 + max(on_true, on_false) < len(steps)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("policy", [seccomp.Policy(), LOOSE, SHARED, ONLY])
def test_lists_are_refused_and_others_allowed(machine: str, policy: seccomp.Policy) -> None:
    for name in seccomp.REFUSED:
        if name in NUMBERS[machine]:
            assert ask(machine, policy, name) == seccomp.EPERM, name
    for name in seccomp.FILE_ATTRIBUTES:
        if name in NUMBERS[machine]:
            expected = seccomp.ALLOW if policy.own_files else seccomp.EPERM
            assert ask(machine, policy, name) == expected, name
    assert ask(machine, policy, "clone3") == seccomp.ENOSYS
    program = seccomp.program(policy, machine)
    listed = set(NUMBERS[machine].values())
    for number in set(range(330)) - listed:
        if machine == "x86_64" or number > 0:
            assert verdict(program, number, ARCHITECTURES[machine]) == seccomp.ALLOW, number


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("policy", "name", "args", "allowed"),
    [
        (seccomp.Policy(), "clone", (THREAD | 0x100,), True),
        (seccomp.Policy(), "clone", (17,), False),
        (LOOSE, "clone", (17,), True),
        *[(LOOSE, "clone", (17 | 1 << bit,), False) for bit in (17, 25, 26, 27, 28, 29, 30)],
        (seccomp.Policy(), "clone", (THREAD | 1 << 28,), False),
        (LOOSE, "ioctl", (0, 0x5412), False),
        (LOOSE, "ioctl", (0, 0xFFFFFFFF_00005412), False),
        (LOOSE, "ioctl", (0, 0x8901), False),
        (LOOSE, "ioctl", (0, 0x5401), True),
        (LOOSE, "fcntl", (3, 8), False),
        (LOOSE, "fcntl", (3, 1030), True),
        (LOOSE, "prlimit64", (0, 7, 1 << 40), True),
        (LOOSE, "prlimit64", (5, 7, 0), False),
        (LOOSE, "prlimit64", (0, 15, 0), True),
        (LOOSE, "prlimit64", (0, 15, 1 << 40), False),
        (LOOSE, "prlimit64", (0, 15, 1), False),
        (LOOSE, "setrlimit", (15, 1), False),
        (LOOSE, "setrlimit", (7, 1), True),
        (LOOSE, "setpriority", (0, 0, 5), True),
        (LOOSE, "setpriority", (0, 9, 5), False),
        (LOOSE, "setpriority", (2, 0, 5), False),
        (LOOSE, "socketpair", (1, 1), True),
        (LOOSE, "socketpair", (1, 0o2004001), True),
        (LOOSE, "socketpair", (1, 5), True),
        (LOOSE, "socketpair", (1, 2), False),
        (LOOSE, "socketpair", (1, 0o2000002), False),
        (LOOSE, "socketpair", (2, 1), False),
        (LOOSE, "kill", (1, 9), True),
        (ONLY, "kill", (seccomp.OWN_PID, 9), True),
        (ONLY, "kill", (78, 9), False),
        (ONLY, "kill", (0xFFFFFFFF, 9), False),
        (ONLY, "kill", (0, 9), False),
        (ONLY, "tgkill", (seccomp.OWN_PID, 80, 9), True),
        (ONLY, "tgkill", (1, 1, 9), False),
        (ONLY, "tkill", (seccomp.OWN_PID, 9), False),
        (LOOSE, "tkill", (77, 9), True),
        (SHARED, "openat", (0, 1, 0o1000), False),
        (SHARED, "openat", (0, 1, 0o1001), True),
        (SHARED, "openat", (0, 1, 0), True),
        (LOOSE, "openat", (0, 1, 0o1000), True),
    ],
)
def test_arguments_decide(
    machine: str, policy: seccomp.Policy, name: str, args: tuple[int, ...], allowed: bool
) -> None:
    expected = seccomp.ALLOW if allowed else seccomp.EPERM
    assert ask(machine, policy, name, *args) == expected


def test_forks_by_their_old_names() -> None:
    for name in ("fork", "vfork"):
        assert ask("x86_64", seccomp.Policy(), name) == seccomp.EPERM
        assert ask("x86_64", LOOSE, name) == seccomp.ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_a_foreign_calling_convention_kills(machine: str) -> None:
    program = seccomp.program(seccomp.Policy(), machine)
    other = ARCHITECTURES[next(name for name in MACHINES if name != machine)]
    i386 = 0x40000003
    assert verdict(program, 1, other) == seccomp.KILL
    assert verdict(program, 1, i386) == seccomp.KILL
    assert verdict(program, 0x40000000, ARCHITECTURES[machine]) == seccomp.KILL


def test_an_unknown_machine_has_no_filter_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert not seccomp.supported()
    told = {finding.what: finding for finding in findings("bwrap", ["landlock"], [])}
    assert "no table of system calls for riscv64" in told["seccomp"].cause
    made = Sandbox("t")
    made.ensure()
    assert "seccomp" not in made.hardening
    assert grade(Task(targets=("f() == 1",)), Generation("def f(): return 1"), made).score == 1


# --- in force ----------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=TIERS)
def filtered(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    made = Sandbox("t", isolation=request.param, cache_root=tmp_path_factory.mktemp("cache"))
    try:
        made.ensure()
    except PlatformError as error:
        pytest.skip(str(error))
    if "seccomp" not in made.hardening:
        pytest.skip("this host has no system call filter")
    return made


CALL = """
import os, errno
def call(name, *args):
    import ctypes
    library = ctypes.CDLL(None, use_errno=True)
    if getattr(library, name)(*args) == -1:
        return errno.errorcode[ctypes.get_errno()]
    return "done"
def tried(function, *args):
    try:
        function(*args)
    except OSError as problem:
        return errno.errorcode[problem.errno]
    return "done"
"""


def run(sandbox: Sandbox, program: str, *targets: str, allow_processes: bool = False) -> Verdict:
    task = Task(targets=targets, timeout_s=10, denylist=(), allow_processes=allow_processes)
    return grade(task, Generation(CALL + program), sandbox)


def test_calls_are_refused(filtered: Sandbox) -> None:
    program = (
        "import _socket\n"
        "def f(): return [\n"
        "    call('fork'), call('vfork'), call('unshare', 0), call('memfd_create', b'x', 0),\n"
        "    call('shmget', 0, 4096, 0o1600), call('ptrace', 0, 0, 0, 0), call('chroot', b'/'),\n"
        "    tried(_socket.socket, 1, 1), tried(os.sched_setaffinity, 0, [0]),\n"
        "    tried(os.setpriority, os.PRIO_USER, 0, 5),\n"
        "]"
    )
    verdict = run(filtered, program, "f() == ['EPERM'] * 10")
    assert verdict.outcome is Outcome.PASS, verdict.detail


def test_threads_socket_pairs_and_event_loops_stay(filtered: Sandbox) -> None:
    program = (
        "import asyncio, _socket, threading\n"
        "async def later():\n    await asyncio.sleep(0.01)\n    return 1\n"
        "def f():\n"
        "    seen = []\n"
        "    thread = threading.Thread(target=seen.append, args=(1,))\n"
        "    thread.start(); thread.join()\n"
        "    _socket.socketpair()\n"
        "    os.kill(os.getpid(), 0)\n"
        "    return seen + [asyncio.run(later())]"
    )
    verdict = run(filtered, program, "f() == [1, 1]")
    assert verdict.outcome is Outcome.PASS, verdict.detail


def test_processes_only_where_the_task_allows_them(filtered: Sandbox) -> None:
    program = (
        "def f():\n"
        "    pid = os.fork()\n"
        "    if pid == 0: os._exit(7)\n"
        "    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])\n"
        "def g(): return call('unshare', 0x10000000), call('fork') if False else 0"
    )
    allowed = run(filtered, program, "f() == 7", "g()[0] == 'EPERM'", allow_processes=True)
    assert allowed.outcome is Outcome.PASS, allowed.detail
    assert run(filtered, program, "f() == 7").outcome is Outcome.ASSERTION_FAIL


def test_the_judge_starts_no_process_even_where_the_program_may(filtered: Sandbox) -> None:
    target = "ctypes.CDLL(None).fork() == -1"
    verdict = run(filtered, "x = 1", target, allow_processes=True)
    assert verdict.outcome is Outcome.PASS, verdict.detail


def test_neighbours_get_no_signal(filtered: Sandbox) -> None:
    program = (
        "def f():\n"
        "    before = os.getppid(), tried(os.kill, -1, 0)\n"
        "    return before[1] != 'done' or os.getppid() in (0, 1)"
    )
    verdict = run(filtered, program, "f()")
    assert verdict.outcome is Outcome.PASS, verdict.detail
