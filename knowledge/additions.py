"""Models and GPUs beyond the shipped catalogue: added by an administrator, or read from a local folder."""

from __future__ import annotations

import time
from dataclasses import asdict
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import httpx
from django.db import DatabaseError

from knowledge.core import catalog, columns
from knowledge.models import CatalogEntry

FRESH_S = 5.0  # entries are read again after this, so that other processes see new ones
LARGEST_CONFIG = 1_000_000  # bytes of a config.json
HUB_TIMEOUT_S = 10.0


class CannotAdd(ValueError):
    """The entry was not added; the message says why and what to do."""


def find_model(name: str) -> catalog.Model | None:
    """An added model, or the one in a folder of this machine; None if there is neither."""
    facts = _entries(CatalogEntry.Kind.MODEL, _now()).get(name)
    if facts is not None:
        return catalog.Model(**facts)
    path = Path(name)
    return _local(path, name) if path.is_absolute() else None


def find_gpu(name: str) -> catalog.Gpu | None:
    """An added GPU, or None."""
    facts = _entries(CatalogEntry.Kind.GPU, _now()).get(name)
    return None if facts is None else catalog.Gpu(**facts)


def add_model(*, text: str, name: str, now: datetime) -> catalog.Model:
    """Add a model from the text of its config.json, or replace an added one. Raises CannotAdd."""
    try:
        model = catalog.model_from_config(text, name)
    except catalog.UnknownModel as missing:
        raise CannotAdd(f"{name}: the config.json lacks a size that the forecast needs") from missing
    _store(CatalogEntry.Kind.MODEL, name, asdict(model), now)
    return model


def add_gpu(
    *, name: str, memory_gib: float, tflops: float, bandwidth_gb_s: float, link: str, now: datetime
) -> catalog.Gpu:
    """Add a GPU from its short form, or replace an added one. Dense bf16 TFLOP/s. Raises CannotAdd."""
    if min(memory_gib, tflops, bandwidth_gb_s) <= 0:
        raise CannotAdd("memory, peak and bandwidth must be above 0")
    if link not in columns.LINK_BYTES_S:
        raise CannotAdd(f"the link {link!r} is unknown; use one of {', '.join(columns.LINK_BYTES_S)}")
    peak = tflops * 1e12
    gpu = catalog.Gpu(
        gpu_model=name,
        memory_bytes=memory_gib * catalog.GIB,
        bf16_flops=peak,
        fp16_flops=peak,
        fp32_flops=peak / 2,  # tf32 units run at about half of the bf16 rate
        bandwidth_bytes_s=bandwidth_gb_s * 1e9,
        link=link,
        link_bytes_s=columns.LINK_BYTES_S[link],
    )
    _store(CatalogEntry.Kind.GPU, name, asdict(gpu), now)
    return gpu


def config_text(place: str, hub: str) -> str:
    """The config.json of a file, a folder, or a model id on the hub at `hub`. Raises CannotAdd."""
    path = Path(place)
    path = path / "config.json" if path.is_dir() else path
    if path.is_file():
        return _read(path)
    address = f"{hub.rstrip('/')}/{place}/resolve/main/config.json"
    try:
        answer = httpx.get(address, timeout=HUB_TIMEOUT_S, follow_redirects=True)
        answer.raise_for_status()
    except (httpx.HTTPError, httpx.InvalidURL) as wrong:
        raise CannotAdd(
            f"{place} is neither a file or folder here nor readable at {address} ({wrong});"
            " without internet, copy its config.json here and give that path"
        ) from wrong
    return answer.text


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > LARGEST_CONFIG:
            raise CannotAdd(f"{path} is larger than a config.json can be")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as wrong:
        raise CannotAdd(f"{path} cannot be read: {wrong}") from wrong


def _local(path: Path, name: str) -> catalog.Model | None:
    try:
        return catalog.model_from_config(_read(path / "config.json"), name)
    except (CannotAdd, catalog.UnknownModel):
        return None


def _store(kind: str, name: str, facts: dict[str, Any], now: datetime) -> None:
    CatalogEntry.objects.update_or_create(
        kind=kind, name=name, defaults={"facts": facts}, create_defaults={"facts": facts, "created_at": now}
    )
    _entries.cache_clear()


def _now() -> int:
    return int(time.monotonic() / FRESH_S)


@lru_cache(maxsize=2)
def _entries(kind: str, _when: int) -> dict[str, dict[str, Any]]:
    """Added facts by name; none where the table cannot be read, as before the first migration."""
    try:
        return dict(CatalogEntry.objects.filter(kind=kind).values_list("name", "facts"))
    except (DatabaseError, RuntimeError):
        return {}
