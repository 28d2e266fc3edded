"""All policies by name. A new one is one file and one line here."""

from scheduler.core.policies.fifo import Fifo
from scheduler.core.types import Policy

POLICIES: dict[str, Policy] = {policy.name: policy for policy in (Fifo(),)}

__all__ = ["POLICIES"]
