"""A small client of the REST API.

It has the calls that the first job, the stack tests and the benchmarks need.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx

FINAL = frozenset({"succeeded", "failed", "cancelled"})


class ApiError(Exception):
    """The portal refused; the message is the portal's."""


class Unavailable(ApiError):
    """The portal is busy or restarts, and says to try again."""


AWAY = (httpx.TransportError, Unavailable)  # for a moment


class PortalClient:
    """One person's access to a portal.

    Where it waits for something, a server that restarts or is busy for a moment is no error.
    """

    def __init__(self, url: str, token: str, *, timeout_s: float = 30.0) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        # trust_env: a proxy for the internet must not see, or swallow, requests to this machine.
        self.http = httpx.Client(base_url=url, headers=headers, timeout=timeout_s, trust_env=False)

    def get(self, path: str, **query: Any) -> Any:
        return self._answer(self.http.get(f"/api/{path}", params=query))

    def post(self, path: str, body: Mapping[str, Any] | None = None, **options: Any) -> Any:
        return self._answer(self.http.post(f"/api/{path}", json=body or {}, **options))

    @staticmethod
    def _answer(response: httpx.Response) -> Any:
        if response.is_success:
            return response.json()
        try:
            message = response.json()["error"]["message"]
        except (ValueError, KeyError, TypeError):
            message = response.text[:200]
        request = response.request
        error = Unavailable if response.status_code == httpx.codes.SERVICE_UNAVAILABLE else ApiError
        raise error(f"{request.method} {request.url.path}: {response.status_code} {message}")

    def upload(self, path: Path) -> str:
        """The id under which the portal now holds this file."""
        with path.open("rb") as file:
            answer = self.http.post("/api/files/", files={"file": (path.name, file)})
        return str(self._answer(answer)["id"])

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
