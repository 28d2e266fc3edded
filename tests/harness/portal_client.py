"""One person's access to a live portal, as tests need it: plain answers, no patience but where they wait."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2

from client.foretune._errors import Unavailable, Unreachable
from client.foretune._models import FINAL
from client.foretune._sync.client import Client

AWAY = (Unreachable, Unavailable)  # for a moment


class PortalClient:
    """Each request is tried once: what a portal answers meanwhile is what tests are about."""

    def __init__(self, url: str, token: str) -> None:
        self.client = Client(url, token, tries=1)

    @property
    def http(self) -> httpx2.Client:
        return self.client.transport.http

    def get(self, path: str, **query: Any) -> Any:
        return self.client.request("GET", path, query=query)

    def post(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        return self.client.request("POST", path, json=body or {})

    def patch(self, path: str, body: Mapping[str, Any]) -> Any:
        return self.client.request("PATCH", path, json=body)

    def upload(self, path: Path) -> str:
        return self.client.files.upload(path).id

    def submit(self, *, key: str = "", **fields: Any) -> dict[str, Any]:
        return dict(self.client.jobs.submit(key=key, **fields).raw)

    def job(self, job_id: str) -> dict[str, Any]:
        return dict(self.get(f"jobs/{job_id}/", include="attempts"))

    def wait_for_node(self, name: str = "", *, timeout_s: float = 60.0) -> None:
        """Return once a node (of this name) is ready. Raises TimeoutError."""
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
        end, job = time.monotonic() + timeout_s, dict[str, Any]()
        while time.monotonic() < end:
            with suppress(*AWAY):
                job = self.job(job_id)
                if until(job):
                    return job
            time.sleep(every_s)
        raise TimeoutError(f"job {job_id} is still {job.get('internal_state')}: {job.get('wait') or job}")
