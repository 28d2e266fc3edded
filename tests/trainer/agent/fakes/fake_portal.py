"""A portal for agents under test.

It is a real HTTP server that reads messages with `trainer.protocol_parsing`.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from trainer.protocol import ClaimState, File, NodeFacts, Phase, Report, Resources, Resume, Spec, to_json
from trainer.protocol_parsing import parse_enrol, parse_sync

ONE_SLOT = Resources(gpus_per_node=1, cores=1, memory_bytes=2**30, grace_s=5.0)
JOIN, TOKEN = "join-me", "node-token-1"
SLOW_BYTES = 50_000
PAUSE_S = 0.05  # of agents under test, between two syncs and between two looks at a training


def file_of(path: str, content: bytes) -> File:
    return File(path=path, sha256=hashlib.sha256(content).hexdigest(), bytes=len(content))


@dataclass
class Given:
    """The portal's order for a claim, and the reports of it."""

    spec: Spec
    inputs: dict[str, bytes]
    want: str = "run"
    stop_for: str = ""
    grace_s: float = 5.0
    rendezvous: str = ""
    error: str = ""
    listed: bool = True
    with_spec: bool = True
    reports: list[Report] = field(default_factory=list)
    sent_again: int = 0
    phases: list[str] = field(default_factory=list)
    waits: list[str] = field(default_factory=list)  # why, while it was queued
    end: ClaimState | None = None
    artifacts: dict[str, bytes] = field(default_factory=dict)

    def kinds(self) -> list[str]:
        return [report.kind.value for report in self.reports]

    def bodies(self, kind: str) -> list[dict[str, Any]]:
        return [report.body for report in self.reports if report.kind == kind]


class FakePortal:
    def __init__(self) -> None:
        self.claims: dict[str, Given] = {}
        self.away = False  # 503 to everything
        self.full = False  # 507 to every file
        self.slow = False  # takes and gives files in small pieces
        self.breaks_after = 0  # a file's bytes; then the connection is closed
        self.ranges: list[str] = []  # asked for, one for each download begun
        self.uploads = 0  # begun
        self.lost = 404  # this status for an input that is not there
        self.damaged_once = set[str]()  # inputs that arrive with other contents the next time
        self.status = 0  # this status to every sync
        self.enrolments: list[NodeFacts] = []
        self.told: list[NodeFacts] = []  # with syncs
        self.boot_ids: list[str] = []
        self.alive: list[str] = []  # claims in the last sync
        self.uses: list[float] = []
        self.lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"portal": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def give(
        self,
        claim: str,
        mode: str,
        *,
        fence: int = 1,
        inputs: dict[str, bytes] | None = None,
        announced: tuple[File, ...] | None = None,
        resume: Resume | None = None,
        want: str = "run",
        with_spec: bool = True,
        gpus: tuple[int, ...] = (0,),
        model: str = "builtin/tiny-llama",
        **limits: Any,
    ) -> Given:
        inputs = {"train.jsonl": b'{"prompt": "a", "completion": "b"}\n'} if inputs is None else inputs
        names = {name: content for name, content in inputs.items() if not name.startswith("resume/")}
        spec = Spec(
            job=f"job-{claim}",
            attempt=f"attempt-{claim}",
            claim=claim,
            fence=fence,
            recipe="sft",
            entry="trainer.train.entries.sft",
            model=model,
            params={"mode": mode},
            gpus=gpus,
            resources=replace(ONE_SLOT, gpus_per_node=max(1, len(gpus))),
            inputs=announced or tuple(file_of(name, content) for name, content in names.items()),
            resume=resume,
            **limits,
        )
        given = Given(spec=spec, inputs=inputs, want=want, with_spec=with_spec)
        with self.lock:
            self.claims[claim] = given
        return given

    def sync(self, raw: Any) -> dict[str, Any]:
        message = parse_sync(raw)
        self.boot_ids.append(message.boot_id)
        self.told += [message.facts] if message.facts else []
        self.alive = [state.claim for state in message.claims]
        self.uses += [use.util for use in message.gpus]
        for state in message.claims:
            if state.claim in self.claims:
                self._hear(self.claims[state.claim], state)
        listed = {name: given for name, given in self.claims.items() if given.listed}
        return {
            "next_sync_s": PAUSE_S,
            "draining": False,
            "claims": [self._order(name, given) for name, given in listed.items()],
        }

    def _hear(self, given: Given, state: ClaimState) -> None:
        given.with_spec = False
        given.phases.append(state.phase.value)
        given.waits += [state.reason] if state.phase is Phase.QUEUED else []
        for report in state.reports:
            if report.seq <= len(given.reports):
                given.sent_again += 1
                assert given.reports[report.seq - 1] == report, "a number was given twice"
                continue
            assert report.seq == len(given.reports) + 1, "a number was left out"
            given.reports.append(report)
        if state.outcome is not None:
            given.end = state
            given.listed = False

    @staticmethod
    def _order(name: str, given: Given) -> dict[str, Any]:
        order = {
            "claim": name,
            "fence": given.spec.fence,
            "want": given.want,
            "stop_for": given.stop_for,
            "grace_s": given.grace_s,
            "acked_seq": len(given.reports),
            "rendezvous": given.rendezvous,
            "error": given.error,
        }
        return {**order, "spec": to_json(given.spec)} if given.with_spec else order

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


class _Handler(BaseHTTPRequestHandler):
    portal: FakePortal
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: Any) -> None:
        pass

    def _body(self) -> bytes:
        left, body = int(self.headers.get("Content-Length", 0)), b""
        while self.portal.slow and self.command == "PUT" and left > len(body):
            body += self.rfile.read(min(SLOW_BYTES, left - len(body)))
            time.sleep(PAUSE_S)
        return body + self.rfile.read(left - len(body))

    def _answer(self, status: int, body: bytes = b"{}", *, size: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if size is None else size))
        self.end_headers()
        while self.portal.slow and self.command == "GET" and body:
            self.wfile.write(body[:SLOW_BYTES])
            body = body[SLOW_BYTES:]
            time.sleep(PAUSE_S)
        self.wfile.write(body)

    def do_POST(self) -> None:
        raw = json.loads(self._body())
        if self.portal.away:
            return self._answer(503)
        if self.path == "/agent/v1/enrol":
            enrolment = parse_enrol(raw)
            if enrolment.join_token != JOIN:
                return self._answer(401)
            self.portal.enrolments.append(enrolment.facts)
            return self._answer(200, json.dumps({"node": "n1", "node_token": TOKEN}).encode())
        if self.portal.status or self.headers["Authorization"] != f"Bearer {TOKEN}":
            return self._answer(self.portal.status or 401)
        with self.portal.lock:
            return self._answer(200, json.dumps(self.portal.sync(raw)).encode())

    def _claim(self) -> tuple[Given | None, str]:
        parts = urlsplit(self.path)
        _, _, _, _, claim, _, path = unquote(parts.path).split("/", 6)
        given = self.portal.claims.get(claim)
        fence = int(parse_qs(parts.query)["fence"][0])
        return (given if given and given.spec.fence == fence else None), path

    def do_GET(self) -> None:
        given, path = self._claim()
        if self.portal.away or given is None:
            return self._answer(503 if self.portal.away else 409)
        content = given.inputs.get(path)
        if path in self.portal.damaged_once:
            self.portal.damaged_once.remove(path)
            content = bytes(len(content or b""))
        return self._answer(self.portal.lost) if content is None else self._give(content)

    def _give(self, content: bytes) -> None:
        """From the byte that is asked for, as far as the connection lasts."""
        asked = self.headers["Range"] or ""
        self.portal.ranges.append(asked)
        known = self.headers["If-Range"] == f'"{hashlib.sha256(content).hexdigest()}"'
        begin = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and known else 0
        rest = content[begin:]
        self.close_connection = bool(self.portal.breaks_after)
        self._answer(206 if begin else 200, rest[: self.portal.breaks_after or len(rest)], size=len(rest))

    def do_PUT(self) -> None:
        self.portal.uploads += 1
        content = self._body()
        given, path = self._claim()
        if self.portal.away or given is None:
            return self._answer(503 if self.portal.away else 409)
        if self.portal.full:
            return self._answer(507)
        if hashlib.sha256(content).hexdigest() != self.headers["X-Content-SHA256"]:
            return self._answer(422)
        given.artifacts[path] = content
        return self._answer(200)


def until(condition: Callable[[], Any], timeout_s: float = 60.0) -> Any:
    """Wait for something to become true and return it; the limit is for a machine that hangs."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.02)
    raise AssertionError("it did not happen in time")
