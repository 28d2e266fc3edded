"""Signing in by a browser on any device (RFC 8628)."""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping
from typing import Any

import click
import httpx2

from .. import _http
from .._errors import NotAllowed, Unreachable, WaitedTooLong
from .base import note, on_terminal

PROGRAM = "foretune"
GRANT_TYPE = "urn:ietf:params:oauth:grant-type:device_code"
SLOWER_S = 5.0  # as the RFC has it


def confirmed(url: str, scope: str) -> str:
    """The token, once a person has confirmed the code that is shown.

    Raises NotAllowed if they deny it, WaitedTooLong, Unreachable and NotConfigured.
    """
    base = _http.base_url(url)
    with httpx2.Client(
        base_url=base, timeout=_http.TIMEOUT, trust_env=base.host not in _http.LOCAL
    ) as portal:
        asked = {"client_id": PROGRAM, "scope": scope, "name": f"{PROGRAM} on {platform.node()}"[:100]}
        status, told = _sent(portal, "device-authorization", asked)
        if status != httpx2.codes.OK:
            raise NotAllowed(str(told.get("error_description") or f"{url} has no sign-in for programs."))
        page = str(told.get("verification_uri_complete") or told["verification_uri"])
        note(f"Open {page}\nand confirm the code {told['user_code']}")
        if on_terminal():
            click.launch(page)
        return _polled(portal, told)


def _polled(portal: httpx2.Client, told: Mapping[str, Any]) -> str:
    interval_s = float(told.get("interval", SLOWER_S))
    end = time.monotonic() + float(told["expires_in"])
    body = {"grant_type": GRANT_TYPE, "client_id": PROGRAM, "device_code": str(told["device_code"])}
    while time.monotonic() < end:
        time.sleep(interval_s)
        try:
            status, answer = _sent(portal, "token", body)
        except Unreachable:
            continue
        if status == httpx2.codes.OK:
            return str(answer["access_token"])
        error = answer.get("error")
        if error == "slow_down":
            interval_s += SLOWER_S
        elif error == "expired_token":
            break
        elif error != "authorization_pending" and status < httpx2.codes.INTERNAL_SERVER_ERROR:
            raise NotAllowed("The sign-in was denied." if error == "access_denied" else f"No token: {error}.")
    raise WaitedTooLong("Nobody confirmed the code in time; run `foretune login` again.")


def _sent(portal: httpx2.Client, address: str, form: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
    """(status, JSON) of an answer. Raises Unreachable."""
    try:
        answer = portal.post(f"/oauth/{address}/", data=dict(form))
    except httpx2.TransportError as away:
        raise Unreachable(f"{portal.base_url} is out of reach: {away}") from away
    try:
        content = answer.json()
    except ValueError:
        content = {}
    return answer.status_code, content if isinstance(content, dict) else {}
