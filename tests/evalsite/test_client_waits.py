"""The client beside a site that puts it off: how long it waits, and what it says."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from evalsite import client

DONE = {"state": "done", "pass_at_k": {"1": 0.5}}
PAUSED = {
    "state": "grading",
    "done": 1,
    "samples": 2,
    "queue": {"mode": "paused", "reason": "new disk"},
}


class Site(HTTPServer):
    """Gives its answers, status, seconds to come back after, and document, one after another."""

    answers: list[tuple[int, str, dict[str, Any]]]
    asked = 0


class Handler(BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        self.server.asked += 1
        status, retry_after, document = self.server.answers.pop(0)
        self.send_response(status)
        self.send_header("Retry-After", retry_after)
        self.end_headers()
        self.wfile.write(json.dumps(document).encode())

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def site() -> Iterator[Site]:
    found = Site(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=found.serve_forever)
    thread.start()
    yield found
    found.shutdown()
    thread.join()
    found.server_close()


def status(site: Site) -> int:
    return client.main(["--url", f"http://127.0.0.1:{site.server_port}", "status", "abc"])


def test_a_used_up_quota_is_said_and_not_waited_for(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    site.answers = [(429, "36000", {"detail": "You have sent 3 of 3 submissions today."})]
    assert status(site) == client.WRONG
    assert "3 of 3 submissions today" in capsys.readouterr().err
    assert site.asked == 1


def test_a_short_wait_is_kept(site: Site) -> None:
    site.answers = [(503, "0", {}), (200, "", DONE)]
    assert status(site) == client.OK
    assert site.asked == 2


def test_who_waits_is_told_that_grading_is_paused(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    site.answers = [(200, "0", PAUSED), (200, "", DONE)]
    options = client.parser().parse_args(
        ["--url", f"http://127.0.0.1:{site.server_port}", "status", "abc"]
    )
    assert client.wait(options, "abc", 60) == DONE
    assert "1 of 2 graded; grading is paused: new disk" in capsys.readouterr().err
