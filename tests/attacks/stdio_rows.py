"""Attacks by programs that read standard input; what they are to print is not theirs to know."""

from __future__ import annotations

from typing import Any

FAILURES = ["assertion_fail", "error", "timeout"]
# No program can tell these by its input, which is always the same.
SECRETS = [
    {"input": "go\n", "output": output}
    for output in ("wanted-7f3a91", "wanted-c04d22", "wanted-51")
]
COUNTS = [{"input": "go\n", "output": str(number)} for number in (1, 2, 3)]
DOUBLES = [{"input": f"{number}\n", "output": f"{2 * number}\n"} for number in (3, 4, 5)]


def _row(
    name: str,
    program: str,
    targets: list[dict[str, str]],
    must_not: list[str] | None = None,
    expected: list[str] | None = None,
    kind: str = "forge",
    **metadata: Any,
) -> dict[str, Any]:
    return {
        "id": f"stdio-{name}",
        "kind": kind,
        "generation": f"```python\n{program}\n```",
        "targets": targets,
        "metadata": {"kind": "stdio"} | metadata,
        "expected_exit": expected or FAILURES,
        "must_not": ["pass", *(must_not or [])],
    }


# Everything that this process may read, its own objects and memory first.
_READ_EXPECTED = """
import gc, glob, os, re, sys
def texts():
    frame = sys._getframe()
    while frame:
        yield repr(frame.f_locals) + repr(frame.f_globals)
        frame = frame.f_back
    for thing in gc.get_objects():
        if isinstance(thing, (dict, list, tuple, str, bytes)):
            yield repr(thing)
    for name in glob.glob('/proc/[0-9]*/*') + glob.glob('/proc/[0-9]*/fd/*'):
        if name.rsplit('/', 1)[1] in ('environ', 'cmdline') or '/fd/' in name:
            try:
                descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK)
                yield repr(os.read(descriptor, 1 << 16))
            except OSError:
                pass
    for name in glob.glob('/proc/[0-9]*/maps'):
        try:
            memory = open(name[:-4] + 'mem', 'rb', 0)
            for line in open(name):
                span, rights = line.split()[:2]
                start, stop = (int(part, 16) for part in span.split('-'))
                if rights.startswith('rw') and stop - start < 1 << 26:
                    memory.seek(start)
                    yield repr(memory.read(stop - start))
        except (OSError, ValueError, OverflowError):
            pass
pattern = re.compile('wan' + 'ted-[0-9a-f]{2,6}')
for text in texts():
    for found in pattern.findall(text):
        print(found)
        sys.exit()
"""

# Counts how often it was run, in every place that might last.
_COUNT_RUNS = """
import os
places = ('.', '..', '/tmp', '/var/tmp', '/dev/shm', os.path.expanduser('~'), '/run', '/')
def names():
    return [os.path.join(place, '.counted') for place in places]
count = 1
for name in names():
    try:
        count = max(count, int(open(name).read()) + 1)
    except (OSError, ValueError):
        pass
for name in names():
    try:
        open(name, 'w').write(str(count))
    except OSError:
        pass
print(count)
"""

_OUTLIVE = """
import os, time
n = int(input())
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(0.5)
        print(2 * n, flush=True)
        time.sleep(60)
    os._exit(0)
os._exit(0)
"""

# Tells the host that all is well, in the words of the process it runs in.
_OWN_REPORT = """
import json, os
said = json.dumps({'failure': None, 'denied': [], 'tricks': []}).encode()
frame = b'X' + bytes(8) + len(said).to_bytes(4, 'big') + said
for number in range(3, 64):
    try:
        os.write(number, frame)
    except OSError:
        pass
os._exit(0)
"""

ROWS = [
    _row("read-expected", _READ_EXPECTED, SECRETS, timeout_s=10),
    # Bare resource limits do not guard files, so there it can count.
    _row("count-runs", _COUNT_RUNS, COUNTS, ["score_over:0.34"], kind="leak"),
    _row(
        "outlive",
        _OUTLIVE,
        DOUBLES,
        ["live_process:__self__"],
        ["assertion_fail"],
        allow_processes=True,
    ),
    _row("own-report", _OWN_REPORT, DOUBLES, expected=["assertion_fail", "error"]),
    _row(
        "print-after-status",
        "import os\nn = int(input())\nimport atexit\n"
        "atexit.register(lambda: (print(2 * n, flush=True), os._exit(3)))",
        DOUBLES,
        expected=["assertion_fail"],
    ),
    _row(
        "close-output",
        "import os\nn = int(input())\nos.close(1)\nos.write(2, b'%d' % (2 * n))",
        DOUBLES,
        expected=["assertion_fail"],
    ),
    _row(
        "answer-on-stderr",
        "import sys\nprint(2 * int(input()), file=sys.stderr)",
        DOUBLES,
        expected=["assertion_fail"],
    ),
    _row(
        "flood",
        "import os\nblock = b'6\\n' * 32768\nwhile True:\n    os.write(1, block)",
        DOUBLES,
        ["worker_rss_over_mb:64", "captured_len_over:40000"],
        ["error"],
    ),
    _row(
        "flood-number",
        "print('6' + '0' * 10 ** 5 + 'e-' + '9' * 10 ** 5)",
        DOUBLES,
        ["wall_over_s:10"],
        ["assertion_fail"],
    ),
    _row(
        "never-ends",
        "print(2 * int(input()), flush=True)\nwhile True:\n    pass",
        DOUBLES,
        ["wall_over_s:10"],
        ["timeout"],
    ),
    _row(
        "write-input",
        "import os\nn = int(input())\nos.lseek(0, 0, 0)\nos.write(0, b'0')\nprint(2 * n)",
        DOUBLES,
        expected=["assertion_fail"],
    ),
]
