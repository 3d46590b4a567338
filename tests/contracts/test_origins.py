"""What the product was founded on: outcomes, limits, denylist and the sandbox's interface."""

from __future__ import annotations

import inspect

import pytest

from grading.engine import Generation, Outcome, Sandbox, Task, Verdict, grade, pass_at_k
from grading.engine.limits import DEFAULT_TIMEOUT_S, MAX_TIMEOUT_S, OUTPUT_BYTES

pytestmark = pytest.mark.sandbox

PROGRAMS = {
    Outcome.PASS: "def f(x):\n    return x\n",
    Outcome.ASSERTION_FAIL: "def f(x):\n    return 0\n",
    Outcome.SYNTAX_ERROR: "def f(x:\n",
    Outcome.TIMEOUT: "def f(x):\n    while True: pass\n",
    Outcome.ERROR: "raise ValueError('no')\n",
}


def run(sandbox: Sandbox, program: str, *targets: str, timeout_s: float = 10.0) -> Verdict:
    task = Task(targets=targets or ("f(1) == 1",), timeout_s=timeout_s)
    return grade(task, Generation(program), sandbox)


@pytest.fixture(scope="module")
def verdicts(sandbox: Sandbox) -> dict[Outcome, Verdict]:
    return {
        outcome: run(sandbox, program, timeout_s=1.0 if outcome is Outcome.TIMEOUT else 10.0)
        for outcome, program in PROGRAMS.items()
    }


def test_there_are_exactly_five_outcomes() -> None:
    assert [outcome.value for outcome in Outcome] == [
        "pass",
        "assertion_fail",
        "error",
        "timeout",
        "syntax_error",
    ]


@pytest.mark.parametrize("outcome", list(Outcome))
def test_each_outcome_is_reached(verdicts: dict[Outcome, Verdict], outcome: Outcome) -> None:
    assert verdicts[outcome].outcome is outcome


def test_a_verdict_has_the_same_keys_whatever_failed(verdicts: dict[Outcome, Verdict]) -> None:
    keys = {tuple(verdict.as_dict()) for verdict in verdicts.values()}
    assert len(keys) == 1


def test_two_of_three_is_two_thirds(sandbox: Sandbox) -> None:
    verdict = run(sandbox, PROGRAMS[Outcome.PASS], "f(1) == 1", "f(2) == 2", "f(3) == 4")
    assert verdict.outcome is Outcome.ASSERTION_FAIL
    assert round(verdict.score, 3) == 0.667


def test_pass_at_k_is_one_when_every_draw_holds_a_pass() -> None:
    assert pass_at_k(5, 3, 4) == 1


def test_the_limits() -> None:
    assert (DEFAULT_TIMEOUT_S, MAX_TIMEOUT_S, OUTPUT_BYTES) == (3.0, 30.0, 256 * 1024)
    assert Task(targets=()).timeout_s == 3.0


def test_output_overflow_is_an_error_with_that_detail(sandbox: Sandbox) -> None:
    flood = "import sys\ndef f(x):\n    return x\nsys.stdout.write('x' * 300000)\n"
    verdict = run(sandbox, flood)
    assert (verdict.outcome, verdict.detail) == (Outcome.ERROR, "output overflow")


def test_output_up_to_the_cap_is_fine(sandbox: Sandbox) -> None:
    verdict = run(sandbox, "def f(x):\n    return x\nprint('x' * 262143)\n")
    assert verdict.outcome is Outcome.PASS
    assert verdict.stdout.size == 256 * 1024


DENIED = [
    ("subprocess", "import subprocess"),
    ("subprocess", "from subprocess import run"),
    ("subprocess", "import subprocess as s"),
    ("subprocess", "import importlib; importlib.import_module('subprocess')"),
    ("subprocess", "from importlib import import_module; import_module('subprocess')"),
    ("subprocess", "__import__('subprocess')"),
    ("socket", "import socket"),
    ("socket", "from socket import socket"),
    ("socket", "import asyncio; import socket"),
    ("requests", "import requests"),
    ("requests", "from requests import get"),
    ("urllib", "import urllib"),
    ("urllib.request", "import urllib.request"),
    ("urllib.request", "import urllib.request as r"),
    ("urllib.request", "from urllib import request"),
    ("urllib.request", "from urllib.request import urlopen"),
    ("urllib.request", "import importlib; importlib.import_module('urllib.request')"),
    ("urllib.error", "import urllib.error"),
    ("urllib.error", "from urllib.error import URLError"),
    ("urllib.parse", "import urllib.parse"),
    ("urllib.parse", "from urllib.parse import quote"),
    ("urllib.parse", "import pathlib; import urllib.parse"),
    ("ctypes", "import ctypes"),
    ("ctypes", "from ctypes import CDLL"),
    ("ctypes", "import ctypes.util"),
    ("shutil", "import shutil"),
    ("shutil", "import shutil as s"),
    ("shutil", "from shutil import copy"),
    ("shutil", "import tempfile; import shutil"),
    ("shutil", "import tempfile, importlib; importlib.import_module('shutil')"),
    ("http.client", "import http.client"),
    ("http.client", "from http import client"),
    ("http.client", "from http.client import HTTPConnection"),
    ("http.client", "import importlib; importlib.import_module('http.client')"),
    ("asyncio.subprocess", "import asyncio.subprocess"),
    ("asyncio.subprocess", "from asyncio import subprocess"),
    ("asyncio.subprocess", "from asyncio.subprocess import PIPE"),
    ("os.system", "from os import system"),
    ("os.system", "from os import path, system as s"),
    ("os.system", "import os; os.system('true')"),
    ("os.system", "import posix; posix.system('true')"),
]


@pytest.mark.parametrize(("name", "statement"), DENIED)
def test_a_denied_import_while_loading_is_an_error(
    sandbox: Sandbox, name: str, statement: str
) -> None:
    verdict = run(sandbox, f"{statement}\n{PROGRAMS[Outcome.PASS]}")
    assert verdict.outcome is Outcome.ERROR
    assert verdict.failure is not None
    assert (verdict.failure.phase, verdict.failure.exception) == ("import", "ImportError")
    assert verdict.failure.message == "denied"
    assert name.startswith(verdict.denied[0])
    assert verdict.detail == f"denied: {verdict.denied[0]}"


@pytest.mark.parametrize(("name", "statement"), DENIED)
def test_a_denied_import_raises_import_error_and_is_recorded_when_caught(
    sandbox: Sandbox, name: str, statement: str
) -> None:
    caught = (
        f"def f(x):\n    try:\n        {statement}\n"
        "    except ImportError as problem:\n        return str(problem)\n"
    )
    verdict = run(sandbox, caught, "f(1) == 'denied'")
    assert verdict.outcome is Outcome.PASS, verdict.detail
    assert name.startswith(verdict.denied[0])


HONEST = {
    "asyncio": (
        "import asyncio\nasync def g():\n    await asyncio.sleep(0)\n    return 1\n"
        "def f(x):\n    return asyncio.run(g())\n"
    ),
    "tempfile": (
        "import tempfile\ndef f(x):\n    with tempfile.TemporaryDirectory() as d:\n"
        "        with open(d + '/a', 'w') as h: h.write('1')\n"
        "        with open(d + '/a') as h: return int(h.read())\n"
    ),
    "pathlib": (
        "from pathlib import Path\ndef f(x):\n    p = Path('one.txt')\n    p.write_text('1')\n"
        "    return int(p.read_text())\n"
    ),
    "zipfile": (
        "import io, zipfile\ndef f(x):\n    b = io.BytesIO()\n"
        "    with zipfile.ZipFile(b, 'w') as z: z.writestr('a', '1')\n"
        "    return int(zipfile.ZipFile(b).read('a'))\n"
    ),
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_programs_keep_the_standard_library(sandbox: Sandbox, name: str) -> None:
    verdict = run(sandbox, HONEST[name])
    assert verdict.outcome is Outcome.PASS, verdict.detail
    assert verdict.denied == []


def test_a_sandbox_without_packages_runs_the_hosts_interpreter() -> None:
    s = Sandbox("x")
    s.ensure()
    assert s.run("").summary() == "ok"
    assert s.run("import sys; assert sys.prefix == sys.base_prefix").summary() == "ok"


def test_the_sandboxs_interface() -> None:
    assert list(inspect.signature(Sandbox).parameters) == [
        "name",
        "packages",
        "cache_root",
        "base_python",
        "isolation",
        "provision",
        "env",
        "address_space_limit",
    ]
    assert list(inspect.signature(Sandbox.ensure).parameters)[1:] == ["force", "quiet"]
    assert list(inspect.signature(Sandbox.run).parameters)[1:] == ["code", "timeout", "env"]
