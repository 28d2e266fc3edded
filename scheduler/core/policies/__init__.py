"""All policies by name. A new one is one file and one line here."""

from scheduler.core.policies.attained import LAS, TIRESIAS
from scheduler.core.policies.easy import EASY
from scheduler.core.policies.fifo import DISTRIBUTED, FIFO, STRICT
from scheduler.core.policies.shortest import LUCID, SJF, SRTF
from scheduler.core.policies.sia import SIA
from scheduler.core.types import Policy

POLICIES: dict[str, Policy] = {
    policy.name: policy for policy in (FIFO, STRICT, DISTRIBUTED, EASY, SJF, SRTF, LUCID, LAS, TIRESIAS, SIA)
}
FREE_PLACEMENT = frozenset({"fifo-strict", "fifo-distributed"})  # do not keep to an option's nodes
LIVE = tuple(name for name in POLICIES if not POLICIES[name].preempts and name not in FREE_PLACEMENT)

__all__ = ["FREE_PLACEMENT", "LIVE", "POLICIES"]
