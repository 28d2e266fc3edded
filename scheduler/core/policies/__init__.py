"""All policies by name. A new one is one file and one line here."""

from scheduler.core.policies.easy_backfill import EASY
from scheduler.core.policies.fair_share import FAIR
from scheduler.core.policies.fifo import BACKFILL, FIFO
from scheduler.core.policies.gavel import GAVEL
from scheduler.core.policies.gittins import GITTINS
from scheduler.core.policies.least_attained import LAS, TIRESIAS
from scheduler.core.policies.pollux import POLLUX
from scheduler.core.policies.shortest import LUCID, SJF, SRTF
from scheduler.core.policies.sia import SIA
from scheduler.core.policies.spot import SPOT
from scheduler.core.policies.tardiness import EDD, MDD, MDDC
from scheduler.core.policies.topology import TOPOLOGY
from scheduler.core.policies.uwfq import SEGMENTED, WHOLE
from scheduler.core.types import Policy

_ALL: tuple[Policy, ...] = (
    FIFO, BACKFILL, EASY, SJF, SRTF, LUCID, LAS, TIRESIAS, GITTINS, SIA, POLLUX, GAVEL, SEGMENTED, WHOLE,
    FAIR, EDD, MDD, MDDC, TOPOLOGY, SPOT,
)  # fmt: skip
POLICIES: dict[str, Policy] = {policy.name: policy for policy in _ALL}
LIVE = tuple(name for name in POLICIES if name != POLLUX.name)  # which is there to compare with

__all__ = ["LIVE", "POLICIES"]
