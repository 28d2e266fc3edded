"""Reading from a hub over HTTP, within bounds.

There are bounds on the bytes, the time, and the targets of redirects.
"""

from __future__ import annotations

import ipaddress
import socket
import time

import httpx

MAX_REDIRECTS = 5


class Unbounded(httpx.HTTPError):
    """The answer is beyond the bounds: too large, too slow, or in the wrong place.

    The message says which.
    """


def get(address: str, *, largest: int, within_s: float) -> bytes:
    """Return the body at an address.

    Raises httpx.HTTPError, httpx.InvalidURL, and Unbounded beyond the bounds.
    """
    due = time.monotonic() + within_s
    with httpx.Client(timeout=min(30.0, within_s), follow_redirects=False) as client:
        request = client.build_request("GET", address)
        for _ in range(MAX_REDIRECTS + 1):
            answer = client.send(request, stream=True)
            try:
                if answer.next_request is None:
                    answer.raise_for_status()
                    return _body(answer, largest, due)
                check_way(httpx.URL(address), answer.next_request.url)
                request = answer.next_request
            finally:
                answer.close()
    raise Unbounded(f"{address} leads on more than {MAX_REDIRECTS} times")


def status(address: str, *, within_s: float, token: str = "") -> int:
    """Return the status at an address, whose body is not read.

    Raises httpx.HTTPError, httpx.InvalidURL.
    """
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with (
        httpx.Client(timeout=within_s, follow_redirects=False) as client,
        client.stream("GET", address, headers=headers) as answer,
    ):
        return answer.status_code


def _body(answer: httpx.Response, largest: int, due: float) -> bytes:
    content = bytearray()
    for piece in answer.iter_bytes():
        content += piece
        if len(content) > largest:
            raise Unbounded(f"{answer.url} is larger than the {largest:,} bytes that are read")
        if time.monotonic() > due:
            raise Unbounded(f"{answer.url} takes too long")
    return bytes(content)


def check_way(hub: httpx.URL, target: httpx.URL) -> None:
    """Refuse redirects to a less private place.

    A hub may lead to storage elsewhere, but never from TLS to none, nor from outside into our network.
    """
    if target.scheme not in ("https", hub.scheme):
        raise Unbounded(f"{hub.host} leads to {target.scheme}://{target.host}, which is not encrypted")
    if target.host != hub.host and not is_inside(hub.host) and is_inside(target.host):
        raise Unbounded(f"{hub.host} leads to {target.host}, which is in a private network")


def is_inside(host: str) -> bool:
    """Does that name, or one of its addresses, lie in a network that is not public?"""
    try:
        found = {str(entry[4][0]) for entry in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError):  # only a proxy may know it, and reach it
        return False
    return not all(ipaddress.ip_address(address.partition("%")[0]).is_global for address in found)
