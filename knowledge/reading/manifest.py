"""From an archive, a folder or a file to the texts that may be read.

Nothing is unpacked to disk.
"""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import NamedTuple

MOST_FILES = 2_000
MOST_ENTRIES = 10_000  # an archive's list itself is looked at no further
MOST_BYTES = 20 * 2**20  # of an upload, and of the files in it that are read
MOST_LISTED = 10 * MOST_BYTES  # that a zip may say it unpacks to: what is not read costs nothing
MOST_INFLATED = 5 * MOST_BYTES  # of a tar.gz: a member behind a large one costs its unpacking
LARGEST_FILE = 200_000
LARGEST_NOTEBOOK = 2_000_000  # what its cells printed is dropped as it is read
LARGEST_PIECE = LARGEST_NOTEBOOK + 1  # read at once from an archive: a list of members, or one of them
LONGEST_NAME = 4_096
ARCHIVES = (".zip", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".7z", ".rar")
OTHER_ARCHIVES = (".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".7z", ".rar")  # slow to unpack, or unknown here
LEFT_OUT = re.compile(
    r"(?i)(^|/)(\.env(\..*)?|\.git|\.ssh|\.aws|\.netrc|\.venv|node_modules|__pycache__|id_[a-z0-9]+"
    r"|[^/]*credentials?[^/]*|[^/]*\.(pem|key|p12|pfx|kdbx))(/|$)"
)
# Each alternative begins with a letter of its own, so that a text is searched at the pace of its letters.
_TOKENS = re.compile(
    r"hf_[A-Za-z0-9]{20,}|sk-[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|AKIA[0-9A-Z]{16}"
    r"|xox[abprs]-[A-Za-z0-9-]{10,}|AIza[0-9A-Za-z_-]{30,}"
    r"|eyJ(?<![\w-]eyJ)[\w-]{10,}\.[\w-]{10,}\.[\w-]{5,}"  # from its beginning alone, else quadratic
)
_NAMED_SECRETS = re.compile(
    r"(=(?i:(?<=key=)|(?<=token=)|(?<=password=)|(?<=secret=))[\"']?)[A-Za-z0-9/+_-]{16,}"
)
BLANK = "(secret left out)"
_LOCAL_HEADER = 30  # bytes before a zip's member, at least
_TOO_MUCH = "The archive unpacks to too much; send the training's files alone."
# Headers of a tar that state more of the member behind them, and those of files with holes.
_EXTENDED = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.XGLTYPE)
_SPARSE = "The archive has files with holes; pack it without --sparse."
_STATES_MORE = b"\xff"  # a type that `tarfile` does not know, so that it does not read such headers itself
_PATH_RECORD = re.compile(rb"(?:^|\n)\d{1,5} path=([^\n]*)\n")


class UnreadableUpload(ValueError):
    """The upload cannot be read; the message says why and what would help."""


@dataclass(frozen=True, slots=True)
class ScriptManifest:
    """Texts by path, and what was left out with the reason."""

    files: dict[str, str]
    left_out: dict[str, str]

    @property
    def digest(self) -> str:
        """Changes when a file does."""
        parts = sorted((path, hashlib.sha256(text.encode()).hexdigest()) for path, text in self.files.items())
        return hashlib.sha256("\n".join(f"{path}\0{digest}" for path, digest in parts).encode()).hexdigest()


class _Packed(NamedTuple):
    """A file of an upload before it is read, with the bytes that it is said to have."""

    name: str
    size: int
    read: Callable[[], bytes]


def blanked(text: str) -> str:
    """The text without what looks like a token or a key."""
    return _NAMED_SECRETS.sub(rf"\1{BLANK}", _TOKENS.sub(BLANK, text))


def from_folder(folder: Path) -> ScriptManifest:
    """The texts of a folder; links are not followed. Raises UnreadableUpload."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink())
    return _gathered(
        _Packed(path.relative_to(folder).as_posix(), path.stat().st_size, path.read_bytes) for path in paths
    )


def from_upload(name: str, content: bytes) -> ScriptManifest:
    """The texts of an archive, or the one file itself. Raises UnreadableUpload."""
    lower = name.lower()
    if lower.endswith(OTHER_ARCHIVES):
        raise UnreadableUpload("This kind of archive cannot be read; send a zip or tar.gz.")
    try:
        if zipfile.is_zipfile(io.BytesIO(content)):
            return _gathered(_zipped(content))
        if lower.endswith(ARCHIVES):
            return _gathered(_tarred(content))
    except UnreadableUpload:
        raise
    except (
        zipfile.BadZipFile,
        tarfile.TarError,
        zlib.error,
        EOFError,
        OSError,
        RuntimeError,
        ValueError,
        LookupError,  # of an empty name, for one
    ) as error:
        raise UnreadableUpload(
            "The archive cannot be read: it is damaged or of another kind; send a .zip or .tar.gz."
        ) from error
    if len(content) > LARGEST_NOTEBOOK:
        raise UnreadableUpload(f"The file has more than {LARGEST_NOTEBOOK:,} bytes; send the script alone.")
    name = PurePosixPath(name).name or "script"
    return _gathered(iter([_Packed(name, len(content), lambda: content)]))


class _InPieces(io.BytesIO):
    """An archive of which no piece of any length is read at once.

    A zip's list of members is one piece; decoding it costs time that grows with its square.
    """

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > LARGEST_PIECE:
            raise UnreadableUpload(_TOO_MUCH)
        return super().read(size)


def _zipped(content: bytes) -> Iterator[_Packed]:
    with zipfile.ZipFile(_InPieces(content)) as archive:
        members = archive.infolist()
        if len(members) > MOST_ENTRIES:
            raise UnreadableUpload(
                f"The archive has more than {MOST_ENTRIES:,} entries; send the training's files alone."
            )
        if sum(member.file_size for member in members) > MOST_LISTED:
            raise UnreadableUpload(_TOO_MUCH)
        _check_apart(members, archive.start_dir)
        for member in members:
            _check_packing(member)
            is_link = (member.external_attr >> 16) & 0o170000 == 0o120000
            if not member.is_dir() and not is_link:
                yield _Packed(member.filename, member.file_size, partial(archive.read, member))


def _check_apart(members: list[zipfile.ZipInfo], end: int) -> None:
    """Check that no two members share bytes, which would be unpacked for each."""
    begins = sorted((member.header_offset, member.compress_size) for member in members)
    apart = pairwise([*begins, (end, 0)])
    if any(begin < 0 or begin + _LOCAL_HEADER + size > after for (begin, size), (after, _) in apart):
        raise UnreadableUpload("Members of the archive overlap, so that it is damaged or made to cost much.")


def _check_packing(member: zipfile.ZipInfo) -> None:
    if member.flag_bits & 1:
        raise UnreadableUpload("The archive is encrypted; send one without a password.")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        # `zipfile` unpacks others without a limit, however little is asked for.
        raise UnreadableUpload("The archive is compressed in an unusual way; send a zip with deflate.")


class _Inflated(io.BufferedIOBase):
    """What a gzip holds, from its beginning to its end; only its first member is read."""

    def __init__(self, content: bytes) -> None:
        self._packed, self._inflater, self._size = io.BytesIO(content), zlib.decompressobj(31), 0

    def read(self, size: int | None = -1, /) -> bytes:
        pieces: list[bytes] = []
        size = MOST_INFLATED + 1 if size is None or size < 0 else size
        while size > 0 and not self._inflater.eof:
            packed = self._inflater.unconsumed_tail or self._packed.read(2**16)
            if not packed:
                raise EOFError("The gzip ends too early.")
            pieces.append(self._inflater.decompress(packed, size))
            size -= len(pieces[-1])
        self._size += sum(map(len, pieces))
        if self._size > MOST_INFLATED:
            raise UnreadableUpload(_TOO_MUCH)
        return b"".join(pieces)


class _Member(tarfile.TarInfo):
    """A member of a strange tar.

    `tarfile` reads extended headers of any length, in time that grows with their square in some versions, and
    goes back over the same bytes where a size is below zero.
    """

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Member:
        member = super().frombuf(buf, encoding, errors)
        is_named_behind = member.type in (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
        if member.size < 0 or (is_named_behind and member.size > LONGEST_NAME):
            raise UnreadableUpload("The archive is damaged; pack the training's files anew.")
        if member.type == tarfile.GNUTYPE_SPARSE:
            raise UnreadableUpload(_SPARSE)
        if member.type in _EXTENDED:
            member.type = _STATES_MORE
        return member


def _tarred(content: bytes) -> Iterator[_Packed]:
    packed: io.BufferedIOBase = _Inflated(content) if content.startswith(b"\x1f\x8b") else io.BytesIO(content)
    with tarfile.open(fileobj=packed, mode="r|", tarinfo=_Member, errors="replace") as archive:
        name = ""
        for at, member in enumerate(archive):
            if at > MOST_ENTRIES:
                raise UnreadableUpload(
                    f"The archive has more than {MOST_ENTRIES:,} entries; send the training's files alone."
                )
            if member.offset_data + member.size > MOST_INFLATED:
                raise UnreadableUpload(_TOO_MUCH)
            if member.type == _STATES_MORE:
                name = _path_in(_content(archive, member)[:LONGEST_NAME])
            elif member.isreg():
                yield _Packed(name or member.name, member.size, partial(_content, archive, member))
                name = ""
            else:
                name = ""


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    """`tarfile` takes what it does not know for a file."""
    file = archive.extractfile(member)
    return file.read(LARGEST_PIECE) if file else b""


def _path_in(records: bytes) -> str:
    """The path that an extended header states for the next member, or empty."""
    if b" GNU.sparse." in records:
        raise UnreadableUpload(_SPARSE)
    found = _PATH_RECORD.search(records)
    return found[1].decode(errors="replace") if found else ""


def _gathered(members: Iterator[_Packed]) -> ScriptManifest:
    """Read what is wanted.

    A file's name and size decide before any of its bytes is unpacked.
    """
    files: dict[str, str] = {}
    left_out: dict[str, str] = {}
    total = 0
    for member in members:
        path = _safe(member.name)
        if path is None:
            raise UnreadableUpload(f"The archive has an unsafe path: {member.name[:80]!r}.")
        reason = _unwanted(path, member.size)
        if reason is None:
            total += member.size
            if len(files) == MOST_FILES or total > MOST_BYTES:
                raise UnreadableUpload(
                    f"There are more than {MOST_FILES:,} files or {MOST_BYTES // 2**20} MB of text;"
                    " send the training's files alone."
                )
            text = _text(member.read())
            if text is None:
                reason = "It is no text."
            else:
                files[path] = blanked(text)
        if reason and len(left_out) < MOST_FILES:
            left_out[path] = reason
    return ScriptManifest(files, left_out)


def _safe(raw: str) -> str | None:
    path = PurePosixPath(raw.replace("\\", "/"))
    unsafe = path.is_absolute() or ".." in path.parts or "\x00" in raw or re.match(r"^[A-Za-z]:", raw)
    return None if unsafe or len(raw) > LONGEST_NAME else path.as_posix()


def _unwanted(path: str, size: int) -> str | None:
    if LEFT_OUT.search(path):
        return "It may hold secrets, or is none of the training's own files."
    if path.lower().endswith(ARCHIVES):
        return "It is an archive inside the archive."
    limit = LARGEST_NOTEBOOK if path.endswith(".ipynb") else LARGEST_FILE
    return "It is too large." if size > limit else None


def _text(content: bytes) -> str | None:
    for codec in ("utf-8-sig", "utf-16") if content[:2] in (b"\xff\xfe", b"\xfe\xff") else ("utf-8-sig",):
        try:
            text = content.decode(codec)
        except UnicodeError:
            continue
        return None if "\x00" in text else text
    return None
