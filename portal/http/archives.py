"""Archives of files, made while they are sent.

Neither memory nor disk holds one: a header is made for each file, which is sent from where it lies.
"""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from django.http import StreamingHttpResponse

CHUNK = 1 << 18
END = bytes(2 * tarfile.BLOCKSIZE)


@dataclass(frozen=True)
class Member:
    """A file of an archive.

    name: within it. file: where its content lies. at: when it was made.
    """

    name: str
    file: Path
    size: int
    sha256: str
    at: datetime

    @property
    def header(self) -> bytes:
        head = tarfile.TarInfo(self.name)
        head.size, head.mtime = self.size, int(self.at.timestamp())
        return head.tobuf(tarfile.PAX_FORMAT)

    @property
    def padding(self) -> bytes:
        return bytes(-self.size % tarfile.BLOCKSIZE)


class Archive:
    """A tar archive as servers send a file: from `parts`, or as bytes."""

    def __init__(self, members: Sequence[Member]) -> None:
        """Raises OSError if the first file is not there."""
        self._members = members
        self._first = members[0].file.open("rb")
        self._chunks = iter(self)

    @property
    def size(self) -> int:
        return sum(len(one.header) + one.size + len(one.padding) for one in self._members) + len(END)

    @property
    def digest(self) -> str:
        """It changes with names and contents."""
        listed = "".join(f"{one.sha256} {one.name}\n" for one in self._members)
        return hashlib.sha256(listed.encode()).hexdigest()

    def parts(self) -> Iterator[bytes | Path]:
        """Bytes, and the files between them.

        Raises OSError where one has another size by now.
        """
        for one in self._members:
            if one.file.stat().st_size != one.size:
                raise OSError(f"{one.file} has changed")
            yield one.header
            yield one.file
            yield one.padding
        yield END

    def __iter__(self) -> Iterator[bytes]:
        for part in self.parts():
            if isinstance(part, bytes):
                yield part
                continue
            with part.open("rb") as file:
                while chunk := file.read(CHUNK):
                    yield chunk

    def read(self, _: int = -1) -> bytes:
        """The next piece, of any size; nothing at the end."""
        return next(self._chunks, b"")

    def fileno(self) -> int:
        """Servers look by it whether they may send from files."""
        return self._first.fileno()

    def close(self) -> None:
        self._first.close()


class ArchiveResponse(StreamingHttpResponse):
    """An answer with an archive.

    file_to_stream: what servers send from, as of Django's FileResponse.
    """

    block_size = CHUNK

    def __init__(self, archive: Archive, content_type: str) -> None:
        super().__init__(archive, content_type=content_type)
        self.file_to_stream = archive
        self["Content-Length"] = str(archive.size)
