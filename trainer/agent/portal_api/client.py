"""The portal as a node sees it: four calls over HTTPS.

Each answer is turned into a value or an error.
"""

from __future__ import annotations

import hashlib
import os
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx

from trainer.agent.errors import (
    ContentLost,
    Interrupted,
    PortalAway,
    PortalFull,
    PortalRefused,
    SetupError,
    StaleClaim,
    TooMuch,
    Unauthorised,
    UpgradeNeeded,
)
from trainer.agent.portal_url import check_url, is_loopback
from trainer.protocol import Enrol, File, ProtocolError, Sync, SyncReply, to_json
from trainer.protocol_parsing import parse_reply

SYNC_TIMEOUT = httpx.Timeout(10.0, connect=5.0)
_CHUNK_BYTES = 2**16
TRANSFER_TIMEOUT = httpx.Timeout(60.0, connect=5.0)


class Portal:
    """A connection to the portal. Safe to use from several threads."""

    def __init__(self, url: str, ca: Path | None = None) -> None:
        self.url = check_url(url)
        loopback = is_loopback(urlsplit(self.url).hostname or "")
        try:
            verify = ssl.create_default_context(cafile=str(ca)) if ca else True
        except (OSError, ssl.SSLError) as error:
            raise SetupError(f"--ca {ca}: no certificates could be read from it ({error})") from None
        # A proxy named in the environment is for the world outside, not for this machine.
        self._http = httpx.Client(
            base_url=f"{self.url}/agent/v1/", verify=verify, trust_env=not loopback, timeout=SYNC_TIMEOUT
        )

    def authorise(self, token: str) -> None:
        """Use this node token from now on."""
        self._http.headers["Authorization"] = f"Bearer {token}"

    def close(self) -> None:
        """Close idle connections."""
        self._http.close()

    def enrol(self, message: Enrol) -> tuple[str, str]:
        """Exchange the join token for (node, node token)."""
        answer = self._json("enrol", to_json(message))
        node, token = answer.get("node"), answer.get("node_token")
        if not isinstance(node, str) or not isinstance(token, str):
            raise PortalAway("the answer to the enrolment names no node and token")
        return node, token

    def sync(self, message: Sync) -> SyncReply:
        """Tell the portal how things are and hear what it wants."""
        try:
            return parse_reply(self._json("sync", to_json(message)))
        except ProtocolError as error:
            raise PortalAway(f"the answer to the sync is not understood: {error}") from error

    def fetch(self, claim: str, fence: int, file: File, destination: Path, stopping: threading.Event) -> None:
        """Download an input, or what an earlier try has left of it to download.

        Raises Interrupted, PortalAway if another try may go on from there, and ContentLost if the content is
        not as `file` says.
        """
        partial = destination.with_name(destination.name + ".part")
        partial.parent.mkdir(parents=True, exist_ok=True)
        url = f"claims/{claim}/inputs/{quote(file.path)}"
        digest, kept = _begun(partial, file)
        headers = {"Range": f"bytes={kept}-", "If-Range": f'"{file.sha256}"'} if kept else {}
        try:
            with self._http.stream(
                "GET", url, params={"fence": fence}, headers=headers, timeout=TRANSFER_TIMEOUT
            ) as answer:
                if not answer.is_success:
                    answer.read()
                    _raise_for(answer)
                if answer.status_code != httpx.codes.PARTIAL_CONTENT:
                    digest, kept = hashlib.sha256(), 0
                received = kept
                with partial.open("ab" if kept else "wb") as out:
                    for chunk in _until(stopping, answer.iter_bytes()):
                        received += len(chunk)
                        if received > file.bytes:
                            break
                        digest.update(chunk)
                        out.write(chunk)
        except httpx.HTTPError as error:
            raise PortalAway(_short(error)) from error
        if received != file.bytes or digest.hexdigest() != file.sha256:
            partial.unlink()
            wrong = f"{file.path} arrived with other contents than announced (size or SHA-256 differ)"
            raise PortalAway(f"{wrong}; from its beginning again") if kept else ContentLost(wrong)
        partial.replace(destination)

    def upload(self, claim: str, fence: int, file: File, descriptor: int, stopping: threading.Event) -> None:
        """Store a file as the claim's artifact `file.path`.

        Takes over and closes `descriptor`. Raises Interrupted.
        """
        with os.fdopen(descriptor, "rb") as body:
            try:
                answer = self._http.put(
                    f"claims/{claim}/artifacts/{quote(file.path)}",
                    params={"fence": fence},
                    content=_until(stopping, iter(lambda: body.read(_CHUNK_BYTES), b"")),
                    headers={
                        "X-Content-SHA256": file.sha256,
                        "Content-Length": str(file.bytes),
                        "Content-Type": "application/octet-stream",
                    },
                    timeout=TRANSFER_TIMEOUT,
                )
            except (httpx.HTTPError, httpx.StreamError) as error:
                raise PortalAway(_short(error)) from error
        _raise_for(answer)

    def _json(self, path: str, message: dict[str, Any]) -> dict[str, Any]:
        try:
            answer = self._http.post(path, json=message)
            _raise_for(answer)
            value = answer.json()
        except httpx.HTTPError as error:
            raise PortalAway(_short(error)) from error
        except ValueError as error:
            raise PortalAway("the portal's answer is not JSON; is --portal the right address?") from error
        if not isinstance(value, dict):
            raise PortalAway("the portal's answer is no object")
        return value


def _begun(partial: Path, file: File) -> tuple[hashlib._Hash, int]:
    """Digest and size of what an earlier try left of a file, if it is of use."""
    if partial.is_file() and 0 < partial.stat().st_size < file.bytes:
        with partial.open("rb") as begun:
            return hashlib.file_digest(begun, "sha256"), begun.tell()
    return hashlib.sha256(), 0


def _until(stopping: threading.Event, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the chunks of a transfer, which may take hours.

    Raises Interrupted once the transfer is not needed any more.
    """
    for chunk in chunks:
        if stopping.is_set():
            raise Interrupted("stopped during a transfer")
        yield chunk


def _raise_for(answer: httpx.Response) -> None:
    """Turn a status into the error that says what to do about it."""
    status = answer.status_code
    if answer.is_success:
        return
    said = f"the portal answered {status}: {answer.text[:300]}"
    if status == 426:
        raise UpgradeNeeded(said)
    if status == 401:
        raise Unauthorised(said)
    if status == 409:
        raise StaleClaim(said)
    if status == 410:
        raise ContentLost(said)
    if status == 413:
        raise TooMuch(said)
    if status == 507:
        raise PortalFull(said, retry_after_s(answer))
    if status in {408, 425, 429} or status >= 500:
        raise PortalAway(said, retry_after_s(answer))
    raise PortalRefused(said)


def retry_after_s(answer: httpx.Response) -> float:
    value = answer.headers.get("Retry-After", "")
    return min(float(value), 60.0) if value.isascii() and value.isdigit() else 0.0


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:300]
