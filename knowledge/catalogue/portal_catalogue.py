"""The portal's catalogue.

It holds the shipped tables, what administrators added, and models in folders that callers name. Rows and
files are read here, before the core is asked; the core is given the value.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from django.db import DatabaseError

from knowledge.catalogue.hf_config_reading import CannotAdd, check_sizes, local_config, read
from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from knowledge.core.domain.catalogue import Catalogue, GpuModel, Model, UnknownModel
from knowledge.core.domain.hf_config import model_from_config
from knowledge.models import CatalogEntry
from trainer.protocol import RANDOM_MODEL

FRESH_S = 5.0  # entries are read again after this, so that other processes see new ones
FOLDER = "/"  # a model's name begins so if it is a path


def portal_catalogue(*names: str) -> Catalogue:
    """All models and GPUs of the portal, the models of folders among the names."""
    return with_folders(_extended(_added(_now())), names)


def known_model(name: str) -> Model | None:
    """The portal's entry for the model of that name, or None."""
    return portal_catalogue(name).known_model(name)


def catalogue_version() -> str:
    """Changes when an entry does; empty as long as nothing was added."""
    facts = json.loads(_added(_now()))
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:8] if any(facts) else ""


def with_folders(catalogue: Catalogue, names: Iterable[str]) -> Catalogue:
    """Return the catalogue with those of the names that are folders.

    They lie on this machine, below MODEL_ROOTS.
    """
    bare = dict.fromkeys(name.removeprefix(RANDOM_MODEL) for name in names)
    paths = [name for name in bare if name.startswith(FOLDER) and catalogue.known_model(name) is None]
    found = {path: model for path in paths if (model := _in_folder(path)) is not None}
    return catalogue.with_added(found) if found else catalogue


def forget_entries() -> None:
    """Read entries anew when next asked: they were changed."""
    _added.cache_clear()


def _now() -> int:
    return int(time.monotonic() / FRESH_S)


@lru_cache(maxsize=1)
def _added(_when: int) -> str:
    """Read the facts of added models and of GPUs, by name, as JSON.

    There are none without a table, as before any migration.
    """
    found: dict[str, dict[str, Any]] = {kind: {} for kind in CatalogEntry.Kind.values}
    try:
        for kind, name, facts in CatalogEntry.objects.values_list("kind", "name", "facts"):
            found[kind][name] = facts
    except (DatabaseError, RuntimeError):
        found = {kind: {} for kind in CatalogEntry.Kind.values}
    return json.dumps(list(found.values()))


@lru_cache(maxsize=2)
def _extended(added: str) -> Catalogue:
    """The catalogue with these entries: the same value until they change."""
    models, gpus = json.loads(added)
    return shipped_catalogue().with_added(
        {name: Model(**facts) for name, facts in models.items()},
        {name: GpuModel(**facts) for name, facts in gpus.items()},
    )


def _in_folder(name: str) -> Model | None:
    path = local_config(name)
    if path is None:
        return None
    try:
        text = read(path)
        check_sizes(text)
        return model_from_config(text, name)
    except (CannotAdd, UnknownModel):
        return None
