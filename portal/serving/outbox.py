"""Answers that clients have not taken yet. No thread waits for a client to read."""

from __future__ import annotations

import os
import socket
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

MEMORY_BYTES = 1_000_000  # of an answer made piece by piece; the rest waits on disk
FLUSH_BYTES = 64_000
AT_ONCE_BYTES = 256_000  # handed to the kernel before other connections have their turn


@dataclass(slots=True)
class FilePart:
    """Bytes of an open file that are still to be sent.

    ours: a temporary file that may grow.
    """

    descriptor: int
    offset: int
    left: int
    ours: bool = False

    def append(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:  # a disk that is about full takes a part, and says so at the next
            written = os.pwrite(self.descriptor, rest, self.offset + self.left)
            self.left += written
            rest = rest[written:]


class Outbox:
    """A stand-in for the socket wherever gunicorn writes an answer.

    One thread at a time uses it.
    """

    def __init__(self, sock: socket.socket, moved: Callable[[int], None]) -> None:
        """moved: told how many bytes the kernel took."""
        self._sock, self._moved = sock, moved
        self._parts: deque[bytearray | FilePart | Iterator[bytes | Path]] = deque()

    def __bool__(self) -> bool:
        """Is anything left to send?"""
        return bool(self._parts)

    def sendall(self, data: bytes) -> None:
        last = self._parts[-1] if self._parts else None
        if isinstance(last, FilePart) and last.ours:
            last.append(data)
        elif isinstance(last, bytearray):
            last += data
        else:
            last = bytearray(data)
            self._parts.append(last)
        if isinstance(last, bytearray) and len(last) >= FLUSH_BYTES:
            self.flush()
            if len(last) > MEMORY_BYTES:
                self._parts[-1] = spilled(last)

    def sendfile(self, file: BinaryIO, offset: int, count: int) -> None:
        """The caller may close its file.

        One of several `parts` is opened part by part, each at its turn.
        """
        if parts := getattr(file, "parts", None):
            self._parts.append(parts())
            return
        self._parts.append(FilePart(os.dup(file.fileno()), offset, count))

    def setblocking(self, _: bool) -> None:
        """The socket never blocks."""

    def gettimeout(self) -> float:
        return 0.0

    def send(self, data: bytes) -> int:
        self.sendall(data)
        return len(data)

    def shutdown(self, _: int) -> None:
        """gunicorn gives up in the middle of an answer; it closes the outbox next."""

    def recv(self, _: int) -> bytes:
        return b""

    def settimeout(self, _: float) -> None:
        """The socket never blocks."""

    def flush(self) -> bool:
        """Send as much as the kernel takes now; return True once nothing is left.

        Raises OSError if the client is gone.
        """
        budget = AT_ONCE_BYTES
        while self._parts and budget > 0:
            try:
                sent = self._send(self._first(), budget)
            except BlockingIOError:
                return False
            self._moved(sent)
            budget -= sent
        return not self._parts

    def close(self) -> None:
        for part in self._parts:
            if isinstance(part, FilePart):
                os.close(part.descriptor)
        self._parts.clear()

    def _first(self) -> bytearray | FilePart:
        """What is sent next; of several parts the first is taken out."""
        first = self._parts[0]
        if isinstance(first, bytearray | FilePart):
            return first
        part = next(first, None)
        if part is None:
            self._parts.popleft()
        opened = opened_part(part or b"")
        self._parts.appendleft(opened)
        return opened

    def _send(self, part: bytearray | FilePart, most: int) -> int:
        if isinstance(part, bytearray):
            sent = self._sock.send(memoryview(part)[:most])
            del part[:sent]
            left = len(part)
        else:
            count = min(part.left, most)
            sent = os.sendfile(self._sock.fileno(), part.descriptor, part.offset, count) if count else 0
            if sent == 0 and count:
                raise OSError("the file became shorter while it was sent")
            part.offset += sent
            part.left -= sent
            left = part.left
        if not left:
            self._parts.popleft()
            if isinstance(part, FilePart):
                os.close(part.descriptor)
        return sent


def opened_part(part: bytes | Path) -> bytearray | FilePart:
    """Raises OSError if the file is gone."""
    if isinstance(part, bytes):
        return bytearray(part)
    descriptor = os.open(part, os.O_RDONLY)
    return FilePart(descriptor, 0, os.fstat(descriptor).st_size)


def spilled(waiting: bytearray) -> FilePart:
    with tempfile.TemporaryFile() as file:
        spool = FilePart(os.dup(file.fileno()), 0, 0, ours=True)
    spool.append(bytes(waiting))
    return spool
