"""A simulation of the portal's own past.

It is requested, played piece by piece, and survives dying workers.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from portal.accounts.models import AuditEntry
from portal.clock import database_now
from scheduler.errors import BadParameters, Conflict
from scheduler.loop.sweeps import sweep
from scheduler.models import Gpu, Simulation
from scheduler.selectors.simulations import present_cluster
from scheduler.services.simulations import play, request
from scheduler.services.simulations.play import play_next
from scheduler.services.simulations.request import SimulationRequest, request_simulation
from scheduler.simulator.inputs.trace import Refusal
from scheduler.states import SimulationState
from tests.harness import world
from tests.harness.fake_node import FakeNode
from tests.scheduler.analysis.past import past

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]


def ask(*policies: str, **values: object) -> Simulation:
    question = SimulationRequest(policies=policies, cluster="cpu:1x1", **values)  # type: ignore[arg-type]
    return request_simulation(question=question, actor=world.admin(), now=database_now())


def test_policies_are_played_one_by_one_and_compared_on_the_same_jobs(node: FakeNode) -> None:
    past(node, [600, 300, 30], ended=database_now())
    made = ask("fifo", "sjf")
    assert (made.state, made.cluster) == (SimulationState.QUEUED, "cpu:1x1")
    assert AuditEntry.objects.get(action="simulation requested").target == made.pk
    play_next(now=database_now)
    made.refresh_from_db()
    assert (made.state, made.progress, len(made.results)) == (SimulationState.RUNNING, 0.5, 1)
    past(node, [10], ended=database_now())  # ended after the question: no part of the comparison
    play_next(now=database_now)
    made.refresh_from_db()
    assert (made.state, made.progress) == (SimulationState.DONE, 1.0)
    fifo, sjf = made.results
    # one slot, arrivals at 0, 60, 120 s: FIFO ends at 600, 900, 930, SJF at 600, 930, 630
    assert fifo["jct_mean_s"] == pytest.approx((600 + 840 + 810) / 3)
    assert sjf["jct_mean_s"] == pytest.approx((600 + 870 + 510) / 3)
    assert [one["jobs"] for one in made.results] == [3, 3]
    assert play_next(now=database_now) is None


def test_the_present_nodes_are_the_cluster_unless_another_is_named(node: FakeNode) -> None:
    past(node, [60, 60, 60], ended=database_now())
    question = SimulationRequest(policies=["fifo"])
    assert request_simulation(question=question, actor=world.admin(), now=database_now()).cluster == "cpu:1x2"
    world.fake_node(slots=4)
    assert present_cluster() == "cpu:1x4,cpu:1x2"


def test_a_dead_workers_policy_is_played_again_and_given_up_after_three_tries(node: FakeNode) -> None:
    past(node, [60, 60, 60], ended=database_now())
    made = ask("fifo")
    for _ in range(play.TRIES):
        assert play.take_lease(database_now()), "the worker dies with its lease"
        assert play_next(now=database_now) is None, "the lease is respected while it lasts"
        Simulation.objects.update(leased_until=database_now() - timedelta(seconds=1))
    play_next(now=database_now)
    made.refresh_from_db()
    assert made.state == SimulationState.FAILED
    assert made.message.startswith("Its worker ended 3 times")


def test_a_worker_that_was_replaced_writes_nothing(node: FakeNode) -> None:
    past(node, [60, 60, 60], ended=database_now())
    ask("fifo")
    old = play.take_lease(database_now())
    assert old
    Simulation.objects.update(leased_until=None)
    play_next(now=database_now)
    with pytest.raises(play.LeaseLost):
        play.finish_policy(old, {"policy": "late"}, [], now=database_now())
    assert [one["policy"] for one in Simulation.objects.get().results] == ["fifo"]


def test_one_simulation_runs_at_a_time_and_the_older_one_is_ended_first(node: FakeNode) -> None:
    past(node, [60, 60, 60], ended=database_now())
    first, second = ask("fifo", "sjf"), ask("fifo")
    assert play.take_lease(database_now())
    assert play_next(now=database_now) is None
    Simulation.objects.update(leased_until=None)
    for _ in range(3):
        play_next(now=database_now)
    ended = Simulation.objects.order_by("ended_at").values_list("pk", "state")
    assert list(ended) == [(first.pk, "done"), (second.pk, "done")]


def test_a_policy_that_takes_too_long_ends_the_simulation_with_words(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    past(node, [60, 60, 60], ended=database_now())
    made = ask("fifo")
    monkeypatch.setattr(play, "LIMIT_S", 0.0)
    play_next(now=database_now)
    made.refresh_from_db()
    assert (made.state, "took longer than" in made.message) == (SimulationState.FAILED, True)


def test_jobs_that_fit_nowhere_fail_the_simulation_with_words(node: FakeNode) -> None:
    past(node, [60, 60, 60], ended=database_now())
    made = ask("fifo")
    Simulation.objects.update(cluster="a100:1x8")  # as if the nodes with such names had gone since
    play_next(now=database_now)
    made.refresh_from_db()
    assert made.state == SimulationState.FAILED
    assert "needs 1 cpu GPU on 1 node;" in made.message
    assert "the cluster offers 1 × 8 a100" in made.message


def test_gpu_models_are_named_as_people_do_or_refused_with_those_there_are(node: FakeNode) -> None:
    past(node, [60, 60, 60], ended=database_now())
    Gpu.objects.filter(node_id=node.node_id, index=1).update(model="A100-SXM4-80GB")
    for given in ("CPU:1x1,a100:2x8@1.5", "cpu:1x1,a100_sxm4-80gb:2x8@1.5"):
        question = SimulationRequest(policies=["fifo"], cluster=given)
        made = request_simulation(question=question, actor=world.admin(), now=database_now())
        assert made.cluster == "cpu:1x1,A100-SXM4-80GB:2x8@1.5"
    question = SimulationRequest(policies=["fifo"], cluster="l40s:4x4")
    with pytest.raises(BadParameters) as refused:
        request_simulation(question=question, actor=world.admin(), now=database_now())
    assert refused.value.fields["cluster"] == (
        "l40s is not a GPU model of these jobs; they have: A100-SXM4-80GB, cpu"
    )


def test_jobs_that_were_left_out_are_counted(node: FakeNode) -> None:
    jobs = past(node, [60, 60, 60], ended=database_now())
    made = ask("fifo")
    play.take_lease(database_now())
    made.refresh_from_db()
    refused = [Refusal(1, jobs[0].pk, "needs more")] * (play.SHOWN_REFUSALS + 7)
    play.finish_policy(made, {"policy": "fifo", "refused": len(refused)}, refused, now=database_now())
    made.refresh_from_db()
    assert (made.left_out, len(made.refusals)) == (27, 20)


@pytest.mark.parametrize(
    ("field", "values", "says"),
    [
        ("policies", {"policies": []}, "name 1 to"),
        ("policies", {"policies": ["fifo", "fifo"]}, "once"),
        ("policies", {"policies": ["best"]}, "'best' is no policy"),
        ("knowledge", {"knowledge": "all"}, "must be one of default"),
        ("error", {"error": float("nan")}, "must be between"),
        ("seed", {"seed": -1}, "must be between"),
        ("cluster", {"cluster": "eight"}, "is not MODEL:NODESxGPUS"),
        ("cluster", {"cluster": "a100:9999x9999"}, "at most"),
        ("cluster", {}, "no node is registered"),
        ("since", {}, "only 0 jobs of this range ran to the end; a simulation needs 3"),
    ],
)
def test_a_bad_question_is_refused_by_field(field: str, values: dict[str, object], says: str) -> None:
    question = SimulationRequest(**{"policies": ["fifo"], **values})  # type: ignore[arg-type]
    with pytest.raises(BadParameters) as refused:
        request_simulation(question=question, actor=world.admin(), now=database_now())
    assert says in refused.value.fields[field]
    assert not Simulation.objects.exists()


def test_only_so_many_simulations_wait(node: FakeNode) -> None:
    past(node, [60, 60, 60], ended=database_now())
    for _ in range(request.MAX_OPEN):
        ask("fifo")
    with pytest.raises(Conflict, match="ask again when one has"):
        ask("fifo")


def test_the_sweep_asks_again_for_simulations_that_nobody_plays(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    past(node, [60, 60, 60], ended=database_now())
    hints: list[str] = []
    monkeypatch.setattr(request.hints, "simulate", lambda: hints.append("simulate"))
    sweep(database_now())
    assert hints == []
    made = ask("fifo")
    hints.clear()
    sweep(database_now())
    assert hints == ["simulate"]
    assert play.take_lease(database_now())
    sweep(database_now())
    assert hints == ["simulate"], "somebody plays it"
    sweep(made.requested_at + timedelta(hours=1))
    assert len(hints) == 2, "the worker's lease ran out"
