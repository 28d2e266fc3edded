"""Models and GPUs beyond the shipped catalogue: added by an administrator, or read from a local folder."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import asdict
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.db import DatabaseError, transaction

from knowledge.core.analytic import config_table
from knowledge.core.domain import catalogue
from knowledge.core.domain.hf_config import model_from_config
from knowledge.hf_config_reading import CannotAdd, check_sizes, local_config, read
from knowledge.models import CatalogEntry
from portal.accounts.models import User
from portal.accounts.services import audit
from trainer.protocol import RANDOM_MODEL

FRESH_S = 5.0  # entries are read again after this, so that other processes see new ones
LONGEST_GPU, LONGEST_MODEL = 100, 300
LARGEST = {"memory_gib": 10_000, "tflops": 100_000, "bandwidth_gb_s": 1_000_000}
LINKS = tuple(link for link in config_table.LINKS if link != "memory")


def find_model(name: str) -> catalogue.Model | None:
    """An added model, or the one in a folder of this machine below MODEL_ROOTS; None if there is neither."""
    facts = _entries(CatalogEntry.Kind.MODEL, _now()).get(name)
    if facts is not None:
        return catalogue.Model(**facts)
    return _local(name) if name.startswith("/") else None


def find_gpu(name: str) -> catalogue.Gpu | None:
    """An added GPU, or None."""
    facts = _entries(CatalogEntry.Kind.GPU, _now()).get(name)
    return None if facts is None else catalogue.Gpu(**facts)


def models() -> list[catalogue.Model]:
    """All that the portal knows: added ones by name, then the shipped ones."""
    added = _entries(CatalogEntry.Kind.MODEL, _now()).values()
    shipped = [catalogue.model(name) for name in catalogue.model_names()]
    return [*(catalogue.Model(**facts) for facts in added), *shipped]


def gpus() -> list[catalogue.Gpu]:
    """All that the portal knows: added ones by name, then the shipped ones."""
    added = _entries(CatalogEntry.Kind.GPU, _now()).values()
    shipped = [catalogue.gpu(name) for name in catalogue.gpu_names()]
    return [*(catalogue.Gpu(**facts) for facts in added), *shipped]


def version() -> str:
    """Changes when an entry does; empty as long as nothing was added."""
    facts = [_entries(kind, _now()) for kind in CatalogEntry.Kind.values]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:8] if any(facts) else ""


def add_model(*, text: str, name: str, now: datetime, actor: User | None = None) -> CatalogEntry:
    """Add a model from the text of its config.json, or replace an added one. Raises CannotAdd."""
    _check_name(name, LONGEST_MODEL)
    if name.startswith(RANDOM_MODEL):
        raise CannotAdd({"name": f"must not begin with {RANDOM_MODEL}, which asks for random weights"})
    if catalogue.shipped_model(name):
        raise CannotAdd({"name": f"{name} is in the shipped catalogue already; choose another name"})
    check_sizes(text)
    try:
        model = model_from_config(text, name)
    except (catalogue.UnknownModel, TypeError, AttributeError) as wrong:
        raise CannotAdd({"config": "describes no decoder that the forecast understands"}) from wrong
    return _store(CatalogEntry.Kind.MODEL, name, asdict(model), now, actor)


def add_gpu(
    *,
    name: str,
    memory_gib: float,
    tflops: float,
    bandwidth_gb_s: float,
    link: str,
    now: datetime,
    actor: User | None = None,
) -> CatalogEntry:
    """Add a GPU from its short form, or replace an added one. Dense bf16 TFLOP/s. Raises CannotAdd."""
    _check_name(name, LONGEST_GPU)
    figures = {"memory_gib": memory_gib, "tflops": tflops, "bandwidth_gb_s": bandwidth_gb_s}
    _check_short_form(name, figures, link)
    peak = tflops * 1e12
    gpu = catalogue.Gpu(
        gpu_model=name,
        memory_bytes=memory_gib * catalogue.GIB,
        bf16_flops=peak,
        fp16_flops=peak,
        fp32_flops=peak / 2,  # tf32 units run at about half of the bf16 rate
        bandwidth_bytes_s=bandwidth_gb_s * 1e9,
        link=link,
        link_bytes_s=config_table.LINKS[link].bytes_s,
    )
    return _store(CatalogEntry.Kind.GPU, name, asdict(gpu), now, actor)


def _check_name(name: str, longest: int) -> None:
    if not 0 < len(name) <= longest or not name.isprintable() or name != name.strip():
        raise CannotAdd({"name": f"must have 1 to {longest} printable characters, no blanks at its ends"})


def _check_short_form(name: str, figures: dict[str, float], link: str) -> None:
    wrong = {
        field: f"must be above 0 and at most {LARGEST[field]:,}"
        for field, value in figures.items()
        if not 0 < value <= LARGEST[field]
    }
    known = catalogue.known_gpu(name)
    if known and known.gpu_model in catalogue.gpu_names():
        wrong["name"] = f"{name} is in the shipped catalogue already, as {known.gpu_model}"
    if link not in LINKS:
        wrong["link"] = f"the link {link!r} is unknown; use one of {', '.join(LINKS)}"
    if wrong:
        raise CannotAdd(wrong)


def _local(name: str) -> catalogue.Model | None:
    path = local_config(name)
    if path is None:
        return None
    try:
        text = read(path)
        check_sizes(text)
        return model_from_config(text, name)
    except (CannotAdd, catalogue.UnknownModel):
        return None


@transaction.atomic
def _store(
    kind: CatalogEntry.Kind, name: str, facts: dict[str, Any], now: datetime, actor: User | None
) -> CatalogEntry:
    entry, made = CatalogEntry.objects.update_or_create(
        kind=kind, name=name, defaults={"facts": facts}, create_defaults={"facts": facts, "created_at": now}
    )
    done = "added" if made else "changed"
    audit(action=f"catalogue entry {done}", actor=actor, target=f"{kind} {name}"[:200], data=facts, now=now)
    _entries.cache_clear()
    return entry


@transaction.atomic
def delete(*, entry: CatalogEntry, now: datetime, actor: User | None = None) -> None:
    """Take an entry out again; the audit record keeps its figures. Who calls knows that nothing needs it."""
    target = f"{entry.kind} {entry.name}"[:200]
    audit(action="catalogue entry deleted", actor=actor, target=target, data=entry.facts, now=now)
    entry.delete()
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
