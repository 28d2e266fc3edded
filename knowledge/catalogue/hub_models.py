"""Whether the hub has a base model, as far as this portal can tell."""

from __future__ import annotations

import hashlib
import re
from enum import StrEnum

import httpx
from django.conf import settings
from django.core.cache import cache

from knowledge.catalogue import remote
from knowledge.core.domain.catalogue import Catalogue
from trainer.protocol import RANDOM_MODEL

HUB_ID = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
NO_NAMES_OF_THE_HUB = ("builtin/", RANDOM_MODEL)
WITHIN_S = 2.0  # somebody waits for the answer
KNOWN_FOR_S = 600
AWAY_FOR_S = 60  # a portal without internet tries no more often
MISSING_STATUS = (401, 403, 404)  # to strangers the hub does not tell private models from none


class OnHub(StrEnum):
    """The facts of a model that the hub states."""

    THERE = "there"
    MISSING = "missing"
    UNCHECKED = "unchecked"  # it cannot be reached from here


def is_hub_id(model: str, catalogue: Catalogue) -> bool:
    """Is this a name that only the hub could know?"""
    own = catalogue.shipped_model(model) is not None or model in catalogue.added_models
    return not own and not model.startswith(NO_NAMES_OF_THE_HUB) and HUB_ID.fullmatch(model) is not None


def on_hub(model: str) -> OnHub:
    """Ask the hub for a model, or remember what it said a while ago."""
    away = f"hub-away:{settings.HF_ENDPOINT}"
    digest = hashlib.sha256(f"{settings.HF_ENDPOINT} {model}".encode()).hexdigest()
    key = f"hub-model:{digest}"
    known = cache.get(key)
    if known is not None:
        return OnHub(known)
    if settings.HF_HUB_OFFLINE or cache.get(away):
        return OnHub.UNCHECKED
    found = _description(f"{settings.HF_ENDPOINT}/api/models/{model}")
    if found is OnHub.UNCHECKED:
        cache.set(away, True, AWAY_FOR_S)
    else:
        cache.set(key, found.value, KNOWN_FOR_S)
    return found


def _description(address: str) -> OnHub:
    try:
        status = remote.status(address, within_s=WITHIN_S, token=settings.HF_TOKEN)
    except (httpx.HTTPError, httpx.InvalidURL):
        return OnHub.UNCHECKED
    if status in MISSING_STATUS:
        return OnHub.MISSING
    return OnHub.THERE if status < httpx.codes.BAD_REQUEST else OnHub.UNCHECKED
