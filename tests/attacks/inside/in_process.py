"""What not to do: a grader whose targets are evaluated by the interpreter that runs the program.

For each row (``program``, ``setup``, ``targets``; a JSON list on standard input) a fresh
interpreter executes the program, then the targets, and reports ``{"results": [true, …]}`` on a
pipe of its own. Prints the list of verdicts. Only ever run in a throw-away host.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

TIMEOUT_S = 5.0

RUNNER = """
import json, os, sys
order = json.loads(sys.stdin.read())
names = {"__name__": "program"}
exec(order["program"], names)
exec(order["setup"], names)
results = []
for target in order["targets"]:
    try:
        try:
            code = compile(target, "target", "eval")
        except SyntaxError:
            exec(target, names)
            results.append(True)
        else:
            results.append(bool(eval(code, names)))
    except BaseException:
        results.append(False)
os.write(int(sys.argv[1]), json.dumps({"results": results}).encode())
"""


def passes(row: Any) -> bool:
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-S", "-B", "-c", RUNNER, str(writer)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=[writer],
    )
    os.close(writer)
    try:
        process.communicate(json.dumps(row).encode(), timeout=TIMEOUT_S)
        report = json.loads(os.read(reader, 65536))
        results = report["results"]
        return len(results) == len(row["targets"]) and all(item is True for item in results)
    except (subprocess.TimeoutExpired, ValueError, KeyError, TypeError):
        return False
    finally:
        process.kill()
        process.wait()
        os.close(reader)


def main() -> None:
    rows = json.load(sys.stdin)
    with ThreadPoolExecutor(2) as pool:
        json.dump(list(pool.map(passes, rows)), sys.stdout)


if __name__ == "__main__":
    main()
