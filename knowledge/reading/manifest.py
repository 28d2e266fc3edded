"""From an archive, a folder or a file to the texts that may be read.

Nothing is unpacked to disk.
"""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

MOST_FILES = 2_000
MOST_ENTRIES = 10_000  # an archive's list itself is looked at no further
MOST_BYTES = 20 * 2**20
LARGEST_FILE = 200_000
LARGEST_NOTEBOOK = 2_000_000  # what its cells printed is dropped as it is read
ARCHIVES = (".zip", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz", ".7z", ".rar")
LEFT_OUT = re.compile(
    r"(?i)(^|/)(\.env(\..*)?|\.git|\.ssh|\.aws|\.netrc|\.venv|node_modules|__pycache__|id_[a-z0-9]+"
    r"|[^/]*credentials?[^/]*|[^/]*\.(pem|key|p12|pfx|kdbx))(/|$)"
)
SECRETS = re.compile(
    r"hf_[A-Za-z0-9]{20,}|sk-[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|AKIA[0-9A-Z]{16}"
    r"|xox[abprs]-[A-Za-z0-9-]{10,}|AIza[0-9A-Za-z_-]{30,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{5,}"
    r"|(?i:(?<=key=)|(?<=token=)|(?<=password=)|(?<=secret=)|(?<=key=[\"'])|(?<=token=[\"'])|(?<=password=[\"'])"
    r"|(?<=secret=[\"']))[A-Za-z0-9/+_-]{16,}"
)
SIGNS = ("hf_", "sk-", "gh", "AKIA", "xox", "AIza", "eyJ", "=")  # without any of these there is no secret
BLANK = "(secret left out)"


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


def from_folder(folder: Path) -> ScriptManifest:
    """The texts of a folder; links are not followed. Raises UnreadableUpload."""

    def members() -> Iterator[tuple[str, int, bytes | None]]:
        for path in sorted(folder.rglob("*")):
            if path.is_symlink() or not path.is_file():
                continue
            size = path.stat().st_size
            yield (
                path.relative_to(folder).as_posix(),
                size,
                path.read_bytes() if size <= LARGEST_NOTEBOOK else None,
            )

    return _gathered(members())


def from_upload(name: str, content: bytes) -> ScriptManifest:
    """The texts of an archive, or the one file itself. Raises UnreadableUpload."""
    lower = name.lower()
    if lower.endswith((".7z", ".rar")):
        raise UnreadableUpload("This kind of archive cannot be read; send a zip or tar.gz.")
    try:
        if zipfile.is_zipfile(io.BytesIO(content)):
            return _gathered(_zipped(content))
        if lower.endswith(ARCHIVES):
            return _gathered(_tarred(content))
    except (
        zipfile.BadZipFile,
        tarfile.TarError,
        EOFError,
        OSError,
        RuntimeError,
        NotImplementedError,
    ) as error:
        raise UnreadableUpload(
            "The archive cannot be read: it is damaged or of another kind; send a .zip or .tar.gz."
        ) from error
    if len(content) > LARGEST_NOTEBOOK:
        raise UnreadableUpload(f"The file has more than {LARGEST_NOTEBOOK:,} bytes; send the script alone.")
    return _gathered(iter([(PurePosixPath(name).name or "script", len(content), content)]))


def _zipped(content: bytes) -> Iterator[tuple[str, int, bytes | None]]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        if len(members) > MOST_ENTRIES:
            raise UnreadableUpload(
                f"The archive has more than {MOST_ENTRIES:,} entries; send the training's files alone."
            )
        for member in members:
            if member.flag_bits & 1:
                raise UnreadableUpload("The archive is encrypted; send one without a password.")
            link = (member.external_attr >> 16) & 0o170000 == 0o120000
            if member.is_dir() or link:
                continue
            if member.file_size > LARGEST_NOTEBOOK:
                yield member.filename, member.file_size, None
                continue
            with archive.open(member) as file:
                yield member.filename, member.file_size, file.read(LARGEST_NOTEBOOK + 1)


def _tarred(content: bytes) -> Iterator[tuple[str, int, bytes | None]]:
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:*", errors="replace") as archive:
        for at, member in enumerate(archive):
            # A member behind a large one would have to be unpacked as far as there.
            if at > MOST_ENTRIES or member.offset_data + member.size > 10 * MOST_BYTES:
                raise UnreadableUpload("The archive unpacks to too much; send the training's files alone.")
            if not member.isreg():
                continue
            file = archive.extractfile(member) if member.size <= LARGEST_NOTEBOOK else None
            yield member.name, member.size, file.read() if file else None


def _gathered(members: Iterator[tuple[str, int, bytes | None]]) -> ScriptManifest:
    files: dict[str, str] = {}
    left_out: dict[str, str] = {}
    total = 0
    for raw, size, content in members:
        path = _safe(raw)
        if path is None:
            raise UnreadableUpload(f"The archive has an unsafe path: {raw[:80]!r}.")
        reason = _unwanted(path, size, content)
        if reason is None and content is not None:
            text = _text(content)
            if text is None:
                reason = "It is no text."
            else:
                files[path] = SECRETS.sub(BLANK, text) if any(sign in text for sign in SIGNS) else text
                total += len(content)
        if reason and len(left_out) < MOST_FILES:
            left_out[path] = reason
        if len(files) > MOST_FILES or total > MOST_BYTES:
            raise UnreadableUpload(
                f"There are more than {MOST_FILES:,} files or {MOST_BYTES // 2**20} MB of text;"
                " send the training's files alone."
            )
    return ScriptManifest(files, left_out)


def _safe(raw: str) -> str | None:
    path = PurePosixPath(raw.replace("\\", "/"))
    unsafe = path.is_absolute() or ".." in path.parts or "\x00" in raw or re.match(r"^[A-Za-z]:", raw)
    return None if unsafe else path.as_posix()


def _unwanted(path: str, size: int, content: bytes | None) -> str | None:
    if LEFT_OUT.search(path):
        return "It may hold secrets, or is none of the training's own files."
    if path.lower().endswith(ARCHIVES):
        return "It is an archive inside the archive."
    limit = LARGEST_NOTEBOOK if path.endswith(".ipynb") else LARGEST_FILE
    return "It is too large." if content is None or size > limit or len(content) > limit else None


def _text(content: bytes) -> str | None:
    for codec in ("utf-8-sig", "utf-16") if content[:2] in (b"\xff\xfe", b"\xfe\xff") else ("utf-8-sig",):
        try:
            text = content.decode(codec)
        except UnicodeError:
            continue
        return None if "\x00" in text else text
    return None
