"""A team's guaranteed GPUs come back within a round, and the time in which nobody is stopped."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.core.limits import Limits, Quota
from scheduler.core.policies import LIVE, POLICIES
from scheduler.core.policies.parameters import with_parameters
from scheduler.core.quotas.reclaim import RULES
from tests.harness.environment import examples
from tests.scheduler.simulator.worlds import job, play

STOPS = [name for name in LIVE if POLICIES[name].preempts]
GPUS, RESTART_S, TICK_S = 8, 5.0, 10.0
EXAMPLES = examples(25)
borrowers = st.lists(
    st.tuples(st.sampled_from(["b", "c", ""]), st.integers(0, 900), st.integers(1, 4), st.integers(30, 3000)),
    max_size=12,
)
owners = st.lists(
    st.tuples(st.integers(0, 1500), st.integers(1, 4), st.integers(30, 600)), min_size=1, max_size=4
)


@pytest.mark.parametrize("name", STOPS)
@given(
    others=borrowers,
    mine=owners,
    lower=st.booleans(),
    rounds=st.sampled_from([None, 20.0]),
)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_team_within_its_guarantee_starts_within_the_stated_time(
    name: str,
    others: list[tuple[str, int, int, int]],
    mine: list[tuple[int, int, int]],
    lower: bool,
    rounds: float | None,
) -> None:
    """All that the team submits fits its guarantee; others, of its class or lower ones, borrow the rest."""
    policy = with_parameters(POLICIES[name], {"limit": 3} if name != "spot" else {})
    round_s = rounds or policy.round_s or TICK_S  # live rankings have no rounds: they decide in every tick
    guaranteed, own = 0, []
    for number, (at, gpus, runs_s) in enumerate(mine):
        if guaranteed + gpus <= GPUS:
            guaranteed += gpus
            own.append(job(f"a{number}", at, gpus=gpus, runs_s=runs_s, group="a"))
    lent = [
        job(
            f"{group or 'x'}{n}", at, gpus=gpus, runs_s=runs_s, group=group, priority=-(n % 2) if lower else 0
        )
        for n, (group, at, gpus, runs_s) in enumerate(others)
    ]
    owed = Limits((Quota(team="a", guaranteed=guaranteed),))
    runs = play(
        [*own, *lent], f"gpu:1x{GPUS}", policy, limits=owed, restart_s=RESTART_S, round_s=round_s
    ).runs
    within_s = round_s + RULES.min_run_s + 2 * RESTART_S
    late = {
        one.job_id: (run.first_start, one.submit_s)
        for one in own
        if (run := runs[one.job_id]).first_start is None or run.first_start > one.submit_s + within_s
    }
    assert not late
    assert all(run.finished is not None for run in runs.values())
