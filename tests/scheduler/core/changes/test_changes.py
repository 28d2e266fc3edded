"""Changes that help a waiting job, and what they cost others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from knowledge.core.domain.types import Goal, Interval, Option
from scheduler.core.ahead.play_input import PlayInput
from scheduler.core.changes.helpful import HelpfulChange, helpful_changes
from scheduler.core.changes.possible import OpenOptions, possible_changes
from scheduler.core.changes.stored import change_json
from scheduler.core.changes.terms import LaterDeadline, least_later_deadline
from scheduler.core.changes.trying import Trials, try_changes
from scheduler.core.limits import Limits, Quota, UserLimit, Window
from scheduler.core.market.types import NodeTerms
from scheduler.core.placement.levels import TopologyLevel
from scheduler.core.policies import POLICIES
from scheduler.core.types import ClusterState, GpuSite, JobInfo, NodeInfo, Topology
from tests.scheduler.core.clusters import job, node, option, running

NOTHING = OpenOptions()


def sure(duration_s: float, **more: Any) -> Option:
    """An option whose duration is certain."""
    made = option(duration_s=duration_s, **more)
    return replace(made, duration_s=Interval(duration_s, duration_s, duration_s))


def known(jobs: list[JobInfo], nodes: list[NodeInfo], policy: str = "fifo", **state: Any) -> PlayInput:
    whole = ClusterState(jobs=tuple(jobs), nodes=tuple(nodes), **state)
    return PlayInput(state=whole, now=0.0, policy=POLICIES[policy])


def found(given: PlayInput, name: str, options: OpenOptions = NOTHING) -> dict[str, HelpfulChange]:
    waiting = next(one for one in given.state.jobs if one.id == name)
    trials = try_changes(given, name, possible_changes(given, waiting, options))
    return {f"{one.kind}:{one.subject}": one for one in helpful_changes(trials, name, given.now)}


FULL = NodeInfo(id="n0", gpu_model="A100", total=2, free=())
HALF = NodeInfo(id="n0", gpu_model="A100", total=2, free=(1,))
BUSY = running("r", sure(1000, gpus=2), ("n0", 0), ("n0", 1), since=-100.0)
OTHER = running("r", sure(1000), ("n0", 0), since=-100.0)


def test_on_spot_nodes_a_job_may_start_at_once_unless_there_are_none_or_it_may_already() -> None:
    spot = NodeInfo(id="s0", gpu_model="A100", total=2, free=(0, 1), kind=NodeTerms.SPOT, market="east")
    mine, options = job("a", sure(600)), OpenOptions(spot=(sure(600),))
    one = found(known([BUSY, mine], [FULL, spot]), "a", options)["spot:yes"]
    assert (one.forecast.start.value, one.sooner_s, one.change) == (0.0, 900.0, {"spot": "yes"})
    assert "spot:yes" not in found(known([BUSY, mine], [FULL]), "a", options)
    assert "spot:yes" not in found(known([BUSY, replace(mine, spot=True)], [FULL, spot]), "a", options)
    assert "spot:yes" not in found(known([BUSY, mine], [FULL, spot]), "a")


def test_fewer_gpus_that_are_idle_start_at_once_and_end_sooner() -> None:
    mine = job("a", sure(600, gpus=2))
    options = OpenOptions(anywhere=(sure(600, gpus=2), sure(1100)))
    one = found(known([OTHER, mine], [HALF]), "a", options)["placement:A100:1x1"]
    assert (one.forecast.start.value, one.sooner_s) == (0.0, 900.0)
    assert one.forecast.end is not None
    assert one.forecast.end.value == pytest.approx(1100)
    assert one.change == {"params": {"gpu_model": "A100", "number_gpus": 1, "number_nodes": 1}}
    assert one.option is not None
    assert one.option.gpus == 1
    stored = change_json(one)
    assert (stored["start"][0], stored["duration_s"], stored["cost"]) == (0.0, 1100.0, 1.0)


def test_a_fixed_value_that_hinders_is_opened() -> None:
    mine = job("a", sure(600, gpus=2))
    options = OpenOptions(opened={"params.number_gpus": (sure(600, gpus=2), sure(1100))})
    one = found(known([OTHER, mine], [HALF]), "a", options)["open:params.number_gpus"]
    assert (one.change, one.forecast.start.value) == ({"params": {"number_gpus": None}}, 0.0)


def test_a_higher_class_passes_others_and_says_how_many_wait_longer() -> None:
    jobs = [BUSY, job("a", sure(300, gpus=2), at=1.0), job("b", sure(50, gpus=2), at=2.0)]
    one = found(known(jobs, [FULL]), "b")["class:high"]
    assert (one.sooner_s, one.delayed, one.delay_s) == (300.0, 1.0, 50.0)
    assert one.change == {"priority": "high"}


def test_limits_that_refuse_every_option_are_lifted() -> None:
    mine = replace(job("a", sure(100)), team="t", user="u")
    theirs = replace(OTHER, team="t", user="u")
    quota = Limits(quotas=(Quota(team="t", guaranteed=1, borrow_limit=0),))
    by_team = found(known([theirs, mine], [HALF], limits=quota), "a")
    assert by_team["quota:team"].forecast.start.value == 0.0
    own = Limits(users=(UserLimit(user="u", running_jobs=1),))
    by_user = found(known([theirs, mine], [HALF], limits=own), "a")
    assert by_user["quota:user"].forecast.start.value == 0.0
    assert "quota:user" not in found(known([mine], [HALF], limits=own), "a")


def test_windows_holds_dependencies_and_running_jobs_are_named() -> None:
    shut = Window(closes_at=50.0, ends_at=5000.0, nodes=frozenset({"n0"}), in_words="Closed.")
    held = replace(job("a", sure(100)), borrows=False)
    assert found(known([held], [HALF], windows=(shut,)), "a")["window:Closed."].forecast.start.value == 0.0
    kept = replace(held, held="An administrator holds it.")
    released = found(known([kept], [HALF]), "a")["release:a"]
    assert (released.sooner_s, released.change) == (None, {})
    after = replace(job("a", sure(100)), awaits=("r",))
    assert found(known([OTHER, after], [HALF]), "a")["job:r"].sooner_s == 900.0
    first = job("f", sure(500, gpus=2), at=-1.0)
    assert "job:f" not in found(known([OTHER, first, replace(after, awaits=("f",))], [HALF]), "a")
    blocked = found(known([BUSY, job("a", sure(100, gpus=2))], [FULL]), "a")
    assert blocked["job:r"].forecast.start.value == 0.0


def test_the_last_running_job_of_an_array_that_a_job_comes_after_is_named() -> None:
    after = replace(job("a", sure(100)), awaits=("x",))
    last = replace(OTHER, array="x")
    assert found(known([last, after], [HALF]), "a")["job:r"].sooner_s == 900.0
    more = job("more", sure(2000), at=-1.0, array="x")
    assert "job:r" not in found(known([last, more, after], [HALF]), "a")


def test_a_time_to_begin_that_is_to_come_is_named() -> None:
    later = job("a", sure(100), begins_at=500.0)
    one = found(known([later], [HALF]), "a")["begin:a"]
    assert (one.forecast.start.value, one.sooner_s, one.change) == (0.0, 500.0, {})
    past = job("a", sure(100), begins_at=0.0)
    assert found(known([past], [HALF]), "a") == {}


def test_a_job_that_uses_up_a_limit_is_named_although_gpus_are_idle() -> None:
    mine = replace(job("a", sure(100)), team="t", user="u")
    others = (replace(OTHER, team="x"), replace(running("s", sure(900), ("n1", 0), since=0.0), team="t"))
    nodes = [NodeInfo(id=name, gpu_model="A100", total=2, free=(1,)) for name in ("n0", "n1")]
    quota = Limits(quotas=(Quota(team="t", guaranteed=1, borrow_limit=0),))
    changes = found(known([*others, mine], nodes, limits=quota), "a")
    assert (changes["job:s"].forecast.start.value, "job:r" in changes) == (0.0, False)


def test_a_time_limit_is_offered_where_the_job_most_likely_ends_within_it() -> None:
    shut = Window(closes_at=1690.0, ends_at=90_000.0, nodes=frozenset({"n0"}), in_words="Closed.")
    soon, ran = replace(shut, closes_at=1500.0), OpenOptions(ran_s=60.0)
    unsure = replace(sure(1000), duration_s=Interval(1000, 800, 1700))
    mine = replace(job("a", unsure), borrows=False)
    one = found(known([mine], [HALF], windows=(shut,)), "a", ran)["limit:1440"]
    assert (one.forecast.start.value, one.change) == (0.0, {"max_run_s": 1440})
    assert 0 < one.unfinished <= 0.25
    assert not any(name.startswith("limit") for name in found(known([mine], [HALF], windows=(soon,)), "a"))
    surer = replace(mine, options=(sure(1000),))
    assert found(known([surer], [HALF], windows=(shut,)), "a") == {}


def test_a_job_of_unknown_length_passes_others_with_a_time_limit() -> None:
    """EASY lets nobody pass whose end is unknown."""
    head, mine = job("h", sure(600, gpus=2), at=1.0), job("a", option(duration_s=0.0), at=2.0)
    holder = running("r", sure(20_000), ("n0", 0), since=-100.0)
    changes = found(known([holder, head, mine], [HALF], "easy"), "a")
    assert (changes["limit:14400"].forecast.start.value, changes["limit:14400"].delayed) == (0.0, 0.0)


def test_never_stopped_close_gpus_and_deadlines_are_looked_at() -> None:
    mine = replace(job("a", sure(100)), team="t", borrows=False, preemptible=False)
    quota = Limits(quotas=(Quota(team="t", guaranteed=0),))
    one = found(known([mine], [HALF], limits=quota), "a")["stoppable:a"]
    assert (one.forecast.start.value, one.change) == (0.0, {"preemptible": True})
    apart = replace(HALF, total=3, free=(1, 2), sites=(GpuSite(0, 0, 0), GpuSite(0, 0, 1), GpuSite(1, 1, 2)))
    asks = replace(job("a", sure(100, gpus=2)), topology=Topology.GUARANTEED, level=TopologyLevel.NUMA)
    close = found(known([OTHER, asks], [apart]), "a")["close:numa"]
    assert (close.forecast.start.value, close.sooner_s) == (0.0, 900.0)
    assert close.change == {"topology": "best_effort", "topology_level": "numa"}
    slow, due = sure(1100, model="L4"), job("a", sure(600, gpus=2), due_at=700.0)
    at = least_later_deadline(0.0, due.options, (*due.options, slow))
    assert at == 1440.0
    later = OpenOptions(later=LaterDeadline(at, (*due.options, slow)))
    changes = found(known([BUSY, due], [FULL, node("n1", 1, model="L4")]), "a", later)
    assert changes["deadline:1970-01-01T00:24:00+00:00"].forecast.start.value == 0.0


def test_a_larger_budget_and_another_goal_allow_more_places() -> None:
    idle = node("n1", 1, model="H100")
    dear = replace(sure(80, model="H100"), cost=Interval(9.0))
    cheap = replace(sure(100), cost=Interval(1.0))
    busy = NodeInfo(id="n0", gpu_model="A100", total=1, free=())
    holder = running("r", sure(1000), ("n0", 0), since=-100.0)
    mine = replace(job("a", cheap), budget=2.0)
    one = found(known([holder, mine], [busy, idle]), "a", OpenOptions(anywhere=(dear, cheap)))["budget:9.09"]
    assert (one.change, one.forecast.start.value) == ({"budget": 9.09}, 0.0)
    cheapest = replace(job("a", cheap, dear), goal=Goal.CHEAPEST)
    assert found(known([holder, cheapest], [busy, idle]), "a")["goal:fastest"].change == {"goal": "fastest"}


def test_what_no_node_can_run_is_mended() -> None:
    mine = replace(job("a"), options=())
    options = OpenOptions(instead={"number_gpus": 1}, mended=(sure(100),))
    one = found(known([mine], [HALF]), "a", options)["fixed:number_gpus"]
    assert (one.sooner_s, one.change) == (None, {"params": {"number_gpus": 1}})


def test_nothing_is_offered_that_does_not_help() -> None:
    assert found(known([job("a", sure(100))], [HALF]), "a") == {}
    slower = OpenOptions(anywhere=(sure(600, gpus=2), sure(700, gpus=2, model="L4")))
    small = NodeInfo(id="n1", gpu_model="L4", total=2, free=(0,))
    later = running("s", sure(5000), ("n1", 1), since=-100.0)
    given = known([BUSY, later, job("a", sure(600, gpus=2))], [FULL, small])
    assert "placement:L4:1x2" not in found(given, "a", slower)


def test_they_are_bounded_however_much_there_is() -> None:
    jobs = [running(f"r{n:03}", sure(1000 + n), (f"n{n:03}", 0), since=-9.0) for n in range(200)]
    nodes = [NodeInfo(id=f"n{n:03}", gpu_model="A100", total=1, free=()) for n in range(200)]
    windows = tuple(
        Window(closes_at=9.0, ends_at=10.0, nodes=frozenset({f"n{n:03}"}), in_words=f"{n}") for n in range(50)
    )
    options = OpenOptions(anywhere=tuple(sure(100.0 + n, gpus=n) for n in range(1, 60)))
    mine = job("a", sure(100))
    assert len(possible_changes(known([*jobs, mine], nodes, windows=windows), mine, options)) <= 25


def test_a_queue_that_was_not_played_to_the_start_makes_no_change_look_helpful() -> None:
    """Only as far as the play came is known that the job would not have started."""
    given = known([BUSY, job("a", sure(300, gpus=2), at=1.0), job("b", sure(50, gpus=2), at=2.0)], [FULL])
    waiting, calls = next(one for one in given.state.jobs if one.id == "b"), count()

    def share(_: int) -> Callable[[], bool]:
        """The first play of the queue as it is ends before its first decision."""
        return (lambda: False) if next(calls) == 0 else lambda: True

    possible = possible_changes(given, waiting, NOTHING)
    assert "high" in {tried.possible.subject for tried in try_changes(given, "b", possible).changes}
    tried = try_changes(given, "b", possible, share).changes
    assert "high" not in {one.possible.subject for one in tried}


def test_a_play_that_is_cut_short_promises_nothing() -> None:
    given = known([OTHER, job("a", sure(600, gpus=2))], [HALF])
    waiting = next(one for one in given.state.jobs if one.id == "a")
    options = OpenOptions(anywhere=(sure(600, gpus=2), sure(1100)))
    trials = try_changes(given, "a", possible_changes(given, waiting, options), lambda _: lambda: False)
    assert helpful_changes(trials, "a", given.now) == []
    assert helpful_changes(Trials(), "a", given.now) == []
