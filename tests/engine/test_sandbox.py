"""The sandbox as its callers use it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from grading.engine import locking
from grading.engine.isolation import TIERS
from grading.engine.limits import OUTPUT_BYTES, Limits
from grading.engine.outcome import PlatformError
from grading.engine.sandbox import ExecResult, Sandbox
from grading.engine.turnstile import Turnstile

pytestmark = pytest.mark.sandbox
CHECKOUT = str(Path(__file__).resolve().parents[2])


@pytest.fixture(scope="module", params=TIERS)
def sandbox(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    made = Sandbox("t", isolation=request.param, cache_root=tmp_path_factory.mktemp("cache"))
    try:
        made.ensure()
    except PlatformError as error:
        pytest.skip(str(error))
    return made


@pytest.fixture
def any_tier(tmp_path: Path) -> Sandbox:
    made = Sandbox("t", cache_root=tmp_path / "cache")
    made.ensure()
    return made


def test_an_empty_program_is_ok(any_tier: Sandbox) -> None:
    assert any_tier.run("").summary() == "ok"


def test_results(sandbox: Sandbox) -> None:
    ok = sandbox.run("import sys; print('out'); print('err', file=sys.stderr)")
    assert (ok.passed, ok.status, ok.returncode) == (True, "ok", 0)
    assert (ok.stdout, ok.stderr) == ("out\n", "err\n")
    failed = sandbox.run("raise ValueError('é')")
    assert (failed.passed, failed.status, failed.returncode) == (False, "failed", 1)
    assert failed.summary() == "ValueError: é"
    killed = sandbox.run("import os; os.kill(os.getpid(), 9)")
    assert (killed.status, killed.returncode) == ("failed", -9)
    assert killed.summary() == "failed (rc=-9)"


def test_timeout(sandbox: Sandbox) -> None:
    started = time.monotonic()
    result = sandbox.run("print('x', flush=True)\nwhile 1: pass", timeout=0.5)
    assert time.monotonic() - started < 5
    assert (result.status, result.summary(), result.returncode) == ("timeout", "timeout", None)
    assert result.stdout == "x\n"
    assert 0.5 <= result.duration < 5


def test_a_program_that_closes_its_streams_still_ends_in_time(sandbox: Sandbox) -> None:
    code = "import os, time; os.close(1); os.close(2); time.sleep(60)"
    assert sandbox.run(code, timeout=0.5).status == "timeout"


def test_too_much_output(sandbox: Sandbox) -> None:
    code = "import sys\nwhile 1: sys.stdout.write('x' * 999); sys.stderr.write('y' * 999)"
    result = sandbox.run(code)
    assert (result.passed, result.status, result.summary()) == (False, "error", "output overflow")
    assert len(result.stdout) + len(result.stderr) < OUTPUT_BYTES + 128 * 1024


def test_as_much_output_as_allowed(any_tier: Sandbox) -> None:
    code = f"import sys; sys.stdout.write('x' * {OUTPUT_BYTES})"
    result = any_tier.run(code)
    assert result.status == "ok" and len(result.stdout) == OUTPUT_BYTES
    assert any_tier.run(code + "; print()").status == "error"


def test_summary() -> None:
    def result(status: str, stdout: str = "", stderr: str = "") -> str:
        return ExecResult(False, status, stdout, stderr, 3, 0.1).summary()

    assert result("failed", "out", "one\ntwo \n\n") == "two"
    assert result("failed", "a\nb\n", " \n") == "b"
    assert result("failed") == "failed (rc=3)"
    assert result("timeout", "a", "b") == "timeout"
    assert result("failed", "", "x" * 500) == "x" * 400


def test_nothing_of_the_callers_environment_leaks(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALSITE_CANARY", "secret")
    code = "import json, os; print(json.dumps(dict(os.environ)))"
    seen = json.loads(sandbox.run(code, env={"EXTRA": "1"}).stdout)
    assert seen.pop("PATH") == f"{os.path.dirname(sandbox.python)}:/usr/local/bin:/usr/bin:/bin"
    assert os.path.isabs(seen.pop("HOME")) and os.path.isabs(seen.pop("TMPDIR"))
    assert os.path.isabs(seen.pop("PWD"))
    assert seen == {
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONHASHSEED": "0",
        "PYTHONIOENCODING": "utf-8:backslashreplace",
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "EXTRA": "1",
    }


def test_starting_without_code_adds_the_capture_variable_only(sandbox: Sandbox) -> None:
    code = "import os; print([n for n in os.environ if n.startswith(('EVAL', 'MINE'))]); input()"
    with sandbox.start(["-c", f"{code}"], extra_env={"MINE": "1"}) as child:
        child.close_stdin()
        while child.poll() is None:
            time.sleep(0.005)
        assert os.read(child.stdout_fd, 999) == b"['MINE', 'EVALSITE_CAPTURE_FD']\n"


def test_environment_of_the_sandbox(tmp_path: Path) -> None:
    made = Sandbox("t", cache_root=tmp_path, env={"A": "1", "B": "1"})
    made.ensure()
    code = "import os; print(os.environ['A'], os.environ['B'])"
    assert made.run(code, env={"B": "2"}).stdout == "1 2\n"


def test_the_program_can_write_where_it_is(sandbox: Sandbox) -> None:
    code = (
        "import os, tempfile\n"
        "open('here', 'w').close()\n"
        "open(os.path.expanduser('~/home'), 'w').close()\n"
        "tempfile.NamedTemporaryFile().close()"
    )
    assert sandbox.run(code).summary() == "ok"


def test_limits_are_in_force(sandbox: Sandbox) -> None:
    code = (
        "import resource as r\n"
        "print([r.getrlimit(n) for n in (r.RLIMIT_AS, r.RLIMIT_CPU, r.RLIMIT_FSIZE, "
        "r.RLIMIT_NOFILE, r.RLIMIT_CORE, r.RLIMIT_STACK)])"
    )
    pairs = dict(sandbox.rlimits(Limits(timeout_s=2)))
    expected = [4 << 30, 7, 64 << 20, 64, 0, 64 << 20]
    assert sandbox.run(code, timeout=2).stdout == f"{[(n, n) for n in expected]}\n"
    assert set(expected) <= set(pairs.values())


def test_memory_and_file_size_end_a_program(sandbox: Sandbox) -> None:
    assert sandbox.run("bytearray(5 << 30)").summary() == "MemoryError"
    big = "f = open('f', 'wb')\nfor _ in range(70): f.write(bytes(1 << 20))"
    assert not sandbox.run(big).passed


def test_no_address_space_limit(tmp_path: Path) -> None:
    made = Sandbox("t", cache_root=tmp_path, address_space_limit=None)
    made.ensure()
    code = "import mmap; mmap.mmap(-1, 5 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_NORESERVE)"
    assert made.run("import mmap\n" + code.replace("mmap.MAP_NORESERVE", "0x4000")).passed


def test_run_argv_in_a_directory_that_survives(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("text")
    first = sandbox.run_argv(["sh", "-c", "cat in; pwd; echo new > out"], tmp_path)
    assert first.stdout == f"text{tmp_path}\n", first
    assert sandbox.run_argv(["cat", "out"], str(tmp_path)).stdout == "new\n"


def test_run_argv_reads_extra_paths_only_when_told(tmp_path: Path) -> None:
    made = Sandbox("t", cache_root=tmp_path / "cache", isolation="bwrap")
    try:
        made.ensure()
    except PlatformError as error:
        pytest.skip(str(error))
    work, other = tmp_path / "work", tmp_path / "other"
    work.mkdir()
    other.mkdir()
    (other / "file").write_text("text")
    argv = ["cat", str(other / "file")]
    assert made.run_argv(argv, work).status == "failed"
    assert made.run_argv(argv, work, ro_binds=[other]).stdout == "text"
    write = ["sh", "-c", f"echo x > {other}/file"]
    assert "Read-only" in made.run_argv(write, work, ro_binds=[other]).summary()


def test_run_argv_names_what_is_missing(any_tier: Sandbox, tmp_path: Path) -> None:
    result = any_tier.run_argv(["no-such-tool"], tmp_path)
    assert (result.returncode, result.status) == (127, "failed")
    assert result.summary() == "cannot run no-such-tool: No such file or directory"
    with pytest.raises(PlatformError, match="/no/such does not exist"):
        any_tier.run_argv(["true"], "/no/such")
    with pytest.raises(PlatformError, match="/no/such does not exist"):
        any_tier.run_argv(["true"], tmp_path, ro_binds=["/no/such"])


def test_a_tool_dies_of_a_broken_pipe(sandbox: Sandbox, tmp_path: Path) -> None:
    # The interpreter in front ignores the signal; the tool must not inherit that.
    result = sandbox.run_argv(["sh", "-c", "yes | head -n 1"], tmp_path)
    assert (result.stdout, result.stderr) == ("y\n", "")


def test_ensure_comes_first() -> None:
    with pytest.raises(PlatformError, match=r"call ensure\(\) first"):
        Sandbox("t").run("")


def test_ensure_probes_once(any_tier: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    probes = any_tier.probes
    any_tier.ensure()
    assert any_tier.probes is probes
    any_tier.ensure(force=True, quiet=False)
    assert any_tier.probes is not probes
    assert capsys.readouterr().out.startswith(f"sandbox t: {any_tier.tier}, Python 3.")


def test_the_tier_can_be_forced_by_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("EVALSITE_TIER", "rlimit")
    made = Sandbox("t", cache_root=tmp_path)
    made.ensure()
    assert made.tier == made.isolation == "rlimit"
    assert "private-files" not in made.hardening
    monkeypatch.setenv("EVALSITE_TIER", "moon")
    with pytest.raises(PlatformError, match="unknown isolation 'moon'"):
        made.ensure(force=True)


def test_the_cache_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EVALSITE_CACHE_DIR", str(tmp_path / "a/b"))
    Sandbox("t").ensure()
    assert (tmp_path / "a/b").stat().st_mode & 0o777 == 0o711
    (tmp_path / "file").write_text("")
    with pytest.raises(PlatformError, match="set EVALSITE_CACHE_DIR"):
        Sandbox("t", cache_root=tmp_path / "file" / "x").ensure()


HOLDER = """
import sys
sys.path.insert(0, {checkout!r})
from grading.engine.turnstile import Turnstile
t = Turnstile({directory!r})
with t.{how}():
    print("in", flush=True)
    sys.stdin.readline()
"""


class Holder:
    """Another process inside the turnstile, or on its way there."""

    def __init__(self, directory: Path, how: str) -> None:
        code = HOLDER.format(checkout=CHECKOUT, directory=str(directory), how=how)
        self.process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def wait_inside(self) -> None:
        assert self.process.stdout and self.process.stdout.readline() == b"in\n"

    def __enter__(self) -> Holder:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream:
                stream.close()


def test_many_share_the_turnstile(tmp_path: Path) -> None:
    with Holder(tmp_path, "shared") as other:
        other.wait_inside()
        with Turnstile(str(tmp_path), wait_s=0.1).shared():
            pass


def test_solo_keeps_others_out_until_its_holder_dies(tmp_path: Path) -> None:
    mine = Turnstile(str(tmp_path), wait_s=0.1)
    with Holder(tmp_path, "solo") as other:
        other.wait_inside()
        with pytest.raises(PlatformError, match="waited too long"), mine.shared():
            pass
        other.process.kill()
        other.process.wait()
        with mine.shared():
            pass


def test_who_waits_is_called_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locking, "_TICK_S", 0.01)
    ticks: list[str] = []
    mine = Turnstile(str(tmp_path), wait_s=0.2)
    with Holder(tmp_path, "shared") as other:
        other.wait_inside()
        with pytest.raises(PlatformError), mine.solo(lambda: ticks.append("solo")):
            pass
    with Holder(tmp_path, "solo") as other:
        other.wait_inside()
        with pytest.raises(PlatformError):
            mine.enter(lambda: ticks.append("enter"))
    assert set(ticks) == {"solo", "enter"}


def test_solo_waits_for_running_cells_and_holds_back_new_ones(tmp_path: Path) -> None:
    with Holder(tmp_path, "shared") as running, ExitStack() as later:
        running.wait_inside()
        alone = later.enter_context(Holder(tmp_path, "solo"))
        mine = Turnstile(str(tmp_path), wait_s=0.1)
        deadline = time.monotonic() + 20
        while True:
            try:
                with mine.shared():
                    assert time.monotonic() < deadline, "solo never shut the gate"
            except PlatformError:
                break
        running.process.kill()
        alone.wait_inside()


def test_a_judge_starts_while_another_process_waits_for_its_cell_to_end(tmp_path: Path) -> None:
    mine = Turnstile(str(tmp_path), wait_s=0.1)
    with mine.shared(), Holder(tmp_path, "solo") as waiting:
        outsider = Turnstile(str(tmp_path), wait_s=0)
        deadline = time.monotonic() + 20
        while True:
            try:
                with outsider.shared():
                    assert time.monotonic() < deadline, "solo never shut the gate"
            except PlatformError:
                break
        with mine.shared():
            pass
        assert waiting.process.poll() is None


def test_cells_start_inside_solo(any_tier: Sandbox) -> None:
    with any_tier.solo():
        assert any_tier.run("").passed
    with any_tier.shared():
        assert any_tier.run("").passed


def test_a_running_cell_holds_the_turnstile(any_tier: Sandbox, tmp_path: Path) -> None:
    outside = Turnstile(str(tmp_path / "cache"), wait_s=0.1)
    child = any_tier.start(["-c", "input()"])
    with child, pytest.raises(PlatformError, match="waited too long"), outside.solo():
        pass
    with outside.solo():
        pass
