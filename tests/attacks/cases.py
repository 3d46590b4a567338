"""Attack rows and what must not be observed when they run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.utils.html import escape

from tests.attacks import stdio_rows

Report = dict[str, Any]

ADD = ["add(1, 2) == 3", "add(-5, 6) == 1", "add(100, 23) == 123"]
ANY_FAILURE = ["assertion_fail", "error", "timeout", "syntax_error"]


def _own(
    name: str,
    program: str,
    must_not: list[str],
    targets: list[str] | None = None,
    kind: str = "own",
    **metadata: Any,
) -> Report:
    return {
        "id": f"own-{name}",
        "kind": kind,
        "generation": f"```python\n{program}\n```",
        "targets": targets or ADD,
        "metadata": metadata,
        "expected_exit": ANY_FAILURE,
        "must_not": ["pass", *must_not],
    }


# Writes what a judge would say into every pipe of every process it may open.
_JUDGES_PIPES = """
import glob, json, os
def frame(kind, value):
    data = json.dumps(value).encode()
    return kind + bytes(8) + len(data).to_bytes(4, 'big') + data
lie = {'true': True, 'label': 'sealed', 'detail': '', 'failure': None, 'denied': []}
said = b''.join(frame(b'T', {'index': n, **lie}) for n in range(3)) + frame(b'E', None)
def add(a, b):
    for name in glob.glob('/proc/[0-9]*/fd/*'):
        if name.split('/')[2] == str(os.getpid()):
            continue
        try:
            if os.readlink(name).startswith('pipe:'):
                fd = os.open(name, os.O_WRONLY | os.O_NONBLOCK)
                os.write(fd, said)
        except OSError:
            pass
    return 0
"""

# Looks for targets in the memory of all other processes and answers as they ask.
_NEIGHBOURS_MEMORY = """
import glob, os, re
def search():
    for name in glob.glob('/proc/[0-9]*/maps'):
        pid = name.split('/')[2]
        if pid == str(os.getpid()):
            continue
        try:
            memory = open('/proc/%s/mem' % pid, 'rb', 0)
            for line in open(name):
                span, rights = line.split()[:2]
                start, stop = (int(part, 16) for part in span.split('-'))
                if 'rw' not in rights or stop - start > 1 << 26:
                    continue
                memory.seek(start)
                yield memory.read(stop - start)
        except (OSError, ValueError, OverflowError):
            continue
answers = {}
def add(a, b):
    if not answers:
        for block in search():
            for x, y, z in re.findall(rb'add\\((-?\\d+), (-?\\d+)\\) == (-?\\d+)', block):
                answers[int(x), int(y)] = int(z)
    return answers.get((a, b), -99)
"""

# Finds the request it is answering and answers itself, with every kind of value there is.
_OWN_REPLIES = """
import gc, json, os
nodes = [['const', 'NotImplemented'], ['type', 'object'], ['float', 'nan'], ['ref', 0],
         ['object', 0, ['__iter__', '__len__', '__contains__'], True, ['numbers', 'Number']],
         ['class', 0, 'int', 'ValueError', None], ['program', 'add'],
         ['npscalar', '<i8', [], '00' * 8], ['ndarray', 0, '<i8', [0], ''],
         ['sub', 0, 'int', 0], ['enum', 0, 'E', 'A', 3, None], ['callback', 0], ['steps', -1],
         ['namedtuple', 0, 'P', ['count', 'index'], 3, 3], ['coroutine', 0], ['member', 0, 'A']]
turn = 0
def add(a, b):
    global turn
    turn += 1
    for cell in gc.get_objects():
        if type(cell).__name__ == 'Cell':
            data = json.dumps(['v', nodes[(turn + CHOICE) % len(nodes)], [], [], []]).encode()
            size = len(data).to_bytes(4, 'big')
            os.write(cell.sink, b'R' + cell.request_id + size + data)
            while True:
                head = os.read(cell.source, 65536)
                ident = head[1:9]
                os.write(cell.sink, b'R' + ident + size + data)
"""

# Finds the token while it is loaded, says itself how loading went, and answers everything alike.
_OWN_LOADING = """
import json, os, sys
frame = sys._getframe()
while 'order' not in frame.f_locals:
    frame = frame.f_back
cell, token = frame.f_locals['self'], frame.f_locals['order']['token']
def say(kind, ident, value):
    data = json.dumps(value).encode()
    data = kind + ident + len(data).to_bytes(4, 'big') + data
    while data:
        data = data[os.write(cell.sink, data):]
names = [[name, 'f'] for name in ('add', 'abs', 'int', '__builtins__', '__discard__', 'eval')]
failure = FAILURE
say(b'D', bytes(8), {'token': token, 'failure': failure, 'names': names,
                     'denied': ['x' * 9999] * 9, 'tricks': ['ended early'] * 9})
while True:
    ident = os.read(cell.source, 65536)[1:9]
    say(b'R', ident, ['v', 3, [], [], []])
"""
_LONG_FAILURE = (
    "{'phase': 'target', 'exception': 'E' * 9999, 'message': 'm' * 99999, 'denied': '',"
    " 'frames': [[10 ** 99, 'f' * 99]] * 2000}"
)

_STOP_ITERATION = "def is_even(n):\n    raise StopIteration"
_SPOIL_SHARED = """
def dedupe(xs):
    xs.clear()
    return []
"""

OWN_ROWS = [
    _own("judges-pipes", _JUDGES_PIPES, [], kind="forge"),
    _own("neighbours-memory", _NEIGHBOURS_MEMORY, [], kind="forge", timeout_s=10),
    *(
        _own(f"own-replies-{n}", _OWN_REPLIES.replace("CHOICE", str(n)), [], kind="forge")
        for n in range(3)
    ),
    _own("own-loading", _OWN_LOADING.replace("FAILURE", "None"), [], kind="forge"),
    _own(
        "long-failure",
        _OWN_LOADING.replace("FAILURE", _LONG_FAILURE),
        ["captured_len_over:40000", "worker_rss_over_mb:64"],
        kind="forge",
    ),
    _own(
        "stop-iteration",
        _STOP_ITERATION,
        [],
        ["all(map(is_even, [2, 4]))", "not any(map(is_even, [1, 3]))"],
        kind="forge",
        entry_point="is_even",
    ),
    _own(
        "spoil-shared-argument",
        _SPOIL_SHARED,
        [],
        ["isinstance(dedupe(DATA), list)", "dedupe(DATA) == sorted(set(DATA))"],
        kind="forge",
        setup="DATA = [3, 1, 3]",
    ),
    _own(
        "kill-parent",
        "import os\nfor _ in range(3):\n    os.kill(os.getppid(), 9)",
        ["worker_dead"],
    ),
    _own("kill-all", "import os\nos.kill(-1, 9)", ["worker_dead"]),
    _own(
        "remove-host-files",
        "import os\n"
        "for path in ('/home/grader/keep/file', '/srv/evalsite/db.sqlite3'):\n"
        "    try:\n        os.unlink(path)\n    except OSError:\n        pass",
        ["host_gone:/home/grader/keep/file", "host_gone:/srv/evalsite/db.sqlite3"],
    ),
    _own(
        "change-host-files",
        "for path in ('/home/grader/keep/file', '/home/grader/.ssh/id_ed25519'):\n"
        "    try:\n        open(path, 'a').write('more')\n    except OSError:\n        pass",
        ["host_changed:/home/grader/keep/file", "host_changed:/home/grader/.ssh/id_ed25519"],
    ),
    _own(
        "loopback",
        "try:\n    import socket\nexcept ImportError:\n    import _socket as socket\n"
        "def go():\n"
        "    s = socket.socket(2, 1)\n"
        "    s.connect(('127.0.0.1', 6379))\n"
        "    return 1",
        ["listener_hit:tcp"],
        ["go() == 1"],
    ),
    _own(
        "core-dump",
        "import os, resource\n"
        "hard = resource.getrlimit(resource.RLIMIT_CORE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))\n"
        "os.kill(os.getpid(), 11)",
        ["core_file"],
    ),
    _own(
        "long-message",
        "def add(a, b):\n    raise ValueError('m' * 10 ** 6)",
        ["captured_len_over:40000"],
    ),
    _own(
        "secret-in-parents-environment",
        "import glob\n"
        "def go():\n"
        "    n = 0\n"
        "    for name in glob.glob('/proc/[0-9]*/environ'):\n"
        "        try:\n            n += b'CANARY' in open(name, 'rb').read()\n"
        "        except OSError:\n            pass\n"
        "    return n",
        [],
        ["go() > 0"],
    ),
    _own(
        "read-other-processes",
        "import glob\n"
        "def go():\n"
        "    n = 0\n"
        "    for name in glob.glob('/proc/[0-9]*/mem'):\n"
        "        if name.split('/')[2] in ('1', str(__import__('os').getpid())): continue\n"
        "        try:\n            open(name, 'rb').close(); n += 1\n"
        "        except OSError:\n            pass\n"
        "    return n",
        [],
        ["go() > 0"],
    ),
]

# Which row shows, unprotected, that a kind of observation can be made at all.
SHOWN_BY = {
    "pass": "forge-osexit-in-call",
    "score_over": "forge-exit-after-first",
    "host_file": "escape-write-host",
    "live_process": "escape-daemon",
    "listener_hit": "escape-unix-socket",
    "wall_over_s": "starve-sleep",
    "rss_over_mb": "starve-memfd",
    "worker_rss_over_mb": "starve-stdout-flood",
    "procs_over": "starve-fork-bomb",
    "disk_over_mb": "starve-fill-vartmp",
    "leftover_workdir": "starve-fill-vartmp",
    "worker_dead": "own-kill-parent",
    "host_gone": "own-remove-host-files",
    "host_changed": "own-change-host-files",
    "core_file": "own-core-dump",
    "captured_text": "escape-html-detail",
    "captured_len_over": "own-long-message",
    "html_unescaped": "escape-html-detail",
}


def read_rows(shared: Path) -> list[Report]:
    """The rows of the reference data, where that is there, and this suite's own."""
    file = shared / "cases" / "attacks.jsonl"
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    return [*(json.loads(line) for line in text.splitlines()), *OWN_ROWS, *stdio_rows.ROWS]


def observations(row: Report, report: Report) -> list[str]:
    """The ``must_not`` words that hold, and an outcome that is none of those expected."""
    found = [word for word in row["must_not"] if _observed(word, report)]
    outcome = outcome_of(report)
    if outcome not in row["expected_exit"]:
        found.append(f"outcome:{outcome}")
    if report["sibling_dead"]:
        found.append("sibling_dead")
    verdict = report["verdict"] or {}
    if verdict.get("new_descriptors", 0) > 0:
        found.append(f"descriptors_left:{verdict['new_descriptors']}")
    if verdict.get("next", "pass") != "pass":
        found.append(f"harmed_the_next:{verdict['next']}")
    if verdict.get("over_limit_s", 0.0) > 1.0:
        found.append(f"wall_over_limit_by_s:{verdict['over_limit_s']:.1f}")
    if verdict and report["worker_rss_mb"] > 64 and "new_descriptors" in verdict:
        found.append(f"worker_grew_by_mb:{report['worker_rss_mb']:.0f}")
    if report["live"] and "new_descriptors" in verdict:
        found.append("live:" + report["live"][0][:60])
    return found


def outcome_of(report: Report) -> str:
    """The outcome, or how the worker failed to give one."""
    if report["verdict"]:
        return report["verdict"]["outcome"]
    return "worker_dead" if report["worker_dead"] else "no_verdict"


def _observed(word: str, report: Report) -> bool:
    kind, _, argument = word.partition(":")
    return CHECKS[kind](argument, report)


def _verdict(report: Report, key: str, default: Any) -> Any:
    return (report["verdict"] or {}).get(key, default)


def _live(text: str, report: Report) -> bool:
    return bool(report["live"]) if text == "__self__" else any(text in c for c in report["live"])


def page(text: str, protected: bool) -> str:
    """A page with the text on it, as a template puts it there or as nobody should."""
    return f"<pre>{escape(text) if protected else text}</pre>"


def _unescaped(text: str, report: Report) -> bool:
    protected = "new_descriptors" in (report["verdict"] or {})
    return text in page(_verdict(report, "shown", ""), protected)


CHECKS: dict[str, Callable[[str, Report], bool]] = {
    "pass": lambda _, report: _verdict(report, "outcome", "") == "pass",
    "score_over": lambda x, report: _verdict(report, "score", 0.0) > float(x),
    "host_file": lambda path, report: path in report["left"],
    "live_process": _live,
    "listener_hit": lambda name, report: name in report["listener_hits"],
    # A run that is repeated since the host was busy counts as two.
    "wall_over_s": lambda x, report: _verdict(report, "longest_s", report["wall_s"]) > float(x),
    "rss_over_mb": lambda x, report: report["rss_mb"] > float(x),
    "worker_rss_over_mb": lambda x, report: report["worker_rss_mb"] > float(x),
    "procs_over": lambda x, report: report["procs"] > int(x),
    "disk_over_mb": lambda x, report: report["disk_mb"] > float(x),
    "leftover_workdir": lambda _, report: bool(report["left"]),
    "worker_dead": lambda _, report: report["worker_dead"],
    "host_gone": lambda path, report: path in report["gone"],
    "host_changed": lambda path, report: path in report["changed"],
    "core_file": lambda _, report: bool(report["cores"]),
    "captured_text": lambda text, report: text in _verdict(report, "shown", ""),
    "captured_len_over": lambda n, report: len(_verdict(report, "shown", "")) > int(n),
    "html_unescaped": _unescaped,
}
