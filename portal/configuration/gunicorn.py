"""The web server's options.

gunicorn portal.wsgi -c python:portal.configuration.gunicorn
"""

from __future__ import annotations

from typing import Any

worker_class = "portal.serving.worker.Worker"
threads = 8  # for ordinary requests, and as many for uploads
worker_connections = 500
# Longer than agents ever wait between two syncs (a refusal may ask for 60 s): else a sync meets a connection
# that is just being closed.
keepalive = 75
timeout = 60
graceful_timeout = 10
control_socket_disable = True
forwarder_headers = ""  # a SCRIPT_NAME of the client's would pass for another address at every interface


def post_worker_init(worker: Any) -> None:
    """Tell the worker what the portal knows, and prove that it serves.

    Else no lease of a node counts.
    """
    from portal.http.routes import route_of
    from portal.ops.beat import keep_beating
    from scheduler.selectors.signs import signs_of

    worker.route_of, worker.signs_of = route_of, signs_of
    keep_beating(worker.sockets[0].sock)
