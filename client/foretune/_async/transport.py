"""Requests to a portal, tried again where that does no harm."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2

from .. import _http
from .._errors import Unreachable


class AsyncTransport:
    """One person's connection to a portal."""

    def __init__(
        self, url: str, token: str, *, tries: int, transport: httpx2.AsyncBaseTransport | None
    ) -> None:
        options = _http.options_of_connection(url, token)
        self.url, self.tries = str(options["base_url"]).rstrip("/"), tries
        self.http = httpx2.AsyncClient(transport=transport, **options)

    async def aclose(self) -> None:
        await self.http.aclose()

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        json: object = None,
        files: Mapping[str, Any] | None = None,
        data: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        key: str = "",
        harmless: bool = False,
        tries: int = 0,
    ) -> httpx2.Response:
        """The answer, a success or 304.

        key: an Idempotency-Key; a POST without one is tried once, unless it is `harmless` twice.
        Raises ApiError and Unreachable.
        """
        sent = {**(headers or {}), **({"Idempotency-Key": key} if key else {})}
        request = {"headers": sent, "json": json, "files": files, "data": data}
        given: dict[str, Any] = {name: value for name, value in request.items() if value is not None}
        address, parameters = _http.address(path), _http.query_of(query or {})
        tries = (tries or self.tries) if _http.may_repeat(method, key=key, harmless=harmless) else 1
        tried = 0
        while True:
            tried += 1
            response: httpx2.Response | None = None
            try:
                response = await self.http.request(method, address, params=parameters or None, **given)
            except httpx2.TransportError as away:
                if tried >= tries:
                    raise Unreachable(f"The portal {self.url} is out of reach: {away}") from away
            if response is not None:
                if response.is_success or response.status_code == httpx2.codes.NOT_MODIFIED:
                    return response
                if method == "DELETE" and tried > 1 and response.status_code == httpx2.codes.NOT_FOUND:
                    return response  # the answer to the first try was lost
                refused = _http.refused(response)
                if tried >= tries or not _http.passes(refused):
                    raise refused
            wait_s = _http.delay_s(tried, response)
            _http.log.info("%s %s is tried again in %.1f s", method, address, wait_s)
            await anyio.sleep(wait_s)

    async def json(self, method: str, path: str, **options: Any) -> Any:
        """The JSON of the answer, or None where it has no body."""
        return _http.content_of(await self.request(method, path, **options))

    @asynccontextmanager
    async def stream(self, path: str, headers: Mapping[str, str]) -> AsyncIterator[httpx2.Response]:
        """An answer whose body is read piece by piece, once.

        Raises ApiError and httpx2.TransportError.
        """
        async with self.http.stream("GET", _http.address(path), headers=dict(headers)) as response:
            if not response.is_success:
                await response.aread()
                raise _http.refused(response)
            yield response

    async def pages(self, path: str, query: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """The rows of a list, page by page as they are needed."""
        after: Any = query.get("after")
        while True:
            page = await self.json("GET", path, query={**query, "after": after})
            for row in page["data"]:
                yield row
            after = page.get("next")
            if not page.get("has_more") or after is None:
                return
