"""Pipes, exits and the end of sandboxed process trees, on every tier this machine has."""

from __future__ import annotations

import os
import secrets
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from grading.engine.child import Child
from grading.engine.drain import drain
from grading.engine.isolation import TIERS
from grading.engine.outcome import PlatformError
from grading.engine.sandbox import Sandbox
from grading.engine.usage import children, tree_usage
from grading.engine.workdir import PREFIX, make_workdir, remove_abandoned, remove_tree

pytestmark = pytest.mark.sandbox
WAIT_S = 20
CHECKOUT = str(Path(__file__).resolve().parents[2])

# Leaves a daemon with a marker in its arguments and an empty environment, then stays or ends.
# The daemon itself says that it runs: in the middle of an exec a process has no arguments.
DAEMON = """
import os, sys, time
marker, stay = sys.argv[1:]
reader, writer = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.set_inheritable(writer, True)
        code = f"import os, time; os.write({writer}, b'x'); time.sleep(600)"
        os.execve(sys.executable, [sys.executable, "-S", "-c", code, marker], {})
    os._exit(0)
os.wait()
os.read(reader, 1)
os.write(1, b"ready")
if stay == "stay":
    time.sleep(600)
"""


@pytest.fixture(scope="module", params=TIERS)
def sandbox(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    made = Sandbox("t", isolation=request.param, cache_root=tmp_path_factory.mktemp("cache"))
    try:
        made.ensure()
    except PlatformError as error:
        pytest.skip(str(error))
    return made


def read(fd: int, wanted: int) -> bytes:
    """``wanted`` bytes, or what came before the end of the stream."""
    data = b""
    while len(data) < wanted:
        assert select.select([fd], [], [], WAIT_S)[0], f"nothing more after {data!r}"
        more = os.read(fd, wanted - len(data))
        if not more:
            break
        data += more
    return data


def wait_for(true: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(0.005)


def ended(child: Child) -> int:
    wait_for(lambda: child.poll() is not None, "the child did not end")
    code = child.poll()
    assert code is not None
    return code


def having(marker: str) -> list[int]:
    """Processes with the marker in their arguments, zombies included by their parent."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            arguments = Path("/proc", name, "cmdline").read_bytes()
        except OSError:
            continue
        if marker.encode() in arguments:
            found.append(int(name))
    return found


def own_workdirs() -> list[str]:
    mine = f"-{os.getpid()}-"
    return [
        name
        for name in os.listdir(tempfile.gettempdir())
        if name.startswith(PREFIX) and mine in name
    ]


def test_four_pipes(sandbox: Sandbox) -> None:
    code = (
        "import os; n = int(os.environ['EVALSITE_CAPTURE_FD']); os.write(n, b'capture');"
        "os.write(1, os.read(0, 5)); os.write(2, b'err')"
    )
    with sandbox.start(["-c", code]) as child:
        os.write(child.stdin_fd, b"hello")
        assert read(child.stdout_fd, 99) == b"hello"
        assert read(child.stderr_fd, 99) == b"err"
        assert read(child.capture_fd, 99) == b"capture"
        assert ended(child) == 0


def test_host_ends_do_not_block(sandbox: Sandbox) -> None:
    with sandbox.start(["-c", "input()"]) as child:
        fds = [child.stdin_fd, child.stdout_fd, child.stderr_fd, child.capture_fd]
        assert [os.get_blocking(fd) for fd in fds] == [False] * 4
        with pytest.raises(BlockingIOError):
            os.read(child.stdout_fd, 1)
        child.close_stdin()
        assert ended(child) == 1


def test_only_its_own_descriptors_reach_it(sandbox: Sandbox) -> None:
    reader, writer = os.pipe()
    try:
        os.set_inheritable(writer, True)
        code = (
            "import os; r = os.open('/', os.O_RDONLY); os.close(r); found = [];\n"
            "for n in range(3, 256):\n"
            "    try: os.fstat(n); found.append(n)\n"
            "    except OSError: pass\n"
            "print(found == [int(os.environ['EVALSITE_CAPTURE_FD'])], found)"
        )
        with sandbox.start(["-c", code]) as child:
            assert read(child.stdout_fd, 4) == b"True"
    finally:
        os.close(reader)
        os.close(writer)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("raise SystemExit(3)", 3),
        ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL),
        ("import os; os.abort()", -signal.SIGABRT),
    ],
)
def test_exit_status(sandbox: Sandbox, code: str, expected: int) -> None:
    with sandbox.start(["-c", code]) as child:
        assert ended(child) == expected
    assert child.poll() == expected


@pytest.mark.parametrize("stay", ["stay", "leave"])
def test_kill_takes_a_daemon_along(sandbox: Sandbox, stay: str) -> None:
    before = set(children(os.getpid()))
    marker = secrets.token_hex(12)
    with sandbox.start(["-c", DAEMON, marker, stay], allow_processes=True) as child:
        assert read(child.stdout_fd, 5) == b"ready"
        if stay == "leave":
            ended(child)
            if sandbox.tier == "rlimit":
                assert having(marker), "the daemon did not outlive its parent"
        else:
            assert having(marker)
    assert having(marker) == []
    assert set(children(os.getpid())) <= before


def test_kill_leaves_other_children_alone(sandbox: Sandbox) -> None:
    # One of them a daemon of ours that was started while the sandboxed process ran.
    with sandbox.start(["-c", "input()"]) as child:
        marker = secrets.token_hex(12)
        other = subprocess.Popen(
            [sys.executable, "-c", DAEMON, marker, "stay"], stdout=subprocess.PIPE
        )
        try:
            assert other.stdout and other.stdout.read(5) == b"ready"
            daemons = [pid for pid in having(marker) if pid != other.pid]
            child.kill()
            assert other.poll() is None
            assert daemons and set(daemons) <= set(having(marker))
        finally:
            for pid in having(marker):
                os.kill(pid, signal.SIGKILL)
            other.wait()
            if other.stdout:
                other.stdout.close()
            for pid in daemons:
                if pid in children(os.getpid()):
                    os.waitpid(pid, 0)


def test_kill_is_quick_and_may_be_repeated(sandbox: Sandbox) -> None:
    code = (
        "import signal\nfor n in (1, 2, 3, 15): signal.signal(n, signal.SIG_IGN)\n"
        "print(flush=True)\nwhile 1: pass"
    )
    child = sandbox.start(["-c", code])
    read(child.stdout_fd, 1)
    started = time.monotonic()
    child.kill()
    child.kill()
    assert time.monotonic() - started < 2
    assert child.poll() == -signal.SIGKILL


def test_a_child_that_is_stopped_is_killed(sandbox: Sandbox) -> None:
    before = set(children(os.getpid()))
    code = "import os; os.write(1, b'x'); os.kill(os.getpid(), 19)"
    with sandbox.start(["-c", code]) as child:
        read(child.stdout_fd, 1)
    assert set(children(os.getpid())) <= before


def test_immediate_kills_leave_nothing(sandbox: Sandbox) -> None:
    before = set(children(os.getpid()))
    fds = os.listdir("/proc/self/fd")
    for number in range(60):
        marker = secrets.token_hex(12)
        child = sandbox.start(["-c", "while 1: pass", marker])
        if number % 3:
            time.sleep(0.001 * number / 3)
        child.kill()
        assert having(marker) == []
    assert set(children(os.getpid())) <= before
    assert len(os.listdir("/proc/self/fd")) == len(fds)
    assert own_workdirs() == []


def test_usage_counts_cpu_and_memory(sandbox: Sandbox) -> None:
    code = "b = bytearray(50 << 20)\nfor i in range(3_000_000): pass\nprint(flush=True)\ninput()"
    with sandbox.start(["-c", code]) as child:
        read(child.stdout_fd, 1)
        usage = child.usage()
        assert 50 << 20 < usage.peak_bytes < 200 << 20
        assert 0.02 < usage.cpu_s < 10
        assert usage.wait_s is None or 0 <= usage.wait_s < WAIT_S
        os.write(child.stdin_fd, b"\n")
        ended(child)
        after = child.usage()
        assert after.peak_bytes == usage.peak_bytes
        assert after.cpu_s >= usage.cpu_s - 0.05


def test_usage_of_no_process() -> None:
    assert tree_usage(2**30).cpu_s == 0
    assert tree_usage(2**30).wait_s is None


STARTER = """
import sys
sys.path.insert(0, {checkout!r})
import shutil
which = shutil.which
shutil.which = lambda name, *rest: None if name == {without!r} else which(name, *rest)
from grading.engine.sandbox import Sandbox
s = Sandbox("t", isolation={tier!r}, cache_root={cache!r})
s.ensure()
child = s.start(["-c", "print(flush=True)\\nwhile 1: pass", {marker!r}])
import select
select.select([child.stdout_fd], [], [], 20)
print("ready", flush=True)
input()
"""


@pytest.mark.parametrize("without", ["", "setpriv"])
def test_a_killed_parent_takes_its_child_along(
    sandbox: Sandbox, without: str, tmp_path: Path
) -> None:
    marker = secrets.token_hex(12)
    code = STARTER.format(
        checkout=CHECKOUT, without=without, tier=sandbox.tier, cache=str(tmp_path), marker=marker
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert parent.stdin and parent.stdout
    try:
        assert parent.stdout.readline() == b"ready\n"
        # The parent's own arguments hold the marker too.
        assert len(having(marker)) >= 2
    finally:
        parent.kill()
        parent.wait()
        parent.stdin.close()
        parent.stdout.close()
    wait_for(lambda: not having(marker), "the child outlived its parent")
    remove_abandoned()
    assert not [name for name in os.listdir(tempfile.gettempdir()) if f"-{parent.pid}-" in name]


def test_a_program_that_is_not_there() -> None:
    fds = len(os.listdir("/proc/self/fd"))
    with pytest.raises(PlatformError, match="cannot start /no/such/program"):
        Child(["/no/such/program"], {}, namespaced=False)
    assert len(os.listdir("/proc/self/fd")) == fds


def test_remove_tree_at_any_depth(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    top = make_workdir()
    (Path(top) / "link").symlink_to(outside)
    (Path(top) / ".moved-1").mkdir()
    closed = Path(top, "closed", "inner")
    closed.mkdir(parents=True)
    (closed / "file").write_text("x")
    fd = os.open(top, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=fd)
        os.symlink(outside, "link-" + "x" * 100, dir_fd=fd)
        deeper = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = deeper
    os.close(fd)
    closed.chmod(0)
    closed.parent.chmod(0)
    remove_tree(top)
    assert not os.path.exists(top)
    assert (outside / "kept").read_text() == "x"


def test_remove_tree_does_not_follow_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    remove_tree(str(tmp_path / "link"))
    assert (tmp_path / "real").is_dir()


def test_remove_abandoned_keeps_those_of_the_living() -> None:
    mine = make_workdir()
    try:
        remove_abandoned()
        assert os.path.isdir(mine)
    finally:
        remove_tree(mine)


def test_threads_start_children_that_are_their_own(sandbox: Sandbox) -> None:
    def run(number: int) -> bytes:
        with sandbox.start(["-c", f"print({number})"]) as child:
            return drain(child, 20).stdout

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(run, range(24))) == [f"{number}\n".encode() for number in range(24)]
