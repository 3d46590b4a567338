"""A bounded part of the attack suite; ``make attacks`` runs all of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grading.engine.sandbox import Sandbox
from tests.attacks import cases, fake_host, suite
from tests.attacks.cases import CHECKS, OWN_ROWS, SHOWN_BY
from tests.attacks.fake_host import NoFakeHost, Setting

pytestmark = pytest.mark.sandbox

_NAMES = """
    forge-osexit-in-call forge-exit-after-first forge-always-equal forge-all-fds
    forge-queued-replies forge-answers-frames forge-answers-mem forge-mutate-arguments
    own-judges-pipes own-neighbours-memory own-own-replies-0 own-own-loading own-stop-iteration
    own-spoil-shared-argument own-long-failure
    escape-write-host escape-unix-socket escape-daemon escape-ptrace-parent escape-html-detail
    starve-stdout-flood starve-fd-flood starve-ignore-signals starve-close-fds
    leak-project-db leak-neighbour-run leak-network-out evade-restore-import
    own-kill-all own-remove-host-files
    stdio-read-expected stdio-count-runs stdio-outlive stdio-own-report stdio-print-after-status
    stdio-close-output stdio-answer-on-stderr stdio-flood stdio-flood-number stdio-never-ends
    stdio-write-input
"""
QUICK = _NAMES.split()
# On bare resource limits verdicts hold; files, network and other processes are not guarded.
ROWS = {
    Setting("bwrap", kept=True): QUICK,
    Setting("bwrap"): QUICK[1::2],
    Setting("rlimit"): QUICK[::2],
    Setting("rlimit", refused=("landlock", "seccomp")): QUICK[:15:2],
}


def _pairs() -> list[Any]:
    return [
        pytest.param(setting, name, id=f"{setting}: {name}")
        for setting, names in ROWS.items()
        for name in names
    ]


@pytest.fixture(scope="module")
def rows() -> Iterator[dict[str, dict[str, Any]]]:
    suite.prepare()
    yield {row["id"]: row for row in cases.read_rows(fake_host.ROOT.parent / "shared")}
    assert suite.left_behind() == []


@pytest.mark.parametrize(("setting", "name"), _pairs())
def test_an_attack_achieves_nothing(
    rows: dict[str, dict[str, Any]], setting: Setting, name: str
) -> None:
    if name not in rows:
        pytest.skip("needs the reference data directory ../shared beside the checkout")
    try:
        seen = suite.run_row(setting, rows[name])
    except NoFakeHost as problem:
        pytest.skip(f"no throw-away host with this tier: {problem}")
    assert seen.outcome in rows[name]["expected_exit"]
    assert suite.failures([seen]) == []


def test_every_kind_of_observation_has_a_row_that_shows_it(shared: Path) -> None:
    rows = {row["id"]: row for row in cases.read_rows(shared)}
    used = {word.partition(":")[0] for row in rows.values() for word in row["must_not"]}
    assert used == set(CHECKS) == set(SHOWN_BY)
    for kind, name in SHOWN_BY.items():
        assert kind in {word.partition(":")[0] for word in rows[name]["must_not"]}


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("own-remove-host-files", {"host_gone"}),
        ("own-loopback", {"listener_hit", "pass", "outcome"}),
        ("own-kill-parent", {"worker_dead", "outcome"}),
    ],
)
def test_what_nothing_protects_is_observed(name: str, kinds: set[str]) -> None:
    row = next(row for row in OWN_ROWS if row["id"] == name)
    try:
        seen = suite.run_row(Setting(""), row)
    except NoFakeHost as problem:
        pytest.skip(str(problem))
    assert {word.partition(":")[0] for word in seen.observed} == kinds


def test_the_throw_away_host_is_no_part_of_the_real_one() -> None:
    if not shutil.which("bwrap"):
        pytest.skip("needs bubblewrap")
    script = "in_process.py"
    program = (
        "import os\n"
        "def f(): return (os.path.exists('/srv/evalsite/manage.py'), os.listdir('/home'),"
        " len([n for n in os.listdir('/proc') if n.isdigit()]) < 20)\n"
    )
    target = "f() == (False, ['grader'], True)"
    order = [{"program": program, "setup": "", "targets": [target]}]
    assert json.loads(fake_host.inside(script, json.dumps(order))) == [True]


def test_a_result_is_summed_up(sandbox: Sandbox) -> None:
    row = {"id": "x", "kind": "forge", "must_not": ["pass"]}
    bad = suite.Seen(row, Setting("rlimit", refused=("landlock", "seccomp")), "pass", ["pass"], ())
    good = suite.Seen(row, Setting("rlimit", refused=("landlock", "seccomp")), "error", [], ())
    lines = suite.summary([bad, good])
    assert "2 attempts, 1 of 2 forgeries pass, 1 observations in 1 rows" in lines[0]
    assert suite.failures([bad, good]) == ["rlimit, no landlock, no seccomp: x: pass"]
    leak = suite.Seen(row | {"kind": "leak"}, Setting("rlimit"), "pass", ["pass"], ())
    assert suite.failures([leak]) == []
    stacked = suite.Seen(leak.row, leak.setting, "pass", ["pass"], ("seccomp", "landlock"))
    assert suite.failures([stacked]) == ["rlimit: x: pass"]
