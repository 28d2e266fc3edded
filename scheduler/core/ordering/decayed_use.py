"""Use of GPUs that fades: what fair shares of people and teams weigh.

Use is in GPU-seconds and halves every `HALF_LIFE_S`. Source: the classic decayed fair share (Kay and Lauder,
CACM 1988), as in Slurm.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log
from typing import NamedTuple

HALF_LIFE_S = 7 * 86_400.0


class Accounts(NamedTuple):
    """The team that a job's use is charged to; without one, the person."""

    team: str
    person: str


def accounts(team: str, user: str) -> Accounts:
    person = f"user {user}"
    return Accounts(f"team {team}" if team else person, person)


def faded(used: float, seconds: float) -> float:
    """The rest of earlier use; nobody gets any back where a clock is set back."""
    return used * 2 ** -(max(0.0, seconds) / HALF_LIFE_S)


def use_of(gpus: float, seconds: float, ago_s: float = 0.0) -> float:
    """The use of GPUs that were held for so long, until so long ago, as it counts now."""
    return faded(gpus * (1 - faded(1.0, seconds)) * HALF_LIFE_S / log(2), ago_s)  # the integral of the fading


def used_since(used: Mapping[str, float], held: Mapping[str, float], seconds: float) -> dict[str, float]:
    """Each account's use after so much time in which it held these GPUs."""
    return {
        account: faded(used.get(account, 0.0), seconds) + use_of(held.get(account, 0.0), seconds)
        for account in sorted({*used, *held})
    }
