"""Gunicorn's configuration: threads in one process beside the graders.

Used by ``manage.py up`` and good for ``gunicorn -c evalsite/web_server.py evalsite.wsgi``; the
address comes from the command line.
"""

from __future__ import annotations

import os
from typing import Any

from evalsite import spawn

worker_class = "gthread"
workers = 1
threads = 8
timeout = 60
graceful_timeout = 3
# A control socket would be a second way in.
control_socket_disable = True


def post_fork(server: Any, worker: Any) -> None:
    """A worker process ends with its arbiter, however that ended."""
    spawn.die_with_parent(server.pid)
    worker.log.debug("worker %d of arbiter %d", os.getpid(), server.pid)
