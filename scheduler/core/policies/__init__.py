"""All policies by name. A new one is one file and one line here."""

from scheduler.core.policies.easy_backfill import EASY
from scheduler.core.policies.fair_share import FAIR
from scheduler.core.policies.fifo import BACKFILL, DISTRIBUTED, FIFO, STRICT
from scheduler.core.policies.gavel import GAVEL
from scheduler.core.policies.gittins import GITTINS
from scheduler.core.policies.least_attained import ADAPTDL, LAS, TIRESIAS
from scheduler.core.policies.pollux import POLLUX
from scheduler.core.policies.shortest import LUCID, SJF, SRTF
from scheduler.core.policies.sia import SIA
from scheduler.core.policies.spot import SPOT
from scheduler.core.policies.tardiness import EDD, MDD, MDDC
from scheduler.core.policies.topology import TOPOLOGY
from scheduler.core.policies.uwfq import SEGMENTED, WHOLE
from scheduler.core.types import Policy

_ALL: tuple[Policy, ...] = (
    FIFO, BACKFILL, STRICT, DISTRIBUTED, EASY, SJF, SRTF, LUCID, LAS, TIRESIAS, ADAPTDL, GITTINS,
    SIA, POLLUX, GAVEL, SEGMENTED, WHOLE, FAIR, EDD, MDD, MDDC, TOPOLOGY, SPOT,
)  # fmt: skip
POLICIES: dict[str, Policy] = {policy.name: policy for policy in _ALL}
FREE_PLACEMENT = frozenset({STRICT.name, DISTRIBUTED.name, ADAPTDL.name})  # do not keep to an option's nodes
# They and the baseline run in the simulator only.
LIVE = tuple(name for name in POLICIES if name not in FREE_PLACEMENT | {POLLUX.name})

__all__ = ["FREE_PLACEMENT", "LIVE", "POLICIES"]
