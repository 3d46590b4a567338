"""Live attacks on this host's sandbox, run where they can do no harm.

``run(tiers)`` starts ``python -m grading.engine.selfcheck`` inside namespaces that are thrown
away: the bait (a secret, a file, listeners, a process of the same user) exists there only.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from grading.engine.grade import grade
from grading.engine.isolation import NoTier
from grading.engine.isolation.findings import Finding, findings
from grading.engine.outcome import PlatformError
from grading.engine.sandbox import Sandbox
from grading.engine.task import Generation, Task

_CHECKOUT = Path(__file__).resolve().parent.parent.parent
_TIMEOUT_S = 300
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1

# In front of every attack. `call` is for system calls that Python has no function for.
_HEAD = """
import os
BAIT = {bait!r}
def call(name, *args):
    import ctypes
    library = ctypes.CDLL(None, use_errno=True)
    result = getattr(library, name)(*args)
    if result == -1:
        raise OSError(ctypes.get_errno(), name)
    return result
"""

_FORGED = "pass by a lying object"
_LAST = "end every process in reach"
# Each returns True where it achieved what it must not; to raise is to have failed.
ATTACKS = {
    "start a process": "if call('fork') == 0: os._exit(0)\nreturn True",
    "memory outside the limit (memfd)": "return os.memfd_create('x') >= 0",
    "shared memory that outlives it": "return call('shmget', 0, 4096, 0o1600) >= 0",
    "connect to a port of the host": (
        "import _socket\n_socket.socket(2, 1).connect(('127.0.0.1', BAIT['port']))\nreturn True"
    ),
    "connect to a socket file": (
        "import _socket\n_socket.socket(1, 1).connect(BAIT['socket'])\nreturn True"
    ),
    "send to a socket file": (
        "import _socket\n_socket.socketpair(1, 2)[0].sendto(b'x', BAIT['datagrams'])\nreturn True"
    ),
    "connect to an abstract socket": (
        "import _socket\n_socket.socket(1, 1).connect(BAIT['abstract'].encode())\nreturn True"
    ),
    "read a file of the host": "return BAIT['word'] in open(BAIT['file']).read()",
    "change a file of the host": "open(BAIT['file'], 'a').write('x')\nreturn True",
    "change the mode of a host's file": "os.chmod(BAIT['file'], 0o600)\nreturn True",
    "read the worker's environment": (
        "return any(BAIT['word'] in open(f'/proc/{pid}/environ').read() for pid in BAIT['pids'])"
    ),
    "look into the worker's memory": (
        "for pid in BAIT['pids']: os.open(f'/proc/{pid}/mem', os.O_RDONLY)\nreturn True"
    ),
    "a namespace with new privileges": "return call('unshare', 0x10000000) == 0",
    "mount": "return call('mount', b'none', b'/tmp', b'tmpfs', 0, None) == 0",
    "leave its core": (
        "before = os.sched_getaffinity(0)\n"
        "os.sched_setaffinity(0, range(os.cpu_count()))\nreturn True"
    ),
    "fill the disk": (
        "for n in range(256): open(f'fill{n}', 'wb').write(bytes(1 << 20))\nreturn True"
    ),
    _FORGED: ("class Lie:\n    __eq__ = __bool__ = lambda *_: True\nreturn Lie()"),
    "stop a neighbour": "os.kill(BAIT['neighbour'], 9)\nreturn True",
    _LAST: "os.kill(-1, 9)\nreturn True",
}


@dataclass(frozen=True, slots=True)
class Result:
    """How one attack ended on one tier: stopped or not, and by what."""

    tier: str
    attack: str
    stopped: bool
    detail: str


@dataclass(frozen=True, slots=True)
class TierReport:
    """One tier on this host; ``findings`` is what it lacks, or why it does not work."""

    tier: str
    works: bool
    hardening: tuple[str, ...]
    findings: tuple[Finding, ...]


def look(tiers: Sequence[str]) -> list[TierReport]:
    """Probe each tier with the interpreter and files of real runs; about 0.2 s each."""
    return [_look(tier) for tier in tiers]


def _look(tier: str) -> TierReport:
    sandbox = Sandbox("check", isolation=tier)
    try:
        sandbox.ensure()
    except NoTier as problem:
        return TierReport(tier, False, (), tuple(findings(tier, (), problem.probes, works=False)))
    return TierReport(tier, True, tuple(sandbox.hardening), tuple(sandbox.findings()))


def missing(in_force: Sandbox, reports: Sequence[TierReport]) -> list[str]:
    """One line for each thing that is not in force, those of better tiers included."""
    broken = [finding for report in reports if not report.works for finding in report.findings]
    lines = [finding.line() for finding in (*broken, *in_force.findings())]
    return list(dict.fromkeys(lines))


def run(tiers: Sequence[str]) -> list[Result]:
    """Every attack on every one of these tiers.

    Raises PlatformError where no throw-away namespace can be made: then none is tried.
    """
    command = [*throw_away(), sys.executable, "-m", "grading.engine.selfcheck", *tiers]
    try:
        done = subprocess.run(
            command, cwd=_CHECKOUT, capture_output=True, text=True, timeout=_TIMEOUT_S
        )
    except (OSError, subprocess.SubprocessError) as problem:
        raise PlatformError(f"the attacks could not be run: {problem}") from problem
    results = read_results(done.stdout)
    if done.returncode != 0 and not results:
        said = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        raise PlatformError(f"the attacks could not be run in a namespace of their own: {said[0]}")
    return results


def read_results(text: str) -> list[Result]:
    """What :func:`main` printed."""
    return [Result(**json.loads(line)) for line in text.splitlines()]


def throw_away() -> list[str]:
    """In front of a command: namespaces in which all processes and ports are its own."""
    unshare = shutil.which("unshare")
    if not unshare:
        raise PlatformError("the attacks need unshare (util-linux) for a place of their own")
    user = [] if os.getuid() == 0 else ["--user", "--map-current-user", "--keep-caps"]
    spaces = ["--pid", "--fork", "--mount-proc", "--net", "--ipc", "--uts", "--kill-child"]
    return [unshare, *user, *spaces, "--"]


def main(tiers: Sequence[str]) -> None:
    """Inside: prepare the bait, attack, print one JSON line per result."""
    with _bait() as bait:
        for tier in tiers:
            sandbox = Sandbox("selfcheck", isolation=tier, cache_root=str(bait["directory"]))
            sandbox.ensure()
            for attack, body in ATTACKS.items():
                result = _attack(sandbox, attack, body, bait)
                sys.stdout.write(json.dumps(asdict(result)) + "\n")
                sys.stdout.flush()


def _attack(sandbox: Sandbox, attack: str, body: str, bait: dict[str, object]) -> Result:
    if attack == _LAST and not _holds_signals_back(sandbox):
        # Getting through, it would end this check as well.
        return Result(sandbox.tier, attack, False, "not tried: nothing here stops it")
    lines = "\n".join("    " + line for line in body.splitlines())
    program = f"{_HEAD.format(bait=bait)}\ndef attack():\n{lines}\n"
    target = "attack() == 1" if attack == _FORGED else "attack() is True"
    # The denylist is a label for honest programs: what is tried here are the walls behind it.
    task = Task(targets=(target,), timeout_s=5.0, denylist=())
    try:
        verdict = grade(task, Generation(program), sandbox)
    except PlatformError as problem:
        return Result(sandbox.tier, attack, False, str(problem))
    return Result(sandbox.tier, attack, verdict.outcome != "pass", verdict.detail)


def _holds_signals_back(sandbox: Sandbox) -> bool:
    kept = {"seccomp", "landlock-signals"} & set(sandbox.hardening)
    return sandbox.tier != "rlimit" or bool(kept)


@contextlib.contextmanager
def _bait() -> Iterator[dict[str, object]]:
    """Things that a program must not reach."""
    word = secrets.token_hex(16)
    os.environ["EVALSITE_BAIT"] = word
    _raise_loopback()
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="evalsite-bait-"))
        file = Path(directory, "file")
        file.write_text(word)
        port = stack.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]
        abstract = f"\0evalsite-{word}"
        for address in (f"{directory}/socket", abstract):
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(address)
            listener.listen()
        datagrams = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        datagrams.bind(f"{directory}/datagrams")
        sleeper = [sys.executable, "-S", "-c", "import time; time.sleep(600)", word]
        neighbour = stack.enter_context(subprocess.Popen(sleeper))
        stack.callback(neighbour.kill)
        yield {
            "word": word,
            "file": str(file),
            "port": port,
            "socket": f"{directory}/socket",
            "datagrams": f"{directory}/datagrams",
            "abstract": abstract,
            "neighbour": neighbour.pid,
            "pids": [os.getpid(), neighbour.pid],
            "directory": directory,
        }


def _raise_loopback() -> None:
    """A new network namespace has a loopback interface that is down."""
    with socket.socket() as any_socket:
        request = struct.pack("16sh14x", b"lo", 0)
        answer = fcntl.ioctl(any_socket, _SIOCGIFFLAGS, request)
        flags = struct.unpack("16sh14x", answer)[1] | _IFF_UP
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags))


if __name__ == "__main__":
    main(sys.argv[1:])
