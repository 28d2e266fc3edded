"""Parameters that an administrator may set.

They are set when choosing a policy. Of one that stops running jobs they are its own figures, its rounds and
its rules on stopping; a ranking that stops nobody may keep a reservation. A policy keeps its default for what
is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from scheduler.core.cycle.options import CycleOptions, HeadOfLine
from scheduler.core.cycle.ranked import Ranked
from scheduler.core.divide.rules import DivideRules
from scheduler.core.policies.fair_share import Fair
from scheduler.core.policies.fifo import by_arrival
from scheduler.core.policies.gavel import Gavel
from scheduler.core.policies.gittins import QUANTUM_GPU_S, Gittins
from scheduler.core.policies.least_attained import LIMITS_GPU_S, PROMOTION, TIRESIAS, by_queues
from scheduler.core.policies.sia import Sia
from scheduler.core.policies.tardiness import Tardiness
from scheduler.core.policies.topology import TopologyAware
from scheduler.core.policies.uwfq import Uwfq
from scheduler.core.types import Policy
from scheduler.errors import BadParameters
from trainer.strict_json import is_number

Values = Mapping[str, Any]
A_DAY_S = 86_400.0
MOST_QUEUES = 8
A_MINUTE_S = 60.0
SPARING = frozenset({"las", "tiresias", "gittins"})  # judge by the past alone, unless they are told more
STOPS_A_DAY = 3  # a job that was stopped so often within a day is left alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One figure, a rising list of figures (`many`), or a yes or no (`flag`).

    `low` and `high` bound it, or each of the list.
    """

    name: str
    help: str
    default: Any
    low: float = 0.0
    high: float = A_DAY_S
    whole: bool = False
    many: bool = False
    flag: bool = False

    def clean(self, value: object) -> Any:
        """The value as stored. Raises ValueError, saying what is allowed."""
        if self.flag:
            if not isinstance(value, bool):
                raise ValueError("must be true or false")
            return value
        if not self.many:
            return self._number(value)
        if not isinstance(value, Sequence) or isinstance(value, str) or not 1 <= len(value) <= MOST_QUEUES:
            raise ValueError(f"must be a list of 1 to {MOST_QUEUES} numbers")
        numbers = [self._number(one) for one in value]
        if sorted(set(numbers)) != numbers:
            raise ValueError("must rise from each number to the next")
        return numbers

    def _number(self, value: object) -> float | int:
        if not is_number(value) or not self.low <= value <= self.high or (self.whole and value != int(value)):
            kind = "a whole number" if self.whole else "a number"
            raise ValueError(f"must be {kind} from {self.low:g} to {self.high:g}")
        return int(value) if self.whole else float(value)


RESERVE = Parameter(
    name="reserve", default=False, flag=True,
    help="Keep the earliest predicted place for the first job that waits; others start only where that does"
    " not delay it.",
)  # fmt: skip


def parameters_of(policy: Policy) -> tuple[Parameter, ...]:
    """The parameters of a policy; none if its figures are fixed."""
    if isinstance(policy, Ranked | Fair | Tardiness | Uwfq) and not policy.preempts:
        # Orders of arrival are policies of their own: `easy` is `fifo` with a reservation.
        arrival = isinstance(policy, Ranked) and policy.key is by_arrival
        return () if arrival else (RESERVE,)
    if policy.rules is None or not policy.rules.preempts:
        return ()
    return (*_own(policy), *_rounds(policy), *_rules(policy))


def _own(policy: Policy) -> tuple[Parameter, ...]:
    if policy.name == TIRESIAS.name:
        return (
            Parameter(
                name="limits_gpu_s", default=list(LIMITS_GPU_S), low=1.0, high=1e9, many=True,
                help="GPU-seconds after which a job moves down to the next queue, in rising order.",
            ),
            Parameter(
                name="promotion", default=PROMOTION, high=1e6,
                help="A job that waited this many times as long as it ran returns to the top queue; 0: never."
            ),
        )  # fmt: skip
    if isinstance(policy, Gittins):
        text = "How many GPU-seconds ahead a job's chance to end is judged."
        return (Parameter(name="quantum", default=QUANTUM_GPU_S, low=1.0, high=1e9, help=text),)
    if isinstance(policy, Uwfq):
        text = "Seconds of running between two moments at which a job may be stopped."
        low = 2 * policy.rules.boundary_s
        return (Parameter(name="segment_s", default=policy.rules.segment_s, low=low, help=text),)
    if isinstance(policy, Sia):
        return (
            Parameter(
                name="power", default=policy.power, low=-2.0, high=-0.1,
                help="Below 0; the lower, the less a job gains from additional GPUs.",
            ),
            Parameter(
                name="idle", default=policy.idle, low=1.01, high=100.0,
                help="The cost of leaving a job without GPUs; its slowest option costs 1.",
            ),
            Parameter(
                name="change", default=policy.change, high=1.0,
                help="The cost of each change to a job's GPUs, besides its restart.",
            ),
        )  # fmt: skip
    if isinstance(policy, TopologyAware):
        text = "Where closeness is asked for if possible: its weight; the rest is that of what stops lose."
        return (Parameter(name="alpha", default=policy.alpha, high=1.0, help=text),)
    if isinstance(policy, Gavel):
        text = "Minimum seconds for which shares of time stay in force, even if jobs arrive or end."
        return (Parameter(name="reset_s", default=policy.reset_s, low=1.0, help=text),)
    return ()


def _rounds(policy: Any) -> tuple[Parameter, ...]:
    """The rounds of a policy; a ranking costs little, so that nobody waits for one."""
    if not isinstance(policy, Sia | Gavel):
        text = "Seconds between two decisions; new jobs wait for the next one. 0: whenever anything changes."
        return (Parameter(name="round_s", default=0.0, high=3600.0, help=text),)
    text = "Seconds between two decisions; new jobs wait for the next one."
    return (Parameter(name="round_s", default=policy.round_s, low=1.0, high=3600.0, help=text),)


def _rules(policy: Any) -> tuple[Parameter, ...]:
    rules = policy.rules
    found = [
        Parameter(
            name="limit", default=_stops_a_day(rules), high=1000, whole=True,
            help="How often a job may be stopped for others within a day.",
        ),
    ]  # fmt: skip
    if isinstance(rules, DivideRules):
        text = "Minimum seconds that a job runs before it may be stopped, moved or resized."
        return (Parameter(name="min_run_s", default=A_MINUTE_S, help=text), *found)
    text = "Seconds during which a job that was stopped for another cannot stop others."
    found.insert(0, Parameter(name="cooldown_s", default=rules.cooldown_s, help=text))
    if rules.segment_s is None:
        text = "Minimum seconds that a job runs before it may be stopped."
        found.insert(0, Parameter(name="min_run_s", default=rules.min_run_s, help=text))
    if policy.name in SPARING:
        found += [
            Parameter(
                name="spare_restarts", default=rules.spare_restarts, high=100.0,
                help="A job is not stopped that will end within so many of its restarts, if that is known.",
            ),
            Parameter(
                name="spare_share", default=rules.spare_share, high=1.0,
                help="A job is not stopped that has less than this share of its work left.",
            ),
        ]  # fmt: skip
    if rules.hysteresis:
        text = "How much better a waiting job must rank than a running one to stop it, as a share."
        found.append(Parameter(name="hysteresis", default=rules.hysteresis, high=10.0, help=text))
    return tuple(found)


def _stops_a_day(rules: CycleOptions | DivideRules) -> int:
    """One at the end of each segment: else a long job would keep its GPUs for the day."""
    segment_s = rules.segment_s if isinstance(rules, CycleOptions) else None
    return int(A_DAY_S / segment_s) if segment_s else STOPS_A_DAY


def clean_parameters(policy: Policy, raw: Values) -> dict[str, Any]:
    """Return the values that were given, as they are stored.

    Raises BadParameters, naming each wrong one.
    """
    known = {parameter.name: parameter for parameter in parameters_of(policy)}
    values, wrong = {}, {}
    for name, value in raw.items():
        try:
            if name not in known:
                raise ValueError(f"is no parameter of {policy.name}; it has {', '.join(known) or 'none'}")
            values[name] = known[name].clean(value)
        except ValueError as bad:
            wrong[f"parameters.{name}"] = str(bad)
    if wrong:
        raise BadParameters(wrong)
    return values


def values_of(policy: Policy, given: Values) -> dict[str, Any]:
    """All parameters of a policy with the values that hold."""
    return {one.name: given.get(one.name, one.default) for one in parameters_of(policy)}


def with_parameters(policy: Policy, given: Values) -> Policy:
    """Return the policy with these values.

    It has the defaults of the live portal for the rest.
    """
    values = values_of(policy, given)
    if isinstance(policy, Ranked | Fair | Tardiness | Uwfq) and not policy.preempts:
        reserves = replace(policy.rules, blocks=HeadOfLine.RESERVATION)
        return replace(policy, rules=reserves) if values.get(RESERVE.name) else policy
    if not isinstance(policy, Ranked | Gittins | Uwfq | Sia | Gavel | TopologyAware) or not values:
        return policy
    changes: dict[str, Any] = {"rules": replace(policy.rules, **_among(values, policy.rules))}
    if isinstance(policy, Sia | Gavel):
        changes["rules"] = replace(changes["rules"], worthwhile=True)
    if policy.name == TIRESIAS.name:
        changes["key"] = by_queues(tuple(values["limits_gpu_s"]), values["promotion"])
    return replace(policy, **_among(values, policy), **changes)


def _among(values: Values, of: Any) -> dict[str, Any]:
    """The values that are the policy's fields."""
    names = {field.name for field in fields(of)}
    return {name: value for name, value in values.items() if name in names}
