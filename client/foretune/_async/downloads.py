"""One file of the portal, brought piece by piece and kept only if it is whole."""

from __future__ import annotations

from pathlib import Path

import anyio
import httpx2

from .. import _http
from .._errors import BrokenDownload, Unavailable, Unreachable
from .._files import holds
from .transport import AsyncTransport


async def bring(transport: AsyncTransport, address: str, path: Path, *, sha256: str, size: int) -> None:
    """Bring what is at an address into a file, unless that holds it already.

    What broke off goes on where it did. size: in bytes. Raises BrokenDownload, Unreachable.
    """
    if await _http.async_call(holds, path, sha256):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{sha256[:12]}.part")
    broke, wrong = 0, 0
    while True:
        have = _size(partial)
        try:
            if not have or have < size:
                await _bring_rest(transport, address, partial, sha256=sha256, have=have)
        except (httpx2.TransportError, Unavailable) as broken:
            broke = 1 if _size(partial) > have else broke + 1  # in a row, without a byte more
            if broke >= transport.tries:
                raise Unreachable(f"{path.name} broke off, and so did all tries: {broken}") from broken
            await anyio.sleep(_http.delay_s(broke, None))
            continue
        if await _http.async_call(holds, partial, sha256):
            partial.replace(path)
            return
        partial.unlink(missing_ok=True)
        wrong += 1
        if not have or wrong >= transport.tries:  # what an earlier try had left may have been spoiled
            raise BrokenDownload(f"{path.name} is not what its digest says; it was not kept.")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


async def _bring_rest(
    transport: AsyncTransport, address: str, partial: Path, *, sha256: str, have: int
) -> None:
    headers = {"Range": f"bytes={have}-", "If-Range": f'"{sha256}"'} if have else {}
    # Compressed, ranges would be those of other bytes.
    headers["Accept-Encoding"] = "identity"
    async with transport.stream(address, headers) as response:
        goes_on = response.status_code == httpx2.codes.PARTIAL_CONTENT
        with partial.open("ab" if goes_on else "wb") as file:
            async for chunk in response.aiter_bytes():
                file.write(chunk)
