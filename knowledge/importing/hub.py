"""Past executions straight from the Hugging Face Hub.

One CSV file of a data set is read, with its digest.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from knowledge.catalogue import remote
from trainer import strict_json

PREFIX = "hub:"
NAME = re.compile(r"[\w.-]+/[\w.-]+")
LARGEST = 200_000_000  # bytes of a history; the largest published one has 17 million
LARGEST_LISTING = 5_000_000
WITHIN_S = 600.0


class HubError(RuntimeError):
    """A data set could not be read; the message says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HubFile:
    """One file of a data set as it was at `revision`, a commit."""

    dataset: str
    path: str
    revision: str
    licence: str
    sha256: str
    text: str

    @property
    def provenance(self) -> dict[str, str]:
        """The origin of the rows, to be kept."""
        names = ("dataset", "path", "revision", "licence", "sha256")
        return {name: getattr(self, name) for name in names}


def fetch(place: str, hub: str) -> HubFile:
    """The file that `OWNER/NAME` or `OWNER/NAME/PATH.csv` means on the hub at `hub`.

    Without a path: the one that the data set's card names, else its largest CSV file. Raises HubError.
    """
    dataset, path = _parts(place)
    info = _info(hub, dataset)
    path = path or _choose(dataset, info)
    revision = str(info.get("sha") or "main")
    content = _get(hub, f"/datasets/{dataset}/resolve/{revision}/{path}", LARGEST)
    return HubFile(
        dataset=dataset,
        path=path,
        revision=revision,
        licence=_licence(info),
        sha256=_checked(content, path, info),
        text=_text(content, path),
    )


def _parts(place: str) -> tuple[str, str]:
    owner, _, rest = place.partition("/")
    name, _, path = rest.partition("/")
    dataset = f"{owner}/{name}"
    if not NAME.fullmatch(dataset) or ".." in path.split("/") or (path and not path.endswith(".csv")):
        raise HubError(f"{place!r} is no data set; write hub:OWNER/NAME or hub:OWNER/NAME/FILE.csv")
    return dataset, path


def _info(hub: str, dataset: str) -> Mapping[str, Any]:
    answer = _get(hub, f"/api/datasets/{dataset}?blobs=true", LARGEST_LISTING)
    try:
        info = strict_json.loads(answer, max_values=LARGEST_LISTING)
        return {**info, "siblings": [entry for entry in info["siblings"] if entry["rfilename"]]}
    except (ValueError, KeyError, TypeError) as wrong:
        raise HubError(f"{hub} does not answer like a hub; check HF_ENDPOINT") from wrong


def _choose(dataset: str, info: Mapping[str, Any]) -> str:
    files = {entry["rfilename"]: entry.get("size") or 0 for entry in info["siblings"]}
    tables = [name for name in files if name.endswith(".csv")]
    named = [name for name in _named_by_card(info) if name in tables]
    if not tables:
        raise HubError(f"{dataset} holds no CSV file; it has {', '.join(sorted(files)[:10]) or 'no files'}")
    return named[0] if named else max(sorted(tables), key=lambda name: files[name])


def _named_by_card(info: Mapping[str, Any]) -> list[str]:
    """Return the files of the card's default configuration.

    They are the ones that `load_dataset` would take.
    """
    card = info.get("cardData")
    configs = card.get("configs") if isinstance(card, dict) else None
    configs = [one for one in configs or [] if isinstance(one, dict)]
    configs.sort(key=lambda one: one.get("default") is not True and one.get("config_name") != "default")
    files = configs[0].get("data_files") if configs else None
    entries = files if isinstance(files, list) else [files]
    paths = [entry.get("path") if isinstance(entry, dict) else entry for entry in entries]
    return [path for path in paths if isinstance(path, str)]


def _licence(info: Mapping[str, Any]) -> str:
    tags = [tag for tag in info.get("tags") or () if isinstance(tag, str)]
    return next((tag.removeprefix("license:") for tag in tags if tag.startswith("license:")), "not stated")


def _get(hub: str, path: str, largest: int) -> bytes:
    """The body of an answer of at most `largest` bytes. Raises HubError."""
    try:
        return remote.get(hub + path, largest=largest, within_s=WITHIN_S)
    except httpx.HTTPStatusError as refused:
        raise HubError(_refusal(refused)) from refused
    except remote.Unbounded as wrong:
        raise HubError(str(wrong)) from wrong
    except (httpx.HTTPError, httpx.InvalidURL) as wrong:
        raise HubError(
            f"The hub at {hub} cannot be reached ({wrong!r}). Without internet, download the"
            " file elsewhere and give its path; HF_ENDPOINT names another hub."
        ) from wrong


def _refusal(refused: httpx.HTTPStatusError) -> str:
    status, url = refused.response.status_code, refused.request.url
    if status in (401, 403, 404):
        return f"{url} answered {status}: it does not exist, or is not public. Check the name."
    return f"{url} answered {status}; try again later."


def _checked(content: bytes, path: str, info: Mapping[str, Any]) -> str:
    """The content's SHA-256, which must be the listed one where the hub lists one."""
    found = hashlib.sha256(content).hexdigest()
    entry: Mapping[str, Any] = next((one for one in info["siblings"] if one["rfilename"] == path), {})
    stated = (entry.get("lfs") or {}).get("sha256")
    if stated and stated != found:
        raise HubError(f"{path} arrived damaged: its SHA-256 is {found} and not {stated}; try again")
    return found


def _text(content: bytes, path: str) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as wrong:
        raise HubError(f"{path} is not UTF-8 text: {wrong}") from wrong
    if text.lstrip()[:100].lower().startswith(("<!doctype", "<html")):
        raise HubError(f"{path} arrived as a web page, not as CSV; a proxy may ask for a sign-in first")
    return text
