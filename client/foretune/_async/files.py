"""Training files: sent once, whatever their size."""

from __future__ import annotations

import contextlib
import io
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from .. import _http
from .._errors import BadRequest, ForetuneError, NotFound
from .._files import PART_BYTES, digest_of, part_of, place_of, size_of
from .._models import File
from .downloads import bring
from .transport import AsyncTransport


class AsyncFiles:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def upload(self, source: str | Path | BinaryIO, *, filename: str = "") -> File:
        """Bring a file to the portal.

        One that you or your teams have there is not sent again. A large one goes in parts; if that was cut
        off, it goes on for a day with those that are missing. `source` is a path or an open binary file that
        can seek.
        """
        if isinstance(source, (str, Path)):
            with Path(source).open("rb") as opened:
                return await self._upload(opened, filename or Path(source).name)
        return await self._upload(source, filename or Path(str(getattr(source, "name", "rows.jsonl"))).name)

    async def _upload(self, opened: BinaryIO, filename: str) -> File:
        sha256 = await _http.async_call(digest_of, opened)
        digest = {"Content-SHA256": sha256}
        with contextlib.suppress(BadRequest):  # the portal has none with this content: no file was sent
            return File.parse(await self._transport.json("POST", "files/", headers=digest, harmless=True))
        if size_of(opened) > PART_BYTES:
            return await self._upload_in_parts(opened, filename, sha256)
        opened.seek(0)
        sent, key = {"file": (filename, opened)}, _http.new_key()
        return File.parse(await self._transport.json("POST", "files/", files=sent, headers=digest, key=key))

    async def _upload_in_parts(self, opened: BinaryIO, filename: str, sha256: str) -> File:
        """Go on with an upload of the same content that was cut off, else begin one."""
        described = {"filename": filename, "bytes": size_of(opened), "sha256": sha256}
        upload = await self._begun(filename, sha256) or await self._transport.json(
            "POST", "uploads/", json=described, key=_http.new_key()
        )
        held: dict[str, list[str]] = {}
        for part in upload["parts"]:
            held.setdefault(part["sha256"], []).append(part["id"])
        parts = []
        for start in range(0, size_of(opened), PART_BYTES):
            data = io.BytesIO(await _http.async_call(part_of, opened, start))
            digest = await _http.async_call(digest_of, data)
            if held.get(digest):
                parts.append(held[digest].pop())
                continue
            sent = await self._transport.json(
                "POST",
                f"uploads/{upload['id']}/parts/",
                files={"data": (filename, data)},
                headers={"Content-SHA256": digest},
                key=_http.new_key(),
            )
            parts.append(sent["id"])
        done = await self._transport.json(
            "POST", f"uploads/{upload['id']}/complete/", json={"part_ids": parts}, harmless=True
        )
        return File.parse(done["file"])

    async def _begun(self, filename: str, sha256: str) -> Any:
        """An upload of this file that is under way, with its parts."""
        async for row in self._transport.pages("uploads/", {"sha256": sha256, "state": "pending"}):
            if row["filename"] == filename:
                return await self._transport.json("GET", f"uploads/{row['id']}/")
        return None

    async def list(self, **filters: Any) -> AsyncIterator[File]:
        """Your files and your teams', newest first."""
        async for row in self._transport.pages("files/", filters):
            yield File.parse(row)

    async def get(self, identity: str) -> File:
        return File.parse(await self._transport.json("GET", f"files/{identity}/"))

    async def find(self, name: str) -> File:
        """The one with this id or, if only one has it, this name.

        Raises NotFound and ForetuneError.
        """
        if name.startswith("file-"):
            return await self.get(name)
        named = [file async for file in self.list(name=name)]
        if len(named) > 1:
            raise ForetuneError(
                f"{len(named)} files are called {name}: {', '.join(one.id for one in named)}."
            )
        if not named:
            raise NotFound(f"There is no file {name} that you see.", code="not_found", status=404)
        return named[0]

    async def content(self, file: File | str) -> bytes:
        response = await self._transport.request("GET", f"files/{id_of(file)}/content/")
        return bytes(response.content)

    async def download(self, file: File | str, path: str | Path = "") -> Path:
        """Bring a file of any size; returns where it lies.

        path: its own name in this folder unless given. Raises BrokenDownload, Unreachable.
        """
        known = file if isinstance(file, File) else await self.get(file)
        place = Path(path) if path else place_of(Path(), known.filename.replace("/", "_"))
        address = f"files/{known.id}/content/"
        await bring(self._transport, address, place, sha256=known.sha256, size=known.bytes)
        return place

    async def delete(self, file: File | str) -> None:
        await self._transport.request("DELETE", f"files/{id_of(file)}/")


def id_of(given: object) -> str:
    """The id of an object, or the id itself."""
    if isinstance(given, str):
        return given
    identity = given.get("id") if isinstance(given, Mapping) else getattr(given, "id", None)
    if not isinstance(identity, str):
        raise TypeError(f"an object of this client or its id is needed, not {given!r}")
    return identity
