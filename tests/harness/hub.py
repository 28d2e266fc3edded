"""A local stand-in for the Hugging Face Hub.

It serves the listing and file routes that a reader needs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.harness.threads import served

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub:
    """A hub with one data set.

    Large files are redirected to another route, as the hub does with its storage.
    """

    def __init__(self, dataset: str, files: Mapping[str, bytes], **card: Any) -> None:
        self.dataset, self.files, self.card = dataset, dict(files), card
        self.address = ""
        self.stated: dict[str, str] = {}  # digests that are listed instead of the true ones

    def info(self) -> dict[str, Any]:
        """The answer of /api/datasets/NAME?blobs=true."""
        siblings = [
            {
                "rfilename": name,
                "size": len(content),
                "lfs": {"sha256": self.stated.get(name, hashlib.sha256(content).hexdigest())},
            }
            for name, content in self.files.items()
        ]
        return {
            "id": self.dataset,
            "sha": COMMIT,
            "siblings": siblings,
            "tags": ["license:apache-2.0"],
            "cardData": {"license": "apache-2.0", **self.card},
        }

    def answer(self, path: str) -> tuple[int, bytes, dict[str, str]]:
        """(status, body, headers) of a GET."""
        path = path.partition("?")[0]
        if path == f"/api/datasets/{self.dataset}":
            return 200, json.dumps(self.info()).encode(), {"Content-Type": "application/json"}
        prefix = f"/datasets/{self.dataset}/resolve/{COMMIT}/"
        name = path.removeprefix(prefix).removeprefix("/storage/")
        if name not in self.files:
            return 404, b"<html>not found</html>", {}
        if path.startswith(prefix):
            return 302, b"", {"Location": f"/storage/{name}", "X-Repo-Commit": COMMIT}
        return 200, self.files[name], {"Content-Type": "text/csv"}


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    """The hub on a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body, headers = hub.answer(self.path)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.address = f"http://127.0.0.1:{server.server_port}"
    with served(server):
        yield hub
