"""A TCP proxy for each node that cuts, delays, throttles, loses and repeats.

It loses answers and repeats requests. It takes the place of a network that can be disturbed,
which would need root (docs/architecture.md, "Reliability").
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Sequence

CHUNK = 1 << 16
KEPT = 20  # requests that may be said again
SYNC = b"POST /agent/v1/sync"


class Proxy:
    """The line of one node.

    Its attributes may be set from any thread; they hold for everything that passes from then on.
    """

    def __init__(self, upstream: int) -> None:
        self.upstream, self.port = upstream, 0
        self.refuses = False  # every connection is reset
        self.holds = False  # nothing passes, and nobody is told; the bytes arrive afterwards
        self.loses_answers = False
        self.delay_s, self.bytes_per_s = 0.0, 0.0
        self.said: deque[bytes] = deque(maxlen=KEPT)
        self._open: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def undisturbed(self) -> None:
        self.refuses = self.holds = self.loses_answers = False
        self.delay_s = self.bytes_per_s = 0.0

    def reset_all(self) -> None:
        for writer in list(self._open):
            writer.transport.abort()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refuses:
            return writer.transport.abort()
        try:
            from_portal, to_portal = await asyncio.open_connection("127.0.0.1", self.upstream)
        except OSError:
            return writer.transport.abort()
        self._open |= {writer, to_portal}
        request = bytearray()
        pumps = [
            asyncio.ensure_future(self._ask(reader, to_portal, request)),
            asyncio.ensure_future(self._answer(from_portal, writer, request)),
        ]
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        for side in (writer, to_portal):
            side.transport.abort()
            self._open.discard(side)
        return None

    async def _ask(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytearray
    ) -> None:
        while data := await reader.read(CHUNK):
            await self._on_the_way(data)
            request += data
            writer.write(data)
            await writer.drain()

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytearray
    ) -> None:
        while data := await reader.read(CHUNK):
            if request.startswith(SYNC):
                self.said.append(bytes(request))
            request.clear()
            if self.loses_answers:
                return
            await self._on_the_way(data)
            writer.write(data)
            await writer.drain()

    async def _on_the_way(self, data: bytes) -> None:
        while self.holds:
            await asyncio.sleep(0.1)
        wait_s = self.delay_s + (len(data) / self.bytes_per_s if self.bytes_per_s else 0.0)
        if wait_s:
            await asyncio.sleep(wait_s)

    async def say_again(self, request: bytes) -> None:
        """Send an old request to the portal; what it answers is nobody's."""
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", self.upstream)
            writer.write(request)
            await asyncio.wait_for(reader.read(CHUNK), timeout=10)
            writer.close()


class Proxies:
    """The proxies of all nodes, on a loop in a thread of their own."""

    def __init__(self, upstream: int, names: Sequence[str]) -> None:
        self._proxies = {name: Proxy(upstream) for name in names}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        for proxy in self._proxies.values():
            asyncio.run_coroutine_threadsafe(self._listen(proxy), self._loop).result()

    @staticmethod
    async def _listen(proxy: Proxy) -> None:
        server = await asyncio.start_server(proxy.handle, "127.0.0.1", 0)
        proxy.port = server.sockets[0].getsockname()[1]

    def __getitem__(self, name: str) -> Proxy:
        return self._proxies[name]

    def cut(self, name: str) -> None:
        """Reset all connections of this node, and every new one."""
        self[name].refuses = True
        self._loop.call_soon_threadsafe(self[name].reset_all)

    def say_again(self, name: str) -> None:
        """Send the node's latest requests once more, in their order."""
        for request in list(self[name].said):
            asyncio.run_coroutine_threadsafe(self[name].say_again(request), self._loop)

    def stop(self) -> None:
        async def end() -> None:
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
            await asyncio.sleep(0)

        asyncio.run_coroutine_threadsafe(end(), self._loop).result(timeout=10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
