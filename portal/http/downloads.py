"""Downloads, as a whole or from where an earlier one broke (RFC 9110, 13 and 14)."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, cast

from django.http import FileResponse, HttpRequest, HttpResponse, HttpResponseBase
from django.utils.http import parse_etags
from whitenoise.responders import SlicedFile

from portal.http.archives import Archive, ArchiveResponse, Member
from portal.http.error_pages import answer

# One range alone: for several, and for what is none, the whole file is a right answer.
_RANGE = re.compile(r"bytes\s*=\s*(?:([0-9]{1,19})\s*-\s*([0-9]{1,19})?|-\s*([0-9]{1,19}))\s*", re.IGNORECASE)
OCTETS = "application/octet-stream"


class Piece(SlicedFile):  # type: ignore[misc]  # it has no types
    """A part of an open file.

    Its descriptor stands at the beginning of the part, for servers that send from there.
    """

    def fileno(self) -> int:
        return int(self.fileobj.fileno())


def download(request: HttpRequest, file: Path, *, sha256: str, attached_as: str = "") -> HttpResponseBase:
    """Answer with a file whose digest is known, or with a piece of it.

    attached_as: the name under which a browser stores it; empty: none is told.
    Raises OSError if there is no such file.
    """
    etag = f'"{sha256}"'
    response: HttpResponseBase | None = _unwanted(request, etag)
    if response is None:
        whole = FileResponse(
            file.open("rb", buffering=0),
            as_attachment=bool(attached_as),
            filename=attached_as,
            content_type=OCTETS,
        )
        whole["Repr-Digest"] = f"sha-256=:{base64.b64encode(bytes.fromhex(sha256)).decode()}:"
        response = _piece_of(request, whole, etag)
    response["ETag"] = etag
    response["Accept-Ranges"] = "bytes"
    return response


def download_archive(request: HttpRequest, members: Sequence[Member], *, name: str) -> HttpResponseBase:
    """Answer with an archive of files; name: under which a browser stores it.

    Raises OSError if there is no such file.
    """
    archive = Archive(members)
    etag = f'"{archive.digest}"'
    response: HttpResponseBase | None = _unwanted(request, etag)
    if response is None:
        response = ArchiveResponse(archive, OCTETS)
        response["Content-Disposition"] = f'attachment; filename="{name}"'
    else:
        archive.close()
    response["ETag"] = etag
    return response


def _unwanted(request: HttpRequest, etag: str) -> HttpResponse | None:
    """The answer to who has the file already, or wants another one."""
    match, none_match = (parse_etags(request.headers.get(name, "")) for name in ("If-Match", "If-None-Match"))
    if match and "*" not in match and etag not in match:
        return answer(request, 412, ("changed_meanwhile", "This is another file by now", "Get it anew."))
    if "*" in none_match or etag in [one.removeprefix("W/") for one in none_match]:
        return HttpResponse(status=304)
    return None


def _piece_of(request: HttpRequest, whole: FileResponse, etag: str) -> HttpResponseBase:
    """The answer with the range alone that the request asks for, if it is understood."""
    size = int(whole["Content-Length"])
    found = _RANGE.fullmatch(request.headers.get("Range", "")) if request.method == "GET" else None
    if not found or request.headers.get("If-Range", etag) != etag:
        return whole
    first, last, suffix = (None if digits is None else int(digits) for digits in found.groups())
    begin = max(0, size - suffix) if suffix is not None else first or 0
    end = size - 1 if last is None else min(last, size - 1)
    if last is not None and last < begin:
        return whole
    if begin > end:
        cast(BinaryIO, whole.file_to_stream).close()  # closing the answer would end the request
        text = ("range_not_satisfiable", f"The file has {size} bytes", "Ask for a range within it.")
        refused = answer(request, 416, text)
        refused["Content-Range"] = f"bytes */{size}"
        return refused
    piece = FileResponse(Piece(whole.file_to_stream, begin, end), status=206, headers=whole.headers)
    piece["Content-Length"] = str(end - begin + 1)
    piece["Content-Range"] = f"bytes {begin}-{end}/{size}"
    return piece
