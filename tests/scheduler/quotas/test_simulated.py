"""The simulator keeps quotas by the rules of the live loop."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.core.limits import Limits, Quota
from scheduler.core.policies import LIVE
from scheduler.simulator.cli import main
from scheduler.simulator.errors import SimulatorError
from scheduler.simulator.inputs.quotas import read_quotas
from tests.harness.environment import examples
from tests.scheduler.simulator.worlds import job, play

LIMITED = Limits((Quota(team="a", guaranteed=2, borrow_limit=0), Quota(team="b", guaranteed=2)))


@pytest.mark.parametrize("policy", LIVE)
def test_a_group_never_holds_more_than_it_may_and_all_jobs_end(policy: str) -> None:
    jobs = [job(f"a{i}", runs_s=100, group="a") for i in range(4)] + [
        job(f"b{i}", 50.0 * i, runs_s=80, group="b") for i in range(6)
    ]
    runs = play(jobs, policy=policy, limits=LIMITED, round_s=10.0).runs
    assert all(run.finished is not None for run in runs.values())
    ends = sorted(run.finished or 0.0 for name, run in runs.items() if name.startswith("a"))
    assert ends[-1] >= 200.0, "four jobs of 100 s on two GPUs"


def test_a_group_gets_back_what_it_lent() -> None:
    lent = [job(f"b{i}", runs_s=1000, group="b") for i in range(4)]
    mine = job("a", 100.0, runs_s=100, gpus=2, group="a")
    runs = play([*lent, mine], policy="srtf", limits=LIMITED, round_s=10.0).runs
    assert runs["a"].first_start == 100.0
    assert sorted(run.preemptions for run in runs.values()) == [0, 0, 0, 1, 1]
    waits = play([*lent, mine], policy="fifo", limits=LIMITED).runs
    assert waits["a"].first_start == 1000.0


groups = st.sampled_from(["a", "b", ""])
traces = st.lists(
    st.tuples(groups, st.integers(0, 400), st.integers(1, 4), st.integers(20, 300)), max_size=10
)
few = st.integers(0, 4)


@pytest.mark.parametrize("policy", LIVE)
@given(
    trace=traces,
    owed=st.tuples(few, few),
    borrow=st.tuples(few | st.none(), few | st.none()),
    lend=st.tuples(few | st.none(), few | st.none()),
)
@settings(max_examples=examples(15), deadline=None, suppress_health_check=list(HealthCheck))
def test_every_job_that_its_limits_allow_on_an_empty_cluster_ends(
    policy: str,
    trace: list[tuple[str, int, int, int]],
    owed: tuple[int, int],
    borrow: tuple[int | None, int | None],
    lend: tuple[int | None, int | None],
) -> None:
    """No guarantee is kept for ever from a team that could use it, and none is out of reach."""
    quotas = [
        Quota(team=team, guaranteed=owed[i], borrow_limit=borrow[i], lending_limit=lend[i])
        for i, team in enumerate("ab")
    ]
    jobs = [
        job(f"j{i}", at, gpus=gpus, runs_s=runs_s, group=group)
        for i, (group, at, gpus, runs_s) in enumerate(trace)
    ]
    runs = play(jobs, policy=policy, limits=Limits(tuple(quotas)), round_s=10.0).runs
    for one in jobs:
        own = next((quota for quota in quotas if quota.team == one.group), Quota(team=""))
        kept = sum(quota.kept for quota in quotas if quota.team != one.group)
        borrows = one.whole_gpus - own.guaranteed
        may = own.borrow_limit is None or borrows <= own.borrow_limit
        if borrows <= 0 or (may and one.whole_gpus + kept <= 4):
            assert runs[one.job_id].finished is not None


def test_quotas_come_from_a_file(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    rows = [f"j{i},0,1,100,vc" for i in range(4)]
    trace.write_text("\n".join(["job_id,submit_s,gpus,duration_s,group", *rows]) + "\n")
    quotas, out = tmp_path / "quotas.json", tmp_path / "out.json"
    quotas.write_text(json.dumps([{"team": "vc", "guaranteed": 1, "borrow_limit": 0}]))
    arguments = ["--trace", str(trace), "--cluster", "gpu:1x4", "--policy", "fifo", "--json", str(out)]
    assert main(arguments) == 0
    free = json.loads(out.read_text())[0]
    assert main([*arguments, "--quotas", str(quotas)]) == 0
    limited = json.loads(out.read_text())[0]
    assert (free["makespan_s"], limited["makespan_s"]) == (100.0, 400.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "must be a list"),
        ('[{"team": "a"}]', "guaranteed must be a whole number"),
        ('[{"team": "a", "guaranteed": 1.5}]', "guaranteed must be a whole number"),
        ('[{"team": "a", "guaranteed": 1, "limit": 2}]', "no field limit"),
        ('[{"team": "a", "guaranteed": 1}, {"team": "a", "guaranteed": 2}]', "twice"),
        ("[", "quotas.json"),
    ],
)
def test_a_wrong_file_says_what_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "quotas.json"
    path.write_text(text)
    with pytest.raises(SimulatorError, match=message):
        read_quotas(path)
