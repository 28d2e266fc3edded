# Made from _async/ by client/sync_half.py.
"""Training files: sent once, whatever their size."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from .. import _http
from .._errors import BadRequest, ForetuneError, NotFound
from .._files import PART_BYTES, digest_of, part_of, size_of
from .._models import File
from .transport import Transport


class Files:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def upload(self, source: str | Path | BinaryIO, *, filename: str = "") -> File:
        """Bring a file to the portal.

        One that it holds already is not sent again, and a large one goes in parts. `source` is a path or an
        open binary file that can seek.
        """
        if isinstance(source, (str, Path)):
            with Path(source).open("rb") as opened:
                return self._upload(opened, filename or Path(source).name)
        return self._upload(source, filename or Path(str(getattr(source, "name", "rows.jsonl"))).name)

    def _upload(self, opened: BinaryIO, filename: str) -> File:
        sha256 = _http.call(digest_of, opened)
        with contextlib.suppress(BadRequest):
            for held in self.list(sha256=sha256, limit=1):
                return held
        if size_of(opened) > PART_BYTES:
            with contextlib.suppress(NotFound):  # a portal that takes files whole only
                return self._upload_in_parts(opened, filename)
        opened.seek(0)
        answer = self._transport.json(
            "POST", "files/", files={"file": (filename, opened)}, key=_http.new_key()
        )
        return File.parse(answer)

    def _upload_in_parts(self, opened: BinaryIO, filename: str) -> File:
        described = {
            "filename": filename,
            "bytes": size_of(opened),
            "purpose": "fine-tune",
            "mime_type": "application/jsonl",
        }
        upload = self._transport.json("POST", "/v1/uploads", json=described, key=_http.new_key())
        address, parts = f"/v1/uploads/{upload['id']}", []
        for start in range(0, size_of(opened), PART_BYTES):
            part = _http.call(part_of, opened, start)
            files = {"data": (filename, io.BytesIO(part))}
            made = self._transport.json("POST", f"{address}/parts", files=files, key=_http.new_key())
            parts.append(made["id"])
        done = self._transport.json(
            "POST", f"{address}/complete", json={"part_ids": parts}, harmless=True
        )
        return self.get(done["file"]["id"])

    def list(self, **filters: Any) -> Iterator[File]:
        """Your files and your teams', newest first."""
        for row in self._transport.pages("files/", filters):
            yield File.parse(row)

    def get(self, identity: str) -> File:
        return File.parse(self._transport.json("GET", f"files/{identity}/"))

    def find(self, name: str) -> File:
        """The one with this id or, if only one has it, this name.

        Raises NotFound and ForetuneError.
        """
        if name.startswith("file-"):
            return self.get(name)
        named = [file for file in self.list(name=name)]
        if len(named) > 1:
            raise ForetuneError(
                f"{len(named)} files are called {name}: {', '.join(one.id for one in named)}."
            )
        if not named:
            raise NotFound(f"There is no file {name} that you see.", code="not_found", status=404)
        return named[0]

    def content(self, file: File | str) -> bytes:
        response = self._transport.request("GET", f"files/{id_of(file)}/content/")
        return bytes(response.content)

    def delete(self, file: File | str) -> None:
        self._transport.request("DELETE", f"files/{id_of(file)}/")


def id_of(given: object) -> str:
    """The id of an object, or the id itself."""
    if isinstance(given, str):
        return given
    identity = given.get("id") if isinstance(given, Mapping) else getattr(given, "id", None)
    if not isinstance(identity, str):
        raise TypeError(f"an object of this client or its id is needed, not {given!r}")
    return identity
