"""Environments: built once, kept, replaced without disturbing anybody."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from grading.engine import environment_cache, installer
from grading.engine.environment import Environment, Spec
from grading.engine.environment_cache import prepare
from grading.engine.grade import grade
from grading.engine.outcome import Outcome, PlatformError
from grading.engine.sandbox import Sandbox
from grading.engine.task import Generation, Task
from tests.packages import make_uv, make_wheel

CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.fixture
def installations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How often the quick installer, which stands in for uv here, has installed."""
    folder = tmp_path / "bin"
    folder.mkdir()
    log = make_uv(folder)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return lambda: len(log.read_text().splitlines()) if log.exists() else 0


@pytest.fixture
def cache(tmp_path: Path) -> str:
    (tmp_path / "cache").mkdir()
    return str(tmp_path / "cache")


def builds(cache: str) -> list[str]:
    return [str(path) for path in Path(cache, "environments").glob("*/build-*/")]


def run(environment: Environment, code: str) -> str:
    command = [environment.python, *environment.flags, "-c", code]
    return subprocess.check_output(command, text=True).strip()


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} never appeared"
        time.sleep(0.01)


@pytest.fixture
def builder(cache: str) -> Iterator[Callable[[Spec], subprocess.Popen[str]]]:
    """Start another process that prepares a specification and prints its directory."""
    started = []

    def start(spec: Spec) -> subprocess.Popen[str]:
        code = (
            "import sys\nfrom grading.engine.environment import Spec\n"
            "from grading.engine.environment_cache import prepare\n"
            f"ticks = []\nspec = Spec(packages={spec.packages!r})\n"
            f"found = prepare(spec, {cache!r}, tick=lambda: ticks.append(1))\n"
            "print(found.venv, len(ticks))\n"
        )
        command = [sys.executable, "-c", code]
        process = subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_packages_come_by_venv_and_pip(
    tmp_path: Path, cache: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr(installer.shutil, "which", lambda name: None)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    said: list[str] = []
    made = prepare(Spec(packages=(make_wheel(tmp_path),)), cache, say=said.append)
    assert run(made, "import tiny; print(tiny.VALUE)") == "42"
    assert "tiny==1.0" in made.installed
    assert any("Successfully installed tiny" in line for line in said)
    made.release()


def test_it_is_built_once_and_found_without_a_process(
    tmp_path: Path,
    cache: str,
    installations: Callable[[], int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec = Spec(packages=(make_wheel(tmp_path),))
    first = prepare(spec, cache)
    assert first.installed == ("tiny==1.0",) and installations() == 1
    assert first.venv in first.binds and first.flags == ("-s", "-B")

    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    second = prepare(spec, cache)
    assert replace(second, hold=first.hold) == first
    first.release()
    second.release()


@pytest.mark.parametrize(
    "change", [{"provision": ("pass",)}, {"packages": ()}, {"python": sys.executable}]
)
def test_what_makes_another_environment(change: dict[str, object], tmp_path: Path) -> None:
    spec = Spec(packages=("a", "b"))
    other = replace(spec, **change)
    assert spec.key() != other.key()
    if "python" not in change:
        assert spec.stamp(spec.interpreter()) != other.stamp(spec.interpreter())
    assert spec.key() == replace(spec, variables={"A": "1"}).key()


def test_another_interpreter_behind_the_same_name_is_another_environment(
    tmp_path: Path, cache: str, installations: Callable[[], int]
) -> None:
    spec = Spec(packages=(make_wheel(tmp_path),))
    prepare(spec, cache).release()
    ready = next(Path(cache).glob("environments/*/ready.json"))
    record = json.loads(ready.read_text())
    ready.write_text(json.dumps(record | {"identity": [[0, 0, 0]]}))
    prepare(spec, cache).release()
    assert installations() == 2
    assert len(builds(cache)) == 1


def test_one_builds_while_the_others_wait(
    tmp_path: Path,
    cache: str,
    installations: Callable[[], int],
    builder: Callable[[Spec], subprocess.Popen[str]],
) -> None:
    spec = Spec(packages=(f"hold @ {tmp_path}", make_wheel(tmp_path)))
    first, second = builder(spec), builder(spec)
    wait_for(tmp_path / "held")
    ticks: list[int] = []

    def tick() -> None:
        ticks.append(1)
        (tmp_path / "go").touch()

    mine = prepare(spec, cache, tick=tick)
    told = [process.communicate(timeout=60)[0].split() for process in (first, second)]
    assert [venv for venv, _ in told] == [mine.venv, mine.venv]
    assert installations() == 1 and ticks
    # Who builds is called meanwhile, too.
    assert all(int(count) > 0 for _, count in told)
    mine.release()


def test_a_killed_builder_leaves_nothing_that_counts(
    tmp_path: Path,
    cache: str,
    installations: Callable[[], int],
    builder: Callable[[Spec], subprocess.Popen[str]],
) -> None:
    spec = Spec(packages=(make_wheel(tmp_path), f"hold @ {tmp_path}"))
    process = builder(spec)
    wait_for(tmp_path / "held")
    (rubbish,) = builds(cache)
    process.kill()
    process.wait()
    (tmp_path / "go").touch()
    made = prepare(spec, cache)
    assert builds(cache) == [made.venv] != [rubbish]
    assert installations() == 2
    made.release()


def test_a_rebuild_disturbs_nobody(
    tmp_path: Path, cache: str, installations: Callable[[], int]
) -> None:
    spec = Spec(packages=(make_wheel(tmp_path),))
    old = prepare(spec, cache)
    new = prepare(spec, cache, force=True)
    assert installations() == 2 and new.venv != old.venv
    assert run(old, "import tiny; print(tiny.VALUE)") == "42"
    prepare(spec, cache).release()
    assert sorted(builds(cache)) == sorted([old.venv, new.venv])
    old.release()
    prepare(spec, cache).release()
    assert builds(cache) == [new.venv]
    new.release()


def test_a_failed_rebuild_keeps_what_there_is(
    tmp_path: Path, cache: str, installations: Callable[[], int]
) -> None:
    wheel = make_wheel(tmp_path)
    spec = Spec(packages=(wheel,))
    old = prepare(spec, cache)
    os.unlink(wheel)
    with pytest.raises(PlatformError, match="cannot install the packages"):
        prepare(spec, cache, force=True)
    again = prepare(spec, cache)
    assert builds(cache) == [again.venv] == [old.venv]
    old.release()
    again.release()


def test_a_failure_tells_the_installers_last_words_and_is_not_repeated_at_once(
    cache: str, installations: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = Spec(packages=("fail",))
    with pytest.raises(PlatformError) as caught:
        prepare(spec, cache)
    message = str(caught.value)
    assert message.startswith("cannot install the packages (exit status 1):\ntaking fail\n")
    assert "\nno such package\nThe whole output: " in message
    log = message.rpartition("The whole output: ")[2]
    assert "no such package" in Path(log).read_text()
    assert Path(log).stat().st_mode & 0o077 == 0
    assert builds(cache) == []
    with pytest.raises(PlatformError) as again:
        prepare(spec, cache)
    assert str(again.value) == message and installations() == 1
    with pytest.raises(PlatformError):
        prepare(spec, cache, force=True)
    assert installations() == 2
    monkeypatch.setattr(environment_cache, "RETRY_S", 0.0)
    with pytest.raises(PlatformError):
        prepare(spec, cache)
    assert installations() == 3


def test_an_installer_that_takes_too_long_is_ended(
    tmp_path: Path,
    cache: str,
    installations: Callable[[], int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(installer, "BUILD_S", 2.0)
    with pytest.raises(PlatformError, match="not done in time"):
        prepare(Spec(packages=(f"hold @ {tmp_path}",)), cache)


def test_provisioning_runs_once_after_the_packages(
    tmp_path: Path,
    cache: str,
    installations: Callable[[], int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EVALSITE_CANARY", "secret")
    snippet = (
        "import os, sys, tiny\n"
        "assert sys.prefix == os.environ['SANDBOX_VENV']\n"
        "assert 'EVALSITE_CANARY' not in os.environ\n"
        "with open(os.environ['SANDBOX_VENV'] + '/data', 'a') as file: file.write('x')\n"
    )
    spec = Spec(packages=(make_wheel(tmp_path),), provision=(snippet, snippet))
    made = prepare(spec, cache)
    prepare(spec, cache).release()
    assert Path(made.venv, "data").read_text() == "xx"
    made.release()
    with pytest.raises(PlatformError, match=r"cannot run provisioning snippet 1 .*\n(.*\n)*KeyErr"):
        prepare(Spec(provision=("{}['x']",)), cache)


@pytest.mark.parametrize("line", ["-r more.txt", "--constraint=x", "-e .", "a\nb", " "])
def test_lines_that_a_stamp_could_not_cover_are_refused(line: str) -> None:
    with pytest.raises(PlatformError, match="names no other file"):
        Spec(packages=(line,))


def test_an_interpreter_that_is_too_old(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\necho \'["{python}", "3.7.16", "/usr", "/usr"]\'\n')
    python.chmod(0o755)
    with pytest.raises(PlatformError, match=r"Python 3\.7\.16 is too old: use 3\.8 or newer"):
        prepare(Spec(python=str(python)), str(tmp_path))


def test_a_cache_that_cannot_be_written(tmp_path: Path, installations: Callable[[], int]) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PlatformError, match="cannot build the environment"):
        prepare(Spec(packages=("a",)), str(tmp_path / "file"))


# --- in the sandbox -------------------------------------------------------------------------------

SOCKETS = "import socket, subprocess, ctypes\nVALUE = 42\n"


@pytest.fixture(scope="module")
def packaged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """An environment whose package imports what programs may not; its cache is open to others."""
    folder = tmp_path_factory.mktemp("packaged")
    make_uv(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{folder}:/usr/bin:/bin")
        made = Sandbox(
            "packaged",
            packages=[make_wheel(folder, source=SOCKETS)],
            env={"PLACE": "{venv}/data"},
            provision=["open(__import__('os').environ['SANDBOX_VENV'] + '/data', 'w').write('d')"],
            cache_root=folder / "cache",
            address_space_limit=3 << 30,
        )
        made.ensure()
    yield made
    made.environment.release()


def verdict_of(sandbox: Sandbox, program: str, *targets: str, setup: str = "") -> Outcome:
    verdict = grade(Task(targets, setup=setup, timeout_s=10.0), Generation(program), sandbox)
    assert verdict.python == sandbox.python_version
    return verdict.outcome if not verdict.denied else Outcome.ERROR


@pytest.mark.sandbox
def test_packages_and_provisioned_files_are_there_for_programs(packaged: Sandbox) -> None:
    code = "import os, tiny; print(tiny.VALUE, open(os.environ['PLACE']).read())"
    assert packaged.run(code).stdout == "42 d\n"
    assert packaged.run("import sys; assert sys.prefix != sys.base_prefix").passed
    write = "open(__import__('os').environ['PLACE'], 'w')"
    assert not packaged.run(write).passed


@pytest.mark.sandbox
def test_cell_and_judge_both_run_in_the_environment(packaged: Sandbox) -> None:
    program = "import tiny\ndef f(): return tiny.VALUE\n"
    assert verdict_of(packaged, program, "f() == tiny.VALUE", setup="import tiny") == "pass"


@pytest.mark.sandbox
def test_what_packages_import_is_theirs(packaged: Sandbox) -> None:
    assert verdict_of(packaged, "import tiny\ndef f(): return 1\n", "f() == 1") == "pass"
    denied = "import tiny, socket\ndef f(): return 1\n"
    assert verdict_of(packaged, denied, "f() == 1") == "error"


@pytest.mark.sandbox
def test_the_address_space_is_that_of_the_environment(packaged: Sandbox) -> None:
    program = "import resource\ndef f(): return resource.getrlimit(resource.RLIMIT_AS)[0]\n"
    targets = ("f() == 3 << 30", "resource.getrlimit(resource.RLIMIT_AS)[0] == 3 << 30")
    verdict = grade(Task(targets), Generation(program), packaged)
    assert verdict.outcome == "pass", verdict.detail
    assert verdict.limits["address_space_bytes"] == 3 << 30


@pytest.mark.sandbox
def test_builtins_are_the_same_with_packages_and_without(
    packaged: Sandbox, sandbox: Sandbox
) -> None:
    program = "import builtins\ndef f(): return sorted(vars(builtins))\n"
    names = [
        grade(Task(("f() == 0",)), Generation(program), box).targets[0].detail
        for box in (packaged, sandbox)
    ]
    assert names[0] == names[1] and "ArithmeticError" in names[0]
    own = "def license(): return 1\n"
    assert verdict_of(packaged, own, "license() == 1") == "pass"


@pytest.mark.sandbox
def test_a_forced_ensure_changes_to_the_new_build(
    tmp_path: Path, installations: Callable[[], int]
) -> None:
    made = Sandbox("t", packages=[make_wheel(tmp_path)], cache_root=tmp_path / "cache")
    made.ensure()
    before = made.python
    made.ensure(force=True)
    assert made.python != before and made.run("import tiny").passed
    Sandbox("t", packages=[make_wheel(tmp_path)], cache_root=tmp_path / "cache").ensure()
    assert builds(str(tmp_path / "cache")) == [made.environment.venv]
    made.environment.release()


@pytest.mark.slow
@pytest.mark.sandbox
def test_numpy_from_the_package_index(tmp_path: Path) -> None:
    made = Sandbox("numpy", packages=["numpy"], cache_root=tmp_path)
    try:
        made.ensure()
    except PlatformError as problem:
        if "numpy" in str(problem):
            pytest.skip(f"no numpy to be had: {problem}")
        raise
    program = "import numpy as np\ndef f(n): return int(np.arange(n).sum())\n"
    assert verdict_of(made, program, "f(10) == 45", "f(4) == int(numpy.array([6])[0])",
                      setup="import numpy") == "pass"  # fmt: skip
    made.environment.release()
