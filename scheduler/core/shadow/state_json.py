"""The shadow's occupancy as it is kept from one call to the next."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

from scheduler.core.ahead.durations import UNKNOWN_S
from scheduler.core.ahead.lives import PlayedJob
from scheduler.core.decisions.decision_json import (
    PackedInput,
    PolicyInput,
    UnreadableDecision,
    options_digest,
    pack_input,
    pack_options,
    unpack_options,
)
from scheduler.core.shadow.state import ShadowState
from scheduler.core.types import ClusterState

NUMBERS = ("counted_at", "moves_at", "ends_at", "rate", "scale", "started_at", "ended_at")


def pack_state(world: ShadowState) -> bytes:
    """Pack a state into few bytes: options that several jobs share stand once."""
    options, digests = {}, {}
    for job_id, life in world.lives.items():
        if life.info.options:
            packed = pack_options(life.info.options)
            digests[job_id] = options_digest(packed)
            options[digests[job_id]] = _text(packed)
    state = ClusterState(
        jobs=tuple(life.info for life in world.lives.values()), nodes=(), memory=world.memory
    )
    raw = {
        "input": _text(pack_input(PolicyInput(state, world.at), digests)),
        "options": options,
        "lives": {job: [getattr(life, name) for name in NUMBERS] for job, life in world.lives.items()},
        "stops": world.stops,
        "away": sorted(world.away),
        "decided_at": world.decided_at,
    }
    return zlib.compress(json.dumps(raw, separators=(",", ":")).encode())


def unpack_state(packed: bytes) -> ShadowState:
    """Raises UnreadableDecision if another release with other values made it."""
    try:
        return _read(json.loads(zlib.decompress(packed)))
    except UnreadableDecision:
        raise
    except (zlib.error, ValueError, LookupError, TypeError, AttributeError) as wrong:
        raise UnreadableDecision(f"The occupancy does not fit this release: {wrong}.") from wrong


def _read(raw: dict[str, Any]) -> ShadowState:
    options = {digest: unpack_options(_bytes(text)) for digest, text in raw["options"].items()}
    given = PackedInput(_bytes(raw["input"])).given(options)
    world = ShadowState(
        at=given.now,
        stops=raw["stops"],
        away=set(raw["away"]),
        memory=given.state.memory,
        decided_at=raw["decided_at"],
    )
    for job in given.state.jobs:
        life = PlayedJob(job, 0.0, UNKNOWN_S)
        for name, value in zip(NUMBERS, raw["lives"][job.id], strict=True):
            setattr(life, name, value)
        world.lives[job.id] = life
    return world


def _text(packed: bytes) -> str:
    return base64.b85encode(packed).decode()


def _bytes(text: str) -> bytes:
    return base64.b85decode(text)
