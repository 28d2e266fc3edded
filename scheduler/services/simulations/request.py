"""Asking for a simulation of the portal's own past, within bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from knowledge.core.domain.wording import counted
from portal.accounts.models import User
from portal.accounts.services import audit
from scheduler import hints
from scheduler.core.policies import POLICIES
from scheduler.errors import BadParameters, Conflict
from scheduler.models import Simulation
from scheduler.selectors.simulations import present_cluster
from scheduler.selectors.trace import past_jobs
from scheduler.services.idempotency import Creation, unkeyed
from scheduler.services.simulations.described import described_cluster
from scheduler.simulator.errors import ClusterError
from scheduler.simulator.inputs.cluster import parse_cluster
from scheduler.simulator.world.predictions import Fidelity
from scheduler.states import OPEN_SIMULATIONS

MIN_JOBS, MAX_JOBS = 3, 20_000
MAX_GPUS = 20_000
MAX_POLICIES = 8
MAX_TEXT = 500  # of a cluster
MAX_ERROR = 10.0  # as a share: 1000 %
MAX_SEED = 2**31 - 1
MAX_OPEN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationRequest:
    """A request to compare policies.

    cluster: as the command line takes it; empty: the nodes as they came, failed and went, with the windows.
    since, until: when the jobs were submitted; until defaults to now.
    error: median error of the predictions at the level `performance`, as a share.
    """

    policies: Sequence[str]
    knowledge: str = Fidelity.ORACLE
    error: float = 0.0
    seed: int = 0
    cluster: str = ""
    since: datetime | None = None
    until: datetime | None = None


def request_simulation(
    *,
    question: SimulationRequest,
    actor: User,
    now: datetime,
    creation: Creation = unkeyed,
) -> Simulation:
    """Store the question for a worker, which plays one policy after the other.

    It is stored in the transaction that `creation` opens. Raises BadParameters naming every wrong field, and
    Conflict if too many simulations wait already.
    """
    until = min(question.until or now, now)
    cluster, wrong = _cluster(question.cluster.strip())
    _check(question, wrong, until, now)
    with creation() as note:
        if Simulation.objects.filter(state__in=OPEN_SIMULATIONS).count() >= MAX_OPEN:
            raise Conflict(f"{MAX_OPEN} simulations have not ended yet; ask again when one has.")
        made = Simulation.objects.create(
            requested_by=actor, requested_at=now, since=question.since, until=until, cluster=cluster,
            as_it_was=not question.cluster.strip(), policies=list(question.policies),
            knowledge=question.knowledge, error=question.error, seed=question.seed,
        )  # fmt: skip
        terms = {"policies": ", ".join(made.policies), "knowledge": made.knowledge, "cluster": cluster}
        audit(action="simulation requested", actor=actor, target=made.pk, data=terms, now=now)
        note(made)
        hints.simulate()
    return made


def ask_again(*, now: datetime) -> None:
    """Send the hint of simulations once more whose hint or worker was lost."""
    waiting = Simulation.objects.filter(state__in=OPEN_SIMULATIONS)
    if waiting.filter(Q(leased_until__isnull=True) | Q(leased_until__lt=now)).exists():
        hints.simulate()


def _check(question: SimulationRequest, wrong_cluster: str, until: datetime, now: datetime) -> None:
    errors = {
        "policies": _of_policies(question.policies),
        "knowledge": "" if question.knowledge in set(Fidelity) else f"must be one of {', '.join(Fidelity)}",
        "error": "" if 0 <= question.error <= MAX_ERROR else f"must be between 0 and {MAX_ERROR:g}",
        "seed": "" if 0 <= question.seed <= MAX_SEED else f"must be between 0 and {MAX_SEED}",
        "cluster": wrong_cluster,
    }
    if question.since and question.since >= until:
        errors["since"] = "must lie in the past and before the end of the range"
    else:
        errors["since"] = _of_past(past_jobs(question.since, until, ended_by=now).count())
    if wrong := {name: message for name, message in errors.items() if message}:
        raise BadParameters(wrong)


def _of_policies(names: Sequence[str]) -> str:
    if not 1 <= len(names) <= MAX_POLICIES:
        return f"name 1 to {MAX_POLICIES} policies"
    if len(set(names)) < len(names):
        return "name each policy once"
    unknown = [name for name in names if name not in POLICIES]
    return f"{unknown[0]!r} is no policy; there are {', '.join(POLICIES)}" if unknown else ""


def _cluster(described: str) -> tuple[str, str]:
    """The cluster in the portal's own names of GPU models, and what is wrong with it."""
    cluster = described or present_cluster()
    if not cluster:
        return "", "no node is registered; describe a cluster, for example a100:8x8,l40s:4x4@1.1"
    if len(cluster) > MAX_TEXT:
        return "", f"must have {MAX_TEXT} characters at most"
    try:
        gpus = parse_cluster(cluster).total_gpus
        if gpus > MAX_GPUS:
            return "", f"has {gpus:,} GPUs; {MAX_GPUS:,} at most"
        cluster = described_cluster(cluster) if described else cluster
    except ClusterError as error:
        return "", str(error).removeprefix("--cluster: ")
    return (cluster, "") if len(cluster) <= MAX_TEXT else ("", "is too long with the full names of its GPUs")


def _of_past(jobs: int) -> str:
    if jobs < MIN_JOBS:
        return f"only {counted(jobs, 'job')} of this range ran to the end; a simulation needs {MIN_JOBS}"
    if jobs > MAX_JOBS:
        return f"{jobs:,} jobs of this range have run; narrow it to {MAX_JOBS:,} at most"
    return ""
