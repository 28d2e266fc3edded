"""Models and GPUs that administrators add to the shipped catalogue."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.db import transaction

from knowledge.catalogue.hf_config_reading import CannotAdd, check_sizes
from knowledge.catalogue.portal_catalogue import forget_entries
from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from knowledge.core.analytic import links
from knowledge.core.domain.catalogue import GIB, GpuModel, UnknownModel
from knowledge.core.domain.hf_config import model_from_config
from knowledge.models import CatalogEntry
from portal.accounts.models import User
from portal.accounts.services import audit
from trainer.protocol import RANDOM_MODEL

LONGEST_GPU, LONGEST_MODEL = 100, 300
LARGEST = {"memory_gib": 10_000, "tflops": 100_000, "bandwidth_gb_s": 1_000_000}
EVERY_LINK = tuple(links.LINKS)
LINKS = tuple(link for link in EVERY_LINK if link != "memory")  # between GPUs that are added


def add_model(*, text: str, name: str, now: datetime, actor: User | None = None) -> CatalogEntry:
    """Add a model from the text of its config.json, or replace an added one.

    Raises CannotAdd.
    """
    _check_name(name, LONGEST_MODEL)
    if name.startswith(RANDOM_MODEL):
        raise CannotAdd({"name": f"must not begin with {RANDOM_MODEL}, which asks for random weights"})
    if shipped_catalogue().shipped_model(name):
        raise CannotAdd({"name": f"{name} is in the shipped catalogue already; choose another name"})
    check_sizes(text)
    try:
        model = model_from_config(text, name)
    except (UnknownModel, TypeError, AttributeError) as wrong:
        raise CannotAdd({"config": "describes no decoder that predictions understand"}) from wrong
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
    """Add a GPU from its short form, or replace an added one.

    `tflops` is dense bf16 TFLOP/s. Raises CannotAdd.
    """
    _check_name(name, LONGEST_GPU)
    figures = {"memory_gib": memory_gib, "tflops": tflops, "bandwidth_gb_s": bandwidth_gb_s}
    _check_short_form(name, figures, link)
    peak = tflops * 1e12
    gpu = GpuModel(
        gpu_model=name,
        memory_bytes=memory_gib * GIB,
        bf16_flops=peak,
        fp16_flops=peak,
        fp32_flops=peak / 2,  # tf32 units run at about half of the bf16 rate
        bandwidth_bytes_s=bandwidth_gb_s * 1e9,
        link=link,
        link_bytes_s=links.LINKS[link].bytes_s,
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
    if (known := shipped_catalogue().shipped_gpu(name)) is not None:
        wrong["name"] = f"{name} is in the shipped catalogue already, as {known.gpu_model}"
    if link not in LINKS:
        wrong["link"] = f"the link {link!r} is unknown; use one of {', '.join(LINKS)}"
    if wrong:
        raise CannotAdd(wrong)


@transaction.atomic
def _store(
    kind: CatalogEntry.Kind, name: str, facts: dict[str, Any], now: datetime, actor: User | None
) -> CatalogEntry:
    entry, made = CatalogEntry.objects.update_or_create(
        kind=kind, name=name, defaults={"facts": facts}, create_defaults={"facts": facts, "created_at": now}
    )
    done = "added" if made else "changed"
    audit(action=f"catalogue entry {done}", actor=actor, target=f"{kind} {name}"[:200], data=facts, now=now)
    forget_entries()
    return entry


@transaction.atomic
def delete(*, entry: CatalogEntry, now: datetime, actor: User | None = None) -> None:
    """Delete an added entry; the audit record keeps its figures.

    The caller must make sure that nothing needs the entry.
    """
    target = f"{entry.kind} {entry.name}"[:200]
    audit(action="catalogue entry deleted", actor=actor, target=target, data=entry.facts, now=now)
    entry.delete()
    forget_entries()
