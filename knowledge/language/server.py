"""Where a language model answers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class ChatServer:
    """A server with `POST /v1/chat/completions`.

    key_file: holds its key, and may change at any time.
    """

    url: str
    model: str
    key_file: Path | None = None

    @property
    def host(self) -> str:
        """The server's address as people see it: the place where their text goes."""
        return urlsplit(self.url).netloc.rpartition("@")[2]

    @property
    def endpoint(self) -> str:
        """The address of requests; the given one may end with `/v1`."""
        return self.url.rstrip("/").removesuffix("/v1") + "/v1/chat/completions"
