"""Addresses of portals that an agent may talk to."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from trainer.agent.errors import SetupError


def check_url(url: str) -> str:
    """Return the portal's address without a trailing slash.

    Raises SetupError unless it is https or loopback.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        parts, host = urlsplit(""), ""
    if not host or parts.scheme not in {"http", "https"} or parts.query or parts.username:
        raise SetupError(f"--portal must be an address like https://portal.example.org, not {url!r}")
    if parts.scheme == "http" and not is_loopback(host):
        raise SetupError(
            f"--portal {url}: plain http would send the node token unprotected. Use https; "
            "http is allowed to this machine itself only (127.0.0.1, ::1, localhost)"
        )
    return url.rstrip("/")


def is_loopback(host: str) -> bool:
    """Whether a host names this machine itself."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
