"""People at work while things break.

They submit, lose answers, ask again, cancel, pause, resume and drain.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import httpx

from tests.chaos.cluster import LIAR
from tests.chaos.notes import Known, Note, Notebook
from tests.harness.stack import Stack
from tests.stack.jobs import WIDE

ON_ONE_SLOT = {"tokens_per_sample": 64, "per_device_batch_size": 2, "effective_batch_size": 2, "seed": 7}
# The first is over before most faults and the second meets some; a policy may resize the third.
SHAPES = {
    "short": {**ON_ONE_SLOT, "max_steps": 30},
    "long": {**ON_ONE_SLOT, "max_steps": 150},
    "wide": {**WIDE, "seed": 7},
}
PATIENCE_S, NO_PATIENCE_S = 20.0, (0.01, 0.3)
SHORTEST_WAIT_S, LONGEST_WAIT_S = 0.5, 5.0
FINAL = frozenset({"succeeded", "failed", "cancelled"})


def body_of(stack: Stack, shape: str, name: str = "") -> dict[str, Any]:
    """A submission."""
    return {
        "model": "builtin/tiny-llama",
        "training_file": stack.training_file,
        "params": SHAPES[shape],
        "name": name,
    }


class Caller:
    """Sends requests and notes what is known of their effect."""

    def __init__(self, stack: Stack, token: str, notebook: Notebook) -> None:
        self.notebook = notebook
        headers = {"Authorization": f"Bearer {token}"}
        self.http = httpx.Client(base_url=stack.url, headers=headers, trust_env=False)

    def post(
        self,
        op: str,
        path: str,
        body: Mapping[str, Any],
        *,
        method: str = "POST",
        patience_s: float = PATIENCE_S,
        **about: str,
    ) -> tuple[Known, Any, float]:
        """(what is known, the answer, after how many seconds to ask again)."""
        headers = {"Idempotency-Key": about["key"]} if "key" in about else {}
        began, code, answer, again_s = time.monotonic(), 0, None, 1.0
        try:
            sent = {"json": body} if method == "POST" else {}
            response = self.http.request(method, f"/api/{path}", headers=headers, timeout=patience_s, **sent)
        except httpx.ConnectError:
            known: Known = "failed"
        except httpx.TransportError:
            known = "unknown"
        else:
            code, again_s = response.status_code, float(response.headers.get("Retry-After", 1))
            known = "ok" if response.is_success else "unknown" if response.is_server_error else "failed"
            answer = response.json() if response.is_success and response.content else None
        if answer and "id" in answer and "key" in about:
            about["job"] = answer["id"]
        took_s = time.monotonic() - began
        self.notebook.add(Note(op=op, known=known, code=code, took_s=took_s, **about))
        return known, answer, min(again_s, LONGEST_WAIT_S)

    def get(self, path: str, **query: Any) -> Any:
        """The answer, or None."""
        try:
            response = self.http.get(f"/api/{path}", params=query, timeout=PATIENCE_S)
        except httpx.TransportError:
            return None
        return response.json() if response.is_success else None


class Crowd:
    """Some users and an administrator, each in a thread of its own.

    They work until they are told to stop.
    """

    def __init__(self, stack: Stack, notebook: Notebook, seed: str, *, users: int, open_jobs: int) -> None:
        self.stack, self.notebook, self.open_jobs = stack, notebook, open_jobs
        self.done = threading.Event()
        roles = [(f"user-{number}", self._user) for number in range(users)] + [("admin", self._admin)]
        self.threads = [
            threading.Thread(target=self._play, args=(play, random.Random(f"{seed}/{name}"), name))
            for name, play in roles
        ]
        self.errors: list[str] = []

    def start(self) -> None:
        for thread in self.threads:
            thread.start()

    def stop(self) -> None:
        self.done.set()
        for thread in self.threads:
            thread.join()

    def _play(self, play: Callable[[random.Random, str], None], rng: random.Random, name: str) -> None:
        try:
            play(rng, name)
        except Exception as error:  # noqa: BLE001 -- told in the report: a client that died proves nothing
            self.errors.append(f"client {name} ended with {error!r}")

    def _user(self, rng: random.Random, name: str) -> None:
        caller, mine, paused = Caller(self.stack, self.stack.token, self.notebook), list[str](), list[str]()
        number = 0
        while not self.done.wait(rng.uniform(SHORTEST_WAIT_S, 3)):
            if paused and rng.random() < 0.7:
                job = paused.pop(0)
                known, _, _ = caller.post("resume", f"jobs/{job}/resume/", {}, job=job)
                if known != "ok":
                    paused.append(job)
            page = caller.get("jobs/", limit=50)
            if page is None:
                continue
            open_ids = {job["id"] for job in page["data"] if job["internal_state"] not in FINAL}
            mine = [job for job in mine if job in open_ids]
            paused = [job for job in paused if job in open_ids]
            if len(open_ids - set(paused)) < self.open_jobs:
                number += 1
                mine += self._submit(caller, rng, f"{name}-{number}")
            elif mine and rng.random() < 0.15:
                self._ask(caller, rng, rng.choice(mine), paused)

    def _submit(self, caller: Caller, rng: random.Random, key: str) -> list[str]:
        """Submit a job until there is an answer.

        Some users do not wait for the first answer, and some ask once more after it.
        """
        shape = rng.choice(sorted(SHAPES))
        body = body_of(self.stack, shape, key)
        patience_s = rng.uniform(*NO_PATIENCE_S) if rng.random() < 0.4 else PATIENCE_S
        while not self.done.is_set():
            _, answer, again_s = caller.post(
                "submit", "jobs/", body, patience_s=patience_s, key=key, shape=shape
            )
            if answer:
                if rng.random() < 0.2:
                    caller.post("submit", "jobs/", body, key=key, shape=shape)
                if rng.random() < 0.1:
                    caller.post("submit other", "jobs/", {**body, "retries": 1}, key=key)
                return [str(answer["id"])]
            patience_s = PATIENCE_S
            self.done.wait(again_s)
        return []

    @staticmethod
    def _ask(caller: Caller, rng: random.Random, job: str, paused: list[str]) -> None:
        verb = rng.choice(["cancel", "pause", "pause"])
        known, _, _ = caller.post(verb, f"jobs/{job}/{verb}/", {}, job=job)
        if verb == "pause" and known != "failed":
            paused.append(job)

    def _admin(self, rng: random.Random, _: str) -> None:
        """Drain a node now and then.

        Nodes that are drained or blocked are resumed after a while.
        """
        caller = Caller(self.stack, self.stack.admin_token, self.notebook)
        while not self.done.wait(rng.uniform(4, 12)):
            nodes = (caller.get("nodes/") or {"data": []})["data"]
            for node in nodes:
                if node["state"] in ("drained", "draining", "blocked"):
                    caller.post("resume node", f"nodes/{node['id']}/resume/", {"reason": "chaos"})
            if nodes and rng.random() < 0.4:
                body = {"reason": "chaos", "move_jobs": rng.random() < 0.5}
                caller.post("drain", f"nodes/{rng.choice(nodes)['id']}/drain/", body)


def tidy(stack: Stack, notebook: Notebook) -> None:
    """As a person would after trouble: let every node work and every paused job go on.

    A node that lied is removed.
    """
    admin, user = (Caller(stack, token, notebook) for token in (stack.admin_token, stack.token))
    for node in (admin.get("nodes/") or {"data": []})["data"]:
        if node["name"].startswith(LIAR):
            if node["state"] == "ready":
                admin.post("drain", f"nodes/{node['id']}/drain/", {"reason": "it lied"})
            else:
                admin.post("remove", f"nodes/{node['id']}/", {}, method="DELETE")
        elif node["state"] in ("drained", "draining", "blocked"):
            admin.post("resume node", f"nodes/{node['id']}/resume/", {"reason": "chaos is over"})
    for job in (user.get("jobs/", limit=50) or {"data": []})["data"]:
        if job["internal_state"] == "paused":
            user.post("resume", f"jobs/{job['id']}/resume/", {}, job=job["id"])
