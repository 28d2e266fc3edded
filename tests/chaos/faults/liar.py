"""A node that lies: it joins, takes jobs, and reports what cannot be."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from tests.chaos.cluster import LIAR, Cluster
from tests.harness.fake_node import PROTOCOL, facts

EVERY_S = 0.3
FILE = {"path": "weights.safetensors", "sha256": "0" * 64, "bytes": 5}
# Beyond every plan and all hardware, of files that never came, and of what was never there.
LIES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("start", {"steps_total": -1, "tokens_total": 1e18, "startup_s": -5}),
    ("step", {"step": 10**9, "loss": 0.1}),
    ("step", {"step": 1, "loss": 1e308, "tokens_per_s": 1e18, "memory_bytes": 1e18, "step_s": -3}),
    ("checkpoint", {"step": 10**9, "stored": "node", "files": [FILE]}),
    ("checkpoint", {"step": 10, "stored": "portal", "files": [FILE]}),
    ("checkpoint", {"step": 11, "stored": "portal", "files": [{**FILE, "path": "../../x"}]}),
    ("checkpoint", {"step": 1, "stored": "gone"}),
    ("memory", {"memory_bytes": 1e19}),
    ("result", {"tokens_per_s": -1, "train_s": -4, "final_loss": 1e308}),
)
ENDS = ("checkpoint", "data", "lost")  # of claims that go on from nothing; none of them is the owner's fault


class Liar:
    """The node's side of the protocol, in a thread."""

    def __init__(self, url: str, join_token: str) -> None:
        self._http = httpx.Client(base_url=f"{url}/agent/v1/", trust_env=False, timeout=5)
        self._join_token = join_token
        self._done = threading.Event()
        self._lies, self._ends = itertools.cycle(LIES), itertools.cycle(ENDS)
        self._seq = itertools.count(1)
        self._claims: dict[str, tuple[int, int]] = {}  # claim -> fence, and the last report that was heard
        self._told: dict[str, int] = {}
        self.thread = threading.Thread(target=self._work)

    def stop(self) -> None:
        self._done.set()
        self.thread.join()

    def _work(self) -> None:
        while not self._done.wait(EVERY_S):
            with contextlib.suppress(httpx.TransportError, httpx.HTTPStatusError):
                if "Authorization" not in self._http.headers:
                    self._join()
                self._sync()

    def _join(self) -> None:
        body = {"join_token": self._join_token, "protocol": PROTOCOL, "name": LIAR, "facts": facts(slots=1)}
        answer = self._http.post("enrol", json=body).raise_for_status().json()
        self._http.headers["Authorization"] = f"Bearer {answer['node_token']}"

    def _sync(self) -> None:
        said = [self._say(claim, fence, heard) for claim, (fence, heard) in self._claims.items()]
        body = {"protocol": PROTOCOL, "boot_id": "liar", "seq": next(self._seq), "claims": said}
        reply = self._http.post("sync", json=body).raise_for_status().json()
        self._claims = {
            order["claim"]: (order["fence"], order.get("acked_seq", 0))
            for order in reply["claims"]
            if order.get("error") != "stale_attempt"
        }

    def _say(self, claim: str, fence: int, heard: int) -> dict[str, Any]:
        """One lie after another; after all of them the claim ends with one more."""
        kind, body = next(self._lies)
        self._told[claim] = self._told.get(claim, 0) + 1
        state = {
            "claim": claim,
            "fence": fence,
            "phase": "running",
            "reports": [{"seq": heard + 1, "kind": kind, "body": body}],
        }
        if self._told[claim] > len(LIES):
            state |= {"phase": "ended", "outcome": next(self._ends), "reason": "a lie"}
        return state


@contextlib.contextmanager
def lying(cluster: Cluster, _: str) -> Iterator[None]:
    """A liar for a while, which then falls silent; `tidy` removes it."""
    stack = cluster.stack
    liar = Liar(stack.url, (Path(stack.root) / "join_token").read_text())
    liar.thread.start()
    try:
        yield
    finally:
        liar.stop()
