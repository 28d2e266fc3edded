"""The walk down a ranking, and the keys of the classic policies.

The walk is tested for order, blocking and preemption.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.core.cycle.options import HeadOfLine
from scheduler.core.cycle.ranked import Ranked
from scheduler.core.cycle.wait_reasons import OUTRANKED
from scheduler.core.policies.least_attained import by_queues
from scheduler.core.types import ClusterState, Preempt, Resize, Start, Wait
from scheduler.simulator.baselines import SIMULATED
from scheduler.states import WaitState
from tests.scheduler.core.clusters import decide, job, node, option, running

ONE, TWO, FOUR = (option(gpus=gpus) for gpus in (1, 2, 4))


def test_strict_fifo_lets_nobody_pass_on_any_gpus() -> None:
    nodes = [node("n", 1, total=8), node("m", 1, model="L40S")]
    plan = decide("fifo-strict", [job("gang", FOUR), job("other", option("L40S"), at=1)], nodes)
    text = "Needs 1 L40S GPU; 1 is free. Jobs that were submitted earlier go first."
    assert plan["other"] == Wait("other", WaitState.BEHIND, text)
    later = job("gang", FOUR, at=2, priority=1)
    plan = decide("fifo-strict", [later, job("other", option("L40S"), at=1)], nodes)
    assert plan["other"].reason.endswith(
        "; 1 is free. Jobs of a higher class or moved to the front go first, then those submitted earlier."
    )  # type: ignore[union-attr]


def test_sjf_starts_the_shortest_and_lucid_the_one_with_least_gpu_time() -> None:
    """The example of Lucid's priorities: duration times GPUs of a, b, c is 2, 4, 6."""
    jobs = [
        job("a", option(gpus=1, duration_s=2)),
        job("b", option(gpus=8, duration_s=0.5)),
        job("c", option(gpus=2, duration_s=3)),
    ]
    assert isinstance(decide("sjf", jobs, [node("n", 8)])["b"], Start)
    by_lucid = decide("lucid", jobs, [node("n", 8)])
    assert isinstance(by_lucid["a"], Start)
    assert by_lucid["b"].reason == f"Needs 8 A100 GPUs; 7 are free. {OUTRANKED}"  # type: ignore[union-attr]
    assert by_lucid["c"].code == "behind"  # type: ignore[union-attr]


def test_srtf_stops_the_job_with_clearly_more_left() -> None:
    holder = running("long", option(gpus=1, duration_s=1000), ("n", 0))
    plan = decide("srtf", [holder, job("short", ONE)], [node("n", 0, total=1)])
    assert isinstance(plan["long"], Preempt)
    assert plan["short"] == Start("short", ONE, (("n", 0),))


@pytest.mark.parametrize(
    ("left", "more"),
    [
        (105.0, {}),  # hardly more left than the newcomer
        (1000.0, {"since": -30.0}),  # started a moment ago
        (1000.0, {"preemptible": False}),
        (1000.0, {"priority": 1}),
    ],
)
def test_srtf_leaves_a_running_job_alone(left: float, more: dict[str, object]) -> None:
    holder = running("long", option(gpus=1, duration_s=left), ("n", 0), **more)  # type: ignore[arg-type]
    plan = decide("srtf", [holder, job("short", ONE)], [node("n", 0, total=1)])
    assert "long" not in plan
    assert isinstance(plan["short"], Wait)


def test_a_job_that_was_just_stopped_evicts_nobody() -> None:
    holder = running("long", option(gpus=1, duration_s=1000), ("n", 0))
    cooling = job("short", ONE, first_started_at=-90.0, stopped_at=-30.0, preempted_at=-30.0)
    assert isinstance(decide("srtf", [holder, cooling], [node("n", 0, total=1)])["short"], Wait)
    assert isinstance(decide("srtf", [holder, cooling], [node("n", 0, total=1)], now=31.0)["short"], Start)


def test_a_job_that_lost_its_node_evicts_at_once() -> None:
    holder = running("long", option(gpus=1, duration_s=1000), ("n", 0))
    unlucky = job("short", ONE, first_started_at=-90.0, stopped_at=-30.0)
    assert isinstance(decide("srtf", [holder, unlucky], [node("n", 0, total=1)])["short"], Start)


@pytest.mark.parametrize(("unsaved_s", "stopped"), [(0.0, True), (950.0, False)])
def test_nobody_is_stopped_who_ends_before_the_stop_pays(unsaved_s: float, stopped: bool) -> None:
    """The stop would cost the unsaved work and a restart of 60 s; 1,000 s are left."""
    holder = running("long", option(duration_s=1000), ("n", 0), unsaved_s=unsaved_s, restart_s=60.0)
    plan = decide("srtf", [holder, job("short", ONE)], [node("n", 0, total=1)])
    assert isinstance(plan.get("long"), Preempt) == stopped


def test_the_victims_are_those_that_lose_least_and_no_more_than_needed() -> None:
    long = option(gpus=1, duration_s=1e4)
    dear = running("dear", long, ("n", 0), unsaved_s=500.0)
    cheap = [running(f"cheap{i}", long, ("m", i), unsaved_s=10.0) for i in range(3)]
    plan = decide("srtf", [dear, *cheap, job("pair", TWO)], [node("n", 0, total=1), node("m", 0, total=3)])
    assert {name for name, action in plan.items() if isinstance(action, Preempt)} == {"cheap1", "cheap2"}
    assert plan["pair"] == Start("pair", TWO, (("m", 1), ("m", 2)))


def test_nobody_is_stopped_when_even_that_would_not_make_the_gang_fit() -> None:
    holder = running("long", option(gpus=1, duration_s=1e4), ("n", 0))
    plan = decide("srtf", [holder, job("gang", FOUR)], [node("n", 0, total=1), node("m", 0, total=4)])
    assert "long" not in plan


def test_a_victim_goes_on_elsewhere_if_its_option_fits_there() -> None:
    holder = running("small", option(gpus=1, duration_s=1e4), ("n", 3))
    plan = decide("srtf", [holder, job("gang", FOUR)], [node("n", 3, total=4), node("m", 1)])
    assert isinstance(plan["gang"], Start)
    assert plan["small"] == Resize("small", holder.options[0], (("m", 0),))


def test_a_gang_over_two_nodes_evicts_on_both() -> None:
    long = option(gpus=1, duration_s=1e4)
    holders = [running("a", long, ("n", 1)), running("b", long, ("m", 1))]
    nodes = [node("n", 1, total=2), node("m", 1, total=2)]
    plan = decide("srtf", [*holders, job("gang", option(gpus=4, nodes=2))], nodes)
    assert isinstance(plan["gang"], Start)
    assert isinstance(plan["a"], Preempt)
    assert isinstance(plan["b"], Preempt)


def test_las_prefers_the_job_that_received_least() -> None:
    holder = running("fed", ONE, ("n", 0), attained_gpu_s=5000.0)
    plan = decide("las", [holder, job("new", ONE)], [node("n", 0, total=1)])
    assert isinstance(plan["fed"], Preempt)


def test_tiresias_queues_by_attained_service_and_by_first_start_within_a_queue() -> None:
    key = by_queues()
    assert key(job("a", ONE, attained_gpu_s=3599.0, first_started_at=7.0), 0.0) == (0, 7)
    assert key(job("b", ONE, attained_gpu_s=3600.0, first_started_at=7.0), 0.0) == (1, 7)
    assert key(job("c", ONE, attained_gpu_s=36000.0, first_started_at=7.0), 0.0) == (2, 7)
    assert key(job("d", ONE, at=9.0), 0.0) == (0, 9)


def test_tiresias_promotes_a_job_that_waited_eight_times_as_long_as_it_ran() -> None:
    starved = job("a", TWO, attained_gpu_s=8000.0, first_started_at=0.0, stopped_at=4000.0)
    assert by_queues()(starved, 4000.0 + 8 * 4000 - 1) == (1, 0)
    assert by_queues()(starved, 4000.0 + 8 * 4000) == (0, 0)
    assert by_queues(promotion=0)(starved, 1e9) == (1, 0)


def test_tiresias_skips_a_gang_that_does_not_fit() -> None:
    plan = decide("tiresias", [job("gang", FOUR), job("small", ONE, at=1)], [node("n", 2, total=4)])
    assert isinstance(plan["gang"], Wait)
    assert isinstance(plan["small"], Start)


def test_a_policy_can_be_had_with_other_rules() -> None:
    sjf = SIMULATED["sjf"]
    assert isinstance(sjf, Ranked)
    passing = replace(sjf, rules=replace(sjf.rules, blocks=HeadOfLine.NOTHING))
    jobs = (job("gang", option(gpus=4, duration_s=1)), job("small", ONE))
    plan = passing.decide(ClusterState(jobs=jobs, nodes=(node("n", 2, total=4),)), 0.0)
    assert [action.job for action in plan.actions if isinstance(action, Start)] == ["small"]


def test_jobs_on_a_node_that_is_not_ready_make_no_room_on_others() -> None:
    """Under `tiresias-adaptdl` any GPUs will do, but for those."""
    away = running("away", TWO, ("off", 0), ("off", 1), attained_gpu_s=1e5)
    held = running("held", TWO, ("n", 1), ("n", 2), at=-3e6, attained_gpu_s=1e5)
    own = running("own", TWO, ("n", 3), ("n", 4), at=-2e6, attained_gpu_s=1e5)
    nodes = (node("n", 1, total=5), node("off", 0, total=2, ready=False))
    jobs = (away, held, own, job("new", FOUR), job("small", TWO, at=1))
    plan = SIMULATED["tiresias-adaptdl"].decide(ClusterState(jobs=jobs, nodes=nodes), 0.0)
    assert {action.job for action in plan.actions if isinstance(action, Preempt)} == {"held", "own"}
    assert {action.job for action in plan.actions if isinstance(action, Start)} == {"new"}
