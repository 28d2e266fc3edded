"""Baselines of published figures, which the simulator alone plays.

They place gangs without regard to an option's number of nodes, as real nodes do not allow.
"""

from scheduler.core.policies import POLICIES
from scheduler.core.types import Policy
from scheduler.simulator.baselines.first_come import DISTRIBUTED, STRICT
from scheduler.simulator.baselines.tiresias_adaptdl import ADAPTDL

BASELINES: dict[str, Policy] = {policy.name: policy for policy in (STRICT, DISTRIBUTED, ADAPTDL)}
SIMULATED = {**POLICIES, **BASELINES}

__all__ = ["BASELINES", "SIMULATED"]
