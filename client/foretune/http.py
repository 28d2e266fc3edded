"""A portal's REST API over HTTP: one person's access, errors as exceptions."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx

from . import __version__

URL, TOKEN = "FORETUNE_URL", "FORETUNE_TOKEN"  # the environment's
FINAL = frozenset({"succeeded", "failed", "cancelled"})
LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


class NotConfigured(Exception):
    """No portal or no token is named; the message says how to name one."""


class ApiError(Exception):
    """The portal refused; the message is the portal's.

    status: of the answer, as HTTP has it.
    """

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


class Unavailable(ApiError):
    """The portal is busy or restarts, and says to try again."""


AWAY = (httpx.TransportError, Unavailable)  # for a moment


class PortalClient:
    """One person's access to a portal.

    url: the portal's address; without one that of FORETUNE_URL.
    token: an API token; without one that of FORETUNE_TOKEN.

    Where it waits for something, a server that restarts or is busy for a moment is no error. Raises
    NotConfigured if address or token are missing or the address is none.
    """

    def __init__(self, url: str = "", token: str = "", *, timeout_s: float = 30.0) -> None:
        base = _base_url(url or os.environ.get(URL, ""))
        token = (token or os.environ.get(TOKEN, "")).strip()
        if not token or not token.isascii() or not token.isprintable():
            raise NotConfigured(f"No API token: make one on the portal's page API tokens and set {TOKEN}.")
        headers = {"Authorization": f"Bearer {token}", "User-Agent": f"foretune/{__version__}"}
        # A proxy for the internet must not see, or swallow, requests to this machine.
        proxied = base.host not in LOCAL
        self.http = httpx.Client(base_url=base, headers=headers, timeout=timeout_s, trust_env=proxied)

    def get(self, path: str, **query: Any) -> Any:
        return self.request("GET", path, params=query)

    def post(self, path: str, body: Mapping[str, Any] | None = None, **options: Any) -> Any:
        return self.request("POST", path, json=body or {}, **options)

    def request(self, method: str, path: str, **options: Any) -> Any:
        """Return the answer's JSON, or None where it has no body.

        path: below /api/. options: those of httpx.Client.request.
        Raises ApiError, Unavailable and httpx.TransportError.
        """
        response = self.http.request(method, f"/api/{path.removeprefix('/').removeprefix('api/')}", **options)
        if not response.is_success:
            raise _refusal(response)
        if not response.content:
            return None
        try:
            return response.json()
        except ValueError:
            raise _refusal(response, "The answer is no JSON: is this the address of a portal?") from None

    def upload(self, path: Path) -> str:
        """The id under which the portal now holds this file."""
        with path.open("rb") as file:
            return str(self.request("POST", "files/", files={"file": (path.name, file)})["id"])

    def submit(self, *, model: str, training_file: str, key: str = "", **more: Any) -> dict[str, Any]:
        headers = {"Idempotency-Key": key} if key else {}
        body = {"model": model, "training_file": training_file, **more}
        return dict(self.post("jobs/", body, headers=headers))

    def job(self, job_id: str) -> dict[str, Any]:
        return dict(self.get(f"jobs/{job_id}/"))

    def wait_for_node(self, name: str = "", *, timeout_s: float = 60.0) -> None:
        """Return once a node (of this name) is ready.

        Recommendations depend on the nodes that exist. Raises TimeoutError.
        """
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            with suppress(*AWAY):
                nodes = self.get("nodes/")["data"]
                if any(node["state"] == "ready" and name in ("", node["name"]) for node in nodes):
                    return
            time.sleep(0.2)
        raise TimeoutError(f"no node became ready within {timeout_s:g} s; see the agent's log")

    def wait(
        self,
        job_id: str,
        until: Callable[[dict[str, Any]], bool] = lambda job: job["internal_state"] in FINAL,
        *,
        timeout_s: float = 120.0,
        every_s: float = 0.2,
    ) -> dict[str, Any]:
        """Return the job as soon as `until` holds.

        Raises TimeoutError with the state it was last seen in.
        """
        end, job = time.monotonic() + timeout_s, {}
        while time.monotonic() < end:
            with suppress(*AWAY):
                job = self.job(job_id)
                if until(job):
                    return job
            time.sleep(every_s)
        raise TimeoutError(f"job {job_id} is still {job.get('internal_state')}: {job.get('wait') or job}")


def _base_url(given: str) -> httpx.URL:
    if not given:
        raise NotConfigured(f"No portal: give its address, or set {URL}.")
    try:
        url = httpx.URL(given)
    except httpx.InvalidURL as wrong:
        raise NotConfigured(f"The portal's address is none: {wrong}.") from wrong
    if url.scheme not in ("http", "https") or not url.host:
        raise NotConfigured("The portal's address must begin with https:// or http:// and name a host.")
    return url


def _refusal(response: httpx.Response, message: str = "") -> ApiError:
    if not message:
        try:
            message = response.json()["error"]["message"]
        except (ValueError, KeyError, TypeError):
            message = response.text[:200]
    request = response.request
    kind = Unavailable if response.status_code == httpx.codes.SERVICE_UNAVAILABLE else ApiError
    text = f"{request.method} {request.url.path}: {response.status_code} {message}"
    return kind(text, status=response.status_code)
