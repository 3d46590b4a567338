"""The supervisor with real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evalsite import supervisor
from evalsite.supervisor import Program, StartFailed, Supervisor

ROOT = Path(__file__).resolve().parents[2]
SLEEPER = "import signal, time; print('up', flush=True); signal.pause()"


class Lines:
    """What was logged, and a way to wait for it."""

    def __init__(self) -> None:
        self.all: list[tuple[str, str]] = []
        self._changed = threading.Condition()

    def __call__(self, name: str, line: str) -> None:
        with self._changed:
            self.all.append((name, line))
            self._changed.notify_all()

    def wait_for(self, name: str, text: str, count: int = 1) -> None:
        def seen() -> bool:
            return sum(n == name and text in line for n, line in self.all) >= count

        with self._changed:
            assert self._changed.wait_for(seen, 20), f"no {count} x {name}: {text} in {self.all}"


@pytest.fixture
def lines() -> Lines:
    return Lines()


Start = Callable[..., Supervisor]


@pytest.fixture
def start(lines: Lines) -> Iterator[Start]:
    started: list[Supervisor] = []

    def run(*stages: list[Program]) -> Supervisor:
        running = Supervisor(stages, lines)
        started.append(running)
        running.start()
        return running

    yield run
    for running in started:
        running.stop()


def python(name: str, code: str, **options: object) -> Program:
    return Program(name, [sys.executable, "-c", code], **options)  # type: ignore[arg-type]


def gone(pid: int) -> bool:
    """True once the process has ended (a zombie counts), within 10 s."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def test_a_stage_starts_when_the_one_before_is_ready(
    start: Start, lines: Lines, tmp_path: Path
) -> None:
    flag = tmp_path / "ready"
    first = python(
        "first",
        f"import time; time.sleep(0.3); open({str(flag)!r}, 'w'); {SLEEPER}",
        ready=flag.exists,
    )
    second = python("second", f"import os; print('saw', os.path.exists({str(flag)!r})); {SLEEPER}")
    running = start([first], [second])
    lines.wait_for("second", "saw True")
    assert set(running.pids()) == {"first", "second"}


def test_stages_stop_in_reverse_order(start: Start, lines: Lines) -> None:
    code = (
        "import signal, sys\n"
        "def end(*_):\n    print('bye', flush=True); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, end)\nprint('up', flush=True)\nsignal.pause()"
    )
    running = start([python("broker", code)], [python("worker", code)], [python("web", code)])
    for name in ("broker", "worker", "web"):
        lines.wait_for(name, "up")
    running.stop()
    assert [name for name, line in lines.all if line == "bye"] == ["web", "worker", "broker"]


def test_a_child_that_ignores_sigterm_is_killed_after_its_grace(start: Start, lines: Lines) -> None:
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + SLEEPER
    running = start([python("deaf", deaf, grace_s=0.3)])
    lines.wait_for("deaf", "up")
    pid = running.pids()["deaf"]
    began = time.monotonic()
    running.stop()
    assert 0.3 <= time.monotonic() - began < 5
    assert gone(pid)


def test_a_dead_child_is_started_again(start: Start, lines: Lines) -> None:
    running = start([python("worker", SLEEPER)])
    lines.wait_for("worker", "up")
    first = running.pids()["worker"]
    os.kill(first, signal.SIGKILL)
    lines.wait_for("worker", "up", count=2)
    assert running.pids()["worker"] != first
    assert ("evalsite", "worker was ended by SIGKILL; starting it again") in lines.all


def test_a_vital_child_that_keeps_dying_ends_the_instance(
    start: Start, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "FIRST_DELAY_S", 0.01)
    running = start(
        [python("other", SLEEPER)], [python("web", "raise SystemExit('no port')", vital=True)]
    )
    with pytest.raises(StartFailed, match="web died 5 times within a minute; giving up"):
        running.serve()
    assert running.pids() == {}
    assert sum(line == "no port" for _, line in lines.all) == 5


def test_a_child_that_never_gets_ready_fails_the_start(start: Start) -> None:
    with pytest.raises(StartFailed, match=r"web was not ready after 0\.2 s"):
        start([python("web", SLEEPER, ready=lambda: False, ready_s=0.2)])


def test_long_and_unfinished_lines_are_passed_on(start: Start, lines: Lines) -> None:
    start([python("worker", "print('x' * 20_000 + 'end'); import sys; sys.stdout.write('tail')")])
    lines.wait_for("worker", "tail")
    assert all(len(line) <= supervisor.LINE_BYTES for _, line in lines.all)


def test_configuration_arrives_on_standard_input(start: Start, lines: Lines) -> None:
    start([python("broker", "print('got', input())", stdin=b"port 1\n")])
    lines.wait_for("broker", "got port 1")


KILLED = """
import sys
from evalsite.supervisor import Program, Supervisor
running = Supervisor([[Program("child", [sys.executable, "-c", {code!r}])]], lambda *a: None)
running.start()
print(running.pids()["child"], flush=True)
import signal; signal.pause()
"""


def test_sigkill_of_the_supervisor_leaves_no_child() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KILLED.format(code=SLEEPER)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        child = int(running.stdout.readline())
        os.kill(child, 0)
        running.kill()
    assert gone(child)
