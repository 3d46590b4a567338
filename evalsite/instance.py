"""One running instance: which programs it consists of, and what must hold before they start."""

from __future__ import annotations

import contextlib
import fcntl
import http.client
import json
import os
import secrets
import signal
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evalsite import broker, datadir, env
from evalsite.supervisor import Log, Program, Supervisor

if TYPE_CHECKING:
    from grading.engine.sandbox import Sandbox

MANAGE = str(datadir.BASE_DIR / "manage.py")
# A stop has ten seconds: the sample in hand may end, a whole chunk may not.
WORKER_GRACE_S = 5.0
WEB_GRACE_S = 3.5
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class CannotStart(Exception):
    """Something has to be changed before an instance can start; the text says what."""


class AlreadyRunning(CannotStart):
    """Another process holds the data directory's instance lock."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run: ``workers`` graders, and a web server on ``host``:``port`` unless port is 0."""

    workers: int
    host: str = "127.0.0.1"
    port: int = 0

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/"

    @property
    def for_others(self) -> bool:
        """Does the web server listen where other hosts reach it?"""
        from evalsite.checks import is_loopback

        return not is_loopback(self.host)


def default_workers() -> int:
    """One worker per core this process may use: above that, wall clocks measure the neighbours."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def stages(plan: Plan) -> list[list[Program]]:
    """The programs in the order of their start.

    Raises `CannotStart` where no broker can be started. The broker's address, which holds its
    password, reaches the others by their environment.
    """
    outside = env.text("EVALSITE_REDIS_URL")
    if outside:
        return _with_broker(plan, outside)
    try:
        wanted = broker.command()
    except broker.NoBroker as problem:
        raise CannotStart(str(problem)) from None
    own = Program(
        "broker",
        wanted.argv,
        stdin=wanted.config.encode(),
        started=lambda pid: broker.record(wanted.port, pid),
        ready=lambda: broker.answers(wanted.url),
        vital=True,
        parent_signal=signal.SIGTERM,
    )
    return [[own], *_with_broker(plan, wanted.url)]


def _with_broker(plan: Plan, broker_url: str) -> list[list[Program]]:
    shared = {
        "EVALSITE_REDIS_URL": broker_url,
        "EVALSITE_WORKERS": str(plan.workers),
        "PYTHONUNBUFFERED": "1",
    }
    workers = [_worker(slot, shared) for slot in range(1, plan.workers + 1)]
    sweep = Program("sweep", [sys.executable, MANAGE, "sweep"], env=shared)
    graders = [*workers, sweep]
    return [graders, [_web(plan, shared)]] if plan.port else [graders]


def _worker(slot: int, shared: dict[str, str]) -> Program:
    return Program(
        f"worker {slot}",
        [sys.executable, MANAGE, "worker"],
        env={**shared, "EVALSITE_WORKER_SLOT": str(slot)},
        grace_s=WORKER_GRACE_S,
    )


def _web(plan: Plan, shared: dict[str, str]) -> Program:
    configuration = str(Path(__file__).with_name("web_server.py"))
    address = plan.url.removeprefix("http://").rstrip("/")
    environment = {**shared, "EVALSITE_FOR_OTHERS": "1"} if plan.for_others else shared
    gunicorn = [sys.executable, "-m", "gunicorn", "-c", configuration, "-b", address]
    return Program(
        "web",
        [*gunicorn, "--chdir", str(datadir.BASE_DIR), "evalsite.wsgi:application"],
        env=environment,
        ready=lambda: _healthy(plan),
        grace_s=WEB_GRACE_S,
        vital=True,
    )


def _healthy(plan: Plan) -> bool:
    """Does the web server report that all its parts answer?"""
    # A server on all addresses is reached on loopback, under a name it answers to.
    address = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(plan.host, plan.host)
    name = env.words("EVALSITE_ALLOWED_HOSTS", ("localhost",))[0].lstrip("*.") or "localhost"
    connection = http.client.HTTPConnection(address, plan.port, timeout=5)
    try:
        connection.request("GET", "/healthz", headers={"Host": name})
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


@contextlib.contextmanager
def running(plan: Plan, log: Log) -> Iterator[Supervisor]:
    """Everything of ``plan`` runs inside the block and is stopped in order at its end.

    Ctrl-C, SIGTERM and a closed terminal raise `KeyboardInterrupt` in the block.
    Raises `CannotStart`, `supervisor.StartFailed`. Main thread only.
    """
    supervisor = Supervisor(stages(plan), log)
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    try:
        for number in STOP_SIGNALS:
            signal.signal(number, signal.default_int_handler)
        supervisor.start()
        yield supervisor
    finally:
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        supervisor.stop()
        for number, handler in before.items():
            signal.signal(number, handler)


def check_port(plan: Plan) -> None:
    """Raises `CannotStart` with the fix where the address is taken or not ours."""
    family = socket.AF_INET6 if ":" in plan.host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((plan.host, plan.port))
        except OSError as problem:
            raise CannotStart(
                f"Cannot listen on {plan.host}:{plan.port} ({problem.strerror}). "
                f"Take another port: --port {plan.port + 1} (make demo PORT={plan.port + 1})"
            ) from None


def check_sandbox(plan: Plan, sandbox: Sandbox) -> None:
    """Raises `CannotStart` where others could upload programs to a weakly isolated grader."""
    from grading.engine.isolation.findings import UNSAFE_FIX

    if not plan.for_others or sandbox.safe_for_strangers or env.flag("EVALSITE_ALLOW_UNSAFE"):
        return
    raise CannotStart(
        f"Programs would run in the sandbox tier {sandbox.tier}, which is too weak here for a "
        f"server that others reach ({plan.host}). {UNSAFE_FIX} Or listen on 127.0.0.1."
    )


@contextlib.contextmanager
def sole(what: str) -> Iterator[None]:
    """Hold the data directory's instance lock; the kernel frees it however this process ends.

    Raises `AlreadyRunning` when another process holds it, and names that process.
    """
    file = datadir.data_dir() / "instance.lock"
    with open(os.open(file, os.O_RDWR | os.O_CREAT, 0o600), "r+", encoding="utf-8") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise AlreadyRunning(_taken(stream.read())) from None
        stream.truncate(0)
        json.dump({"pid": os.getpid(), "what": what}, stream)
        stream.flush()
        yield


def _taken(text: str) -> str:
    try:
        holder = json.loads(text)
        who = f"{holder['what']}, process {holder['pid']}"
    except (ValueError, KeyError, TypeError):
        who = "another process"
    return (
        f"Evalsite already runs on {datadir.data_dir()} ({who}). "
        "Stop that one first, or give this one its own EVALSITE_DATA_DIR."
    )


def first_admin() -> str | None:
    """Make the superuser ``admin`` where there is no superuser yet; returns the new password.

    It is stored as a hash only: the caller shows it once.
    """
    from django.contrib.auth import get_user_model

    users = get_user_model().objects
    if users.filter(is_superuser=True).exists():
        return None
    password = secrets.token_urlsafe(12)
    users.create_superuser("admin", password=password)
    return password
