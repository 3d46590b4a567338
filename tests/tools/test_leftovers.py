"""The leftover check finds what it is for, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[1] / "leftovers.py"


def check(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_planted_process_and_a_planted_file_are_reported() -> None:
    done = check("--self-test")
    assert done.returncode == 70
    process, file = done.stderr.splitlines()
    assert process.startswith("left behind: process") and "time.sleep(600)" in process
    assert file.startswith("left behind: temporary file planted-")
    pid = process.split()[3]
    assert not Path(f"/proc/{pid}").exists(), "what was planted is ended"


def test_a_clean_command_keeps_its_exit_code() -> None:
    assert check("--", sys.executable, "-c", "raise SystemExit(3)").returncode == 3
    done = check("--", "true")
    assert (done.returncode, done.stderr) == (0, "leftovers: none\n")
