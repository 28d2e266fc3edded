"""The web server's beat.

The server asks itself for a page, as a node would, and the answer goes to the database. Leases
of nodes count only while it beats (docs/adr/0009). A server whose threads all hang, or that
does not reach the database, does not beat; anything in front of it is judged by the nodes that
get through.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from http.client import HTTPConnection, HTTPException
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from portal.clock import database_now
from scheduler.services.web_beat import note_web_beat

log = logging.getLogger(__name__)
PATH = "/beatz"
written_at = 0.0  # when this process last wrote a beat, monotonic


def every_s() -> float:
    """Seconds between two beats: once a second with production's leases."""
    return min(1.0, float(settings.NODE_LOST_S) / 12)


def beatz(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
    """Answer the beat's request and note the beat.

    Anybody's request proves as much. More than a few in a second are not written down.
    """
    global written_at
    if time.monotonic() - written_at > every_s() / 2:
        note_web_beat(now=database_now())
        written_at = time.monotonic()
    return HttpResponse(status=204)


def keep_beating(listener: socket.socket) -> None:
    """Ask the server that listens there, for as long as this process lives."""
    family, address = listener.family, listener.getsockname()
    threading.Thread(target=_beat, args=(family, address), name="beat", daemon=True).start()


def _beat(family: int, address: Any) -> None:
    served = True
    while True:
        time.sleep(every_s())
        before, served = served, ask(family, address)
        if before and not served:
            log.warning("the web server does not reach itself: leases of nodes do not count")


def ask(family: int, address: Any) -> bool:
    """Does the server at this address answer as it would to a node?"""
    host = settings.ALLOWED_HOSTS[0].lstrip(".") if settings.ALLOWED_HOSTS else "localhost"
    connection = HTTPConnection("localhost" if host == "*" else host)
    with socket.socket(family, socket.SOCK_STREAM) as connection.sock:
        try:
            connection.sock.settimeout(settings.NODE_LOST_S / 3)
            connection.sock.connect(address)
            # As the proxy before it says of what came by https: without it there is only a redirect.
            connection.request("GET", PATH, headers={"X-Forwarded-Proto": "https", "Connection": "close"})
            return connection.getresponse().status == 204
        except (OSError, HTTPException):
            return False
