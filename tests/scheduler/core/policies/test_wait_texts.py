"""What a waiting job is told about its start is true under each policy."""

from __future__ import annotations

import pytest

from scheduler.core.cycle.cycle import AHEAD
from scheduler.core.cycle.reserving import DELAYS, LATER
from scheduler.core.cycle.wait_reasons import HELD, OUTRANKED, PASSED, STOPPING
from scheduler.core.policies import LIVE, POLICIES
from scheduler.core.policies.parameters import RESERVE, parameters_of, with_parameters
from scheduler.core.stopping import SHARED
from scheduler.core.types import ClusterState, JobInfo, Start, Topology, Wait
from tests.scheduler.core.clusters import job, node, option, running

RANKINGS = [name for name in LIVE if name not in ("sia", "gavel", "spot")]
RESERVING = [(name, True) for name in RANKINGS if RESERVE in parameters_of(POLICIES[name])]


def crowded(topology: Topology = Topology.NONE) -> ClusterState:
    """Two of four GPUs are held for long; one job needs all four, and one that ranks behind it one."""
    holder = running("r", option(gpus=2, duration_s=1e5), ("n", 2), ("n", 3), preemptible=False)
    wide = job("wide", option(gpus=4, duration_s=100.0), at=0, user="u", due_at=1e3, topology=topology)
    small = job("small", option(gpus=1, duration_s=1e6), at=1, user="u", due_at=1e9)
    return ClusterState(jobs=(holder, wide, small), nodes=(node("n", 2, total=4),))


@pytest.mark.parametrize(("name", "reserve"), [*((name, False) for name in RANKINGS), *RESERVING])
@pytest.mark.parametrize("topology", [Topology.NONE, Topology.GUARANTEED])
def test_a_job_is_told_that_others_may_pass_where_they_do(
    name: str, reserve: bool, topology: Topology
) -> None:
    policy = with_parameters(POLICIES[name], {RESERVE.name: True}) if reserve else POLICIES[name]
    plan = {action.job: action for action in policy.decide(crowded(topology=topology), 0.0).actions}
    wide, passes = plan["wide"], isinstance(plan["small"], Start)
    assert isinstance(wide, Wait)
    told = wide.reason.partition(" free. ")[2]
    if passes:
        assert told in (PASSED, STOPPING)
    elif name == "topology" or getattr(policy, "behind", "") == AHEAD:
        assert told == HELD
    else:
        assert told in (OUTRANKED, STOPPING)


def test_of_jobs_that_may_only_fill_gaps_those_that_do_not_fit_are_told_no_other_reason() -> None:
    large = job("large", option(gpus=3, duration_s=1.0), at=2)
    state = crowded()
    state = ClusterState(jobs=(*state.jobs, large), nodes=state.nodes)
    plan = {action.job: action for action in POLICIES["easy"].decide(state, 0.0).actions}
    assert plan["small"] == Wait("small", plan["small"].code, f"Needs 1 A100 GPU; 2 are free. {DELAYS}")  # type: ignore[union-attr]
    assert (plan["small"].code, plan["large"].code) == ("behind", "busy")  # type: ignore[union-attr]
    assert plan["large"].reason == f"Needs 3 A100 GPUs; 2 are free. {LATER}"  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["sia", "gavel"])
def test_where_a_round_divides_the_gpus_it_is_said_that_they_go_to_others(name: str) -> None:
    jobs: list[JobInfo] = [job(f"j{n}", option(gpus=1), at=float(n)) for n in range(3)]
    plan = POLICIES[name].decide(ClusterState(jobs=tuple(jobs), nodes=(node("n", 2),)), 0.0)
    waits = [action for action in plan.actions if isinstance(action, Wait)]
    assert [wait.reason.endswith(SHARED) for wait in waits] == [True]
