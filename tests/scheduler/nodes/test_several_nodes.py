"""One attempt over several nodes: placed whole, told where to meet, ended as one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from knowledge.core.domain.option_json import read_option
from portal.clock import database_now
from scheduler.errors import CannotPlace
from scheduler.loop.options.option_refresh import refresh_options
from scheduler.loop.tick import tick
from scheduler.models import Attempt, Claim, Job, Node
from scheduler.selectors.checkpoints import resumable
from scheduler.services.jobs.starts import start_attempt
from scheduler.services.jobs.verbs import cancel_job
from scheduler.states import JobState, NodeState
from tests.harness import world
from tests.harness.fake_node import FakeNode, checkpoint, result, step
from trainer.protocol import ClaimOrder

pytestmark = pytest.mark.django_db
ADDRESS = "10.0.0.1:29500"
MEET = {"kind": "rendezvous", "body": {"address": ADDRESS}}
BEGUN = {"kind": "start", "body": {"steps_total": 10}}


@pytest.fixture(autouse=True)
def _two_nodes_at_most(settings: Any) -> None:
    settings.MAX_NODES_PER_JOB = 2


class Gang:
    """A job placed on two nodes of two slots. `first` has rank 0."""

    def __init__(self) -> None:
        nodes = [world.fake_node(), world.fake_node()]
        self.job = world.job(params={"number_nodes": 2})
        assert tick().started == 1
        ranks = dict(Claim.objects.values_list("node_id", "rank"))
        self.first, self.second = sorted(nodes, key=lambda node: ranks[node.node_id])
        self.orders = [node.take_up() for node in (self.first, self.second)]

    def run(self) -> None:
        for node, order in zip((self.first, self.second), self.orders, strict=True):
            node.run(order, BEGUN)

    @property
    def state(self) -> str:
        return world.state_of(self.job)


@pytest.fixture
def gang() -> Gang:
    return Gang()


def order_for(node: FakeNode, known: ClaimOrder) -> ClaimOrder:
    """The order for a claim now."""
    return next(order for order in node.sync().claims if order.claim == known.claim)


def test_a_gang_takes_equal_shares_of_its_nodes_or_nothing(gang: Gang) -> None:
    specs = [order.spec for order in gang.orders if order.spec]
    assert [(spec.rank, spec.nodes, spec.gpus) for spec in specs] == [(0, 2, (0, 1)), (1, 2, (0, 1))]
    assert world.open_allocations() == 4
    waiting = world.job(params={"number_nodes": 2})
    assert tick().started == 0
    waiting.refresh_from_db()
    assert waiting.wait_text.startswith("Needs 4 CPU slots on 2 nodes; 0 are free.")


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("most", "params", "why"),
    [
        (
            1,
            {"number_nodes": 2},
            "and you asked for 2; leave the number of nodes empty or set it to 1.",
        ),
        (3, {"number_nodes": 3}, "No 3 nodes of the same GPU model, price and network are registered"),
        (2, {"number_nodes": 2, "number_gpus": 8}, "cannot give 8 GPUs to one job on 2 nodes"),
        (2, {"number_nodes": 1, "number_gpus": 4}, "cannot give 4 GPUs to one job on a single node"),
    ],
)
def test_a_job_that_cannot_have_its_nodes_is_told_why(
    settings: Any, most: int, params: dict[str, int], why: str
) -> None:
    settings.MAX_NODES_PER_JOB = most
    world.fake_node()
    world.fake_node()
    assert why in world.job(params=params).notes[0]


def test_the_other_nodes_hear_where_the_first_one_waits(gang: Gang) -> None:
    assert order_for(gang.second, gang.orders[1]).rendezvous == ""
    gang.first.sync(gang.first.say(gang.orders[0], "starting", MEET))
    assert order_for(gang.second, gang.orders[1]).rendezvous == ADDRESS


@pytest.mark.one_database
@pytest.mark.parametrize("address", ["", "10.0.0.1", "10.0.0.1:x", "a b:1", 7])
def test_an_address_that_is_none_is_refused(gang: Gang, address: Any) -> None:
    said = gang.first.say(gang.orders[0], "starting", {"kind": "rendezvous", "body": {"address": address}})
    refused = gang.first.sync(said).claims[0]
    assert (refused.error, refused.rendezvous) == ("bad_report", "")
    assert "HOST:PORT" in refused.detail


def test_only_the_first_node_says_where_to_meet(gang: Gang) -> None:
    gang.second.sync(gang.second.say(gang.orders[1], "starting", MEET))
    assert order_for(gang.first, gang.orders[0]).rendezvous == ""


def test_it_runs_once_every_node_does_and_succeeds_once_every_node_has(gang: Gang) -> None:
    gang.first.run(gang.orders[0], BEGUN, step(1))
    assert gang.state == JobState.STARTING
    gang.second.run(gang.orders[1], BEGUN)
    assert gang.state == JobState.RUNNING
    gang.first.end(gang.orders[0], "succeeded", result())
    assert gang.state == JobState.RUNNING
    gang.second.end(gang.orders[1], "succeeded", result(tokens_per_s=1.0))
    assert gang.state == JobState.SUCCEEDED
    assert world.open_allocations() == 0
    assert gang.job.attempts.get().measured["tokens_per_s"] == 1000.0


def test_the_nodes_that_are_left_when_one_is_lost_stop_and_the_job_is_queued_again(gang: Gang) -> None:
    """L2, I5"""
    gang.first.sync(gang.first.say(gang.orders[0], "starting", MEET))
    gang.run()
    world.silence(gang.second, 100)
    assert tick().started == 0
    assert gang.state == JobState.QUEUED
    assert world.open_allocations() == 0
    assert gang.job.attempts.get().outcome == "lost"
    assert gang.first.sync().claims == ()
    stale = gang.first.run(gang.orders[0], step(1)).claims[0]
    assert (stale.want, stale.error) == ("stop", "stale_attempt")


def test_another_attempt_does_not_meet_where_the_earlier_one_did(gang: Gang) -> None:
    gang.first.sync(gang.first.say(gang.orders[0], "starting", MEET))
    for node, order in zip((gang.first, gang.second), gang.orders, strict=True):
        node.end(order, "lost")
    assert tick().started == 1
    again = gang.second.sync().claims[0]
    assert again.fence > gang.orders[1].fence
    assert again.rendezvous == ""


def test_a_bad_end_of_one_node_stops_the_others(gang: Gang) -> None:
    gang.run()
    gang.second.end(gang.orders[1], "killed", reason="by a signal")
    assert gang.state == JobState.RUNNING
    assert order_for(gang.first, gang.orders[0]).want == "stop"
    gang.first.end(gang.orders[0], "stopped")
    assert gang.state == JobState.QUEUED
    attempt = gang.job.attempts.get()
    assert attempt.outcome == "killed"
    assert attempt.reason.endswith(": by a signal"), "and names the node"


def test_the_node_that_only_missed_another_does_not_hide_why_that_one_ended(gang: Gang) -> None:
    gang.run()
    gang.first.end(gang.orders[0], "lost", reason="the connection broke")
    gang.second.end(gang.orders[1], "oom", reason="out of memory")
    attempt = gang.job.attempts.get()
    assert (attempt.outcome, gang.state) == ("oom", JobState.QUEUED)
    assert "out of memory" in attempt.reason


def test_a_cancel_reaches_all_nodes_and_what_never_ran_teaches_nothing(gang: Gang) -> None:
    gang.first.sync(gang.first.say(gang.orders[0], "starting", MEET))
    cancel_job(job=Job.objects.get(pk=gang.job.pk), actor=None, now=database_now())
    for node, order in zip((gang.first, gang.second), gang.orders, strict=True):
        assert order_for(node, order).want == "stop"
        node.end(order, "stopped")
    assert gang.state == JobState.CANCELLED
    assert not Claim.objects.filter(started=True).exists()


def test_a_checkpoint_on_one_nodes_disk_is_no_use_to_several(gang: Gang) -> None:
    gang.run()
    file = {"path": "weights.bin", "sha256": "0" * 64, "bytes": 1}
    gang.first.run(gang.orders[0], checkpoint(3, [file], stored="node"))
    assert gang.job.checkpoints.count() == 1
    assert resumable(gang.job) is None


def test_a_place_that_is_not_as_the_option_says_is_refused() -> None:
    nodes, job = [world.fake_node(), world.fake_node()], world.job(params={"number_gpus": 2})
    option = read_option(job.options[0])
    gpus = [(node.node_id, 0) for node in nodes]
    with pytest.raises(CannotPlace, match="equal shares"):
        start_attempt(job=job, option=option, gpus=gpus, now=database_now())


def test_a_node_that_goes_on_after_another_one_failed_is_given_up(gang: Gang) -> None:
    """L4, I5"""
    gang.run()
    gang.second.end(gang.orders[1], "killed", reason="by a signal")
    tick()
    assert gang.state == JobState.RUNNING
    Attempt.objects.update(pending_since=database_now() - timedelta(seconds=100))
    world.served_for_long()
    assert tick().started == 0
    attempt = gang.job.attempts.get()
    assert (attempt.outcome, gang.state) == ("killed", JobState.QUEUED)
    assert attempt.reason.endswith(": by a signal")
    states = dict(Node.objects.values_list("pk", "state"))
    assert states == {gang.first.node_id: NodeState.BLOCKED, gang.second.node_id: NodeState.READY}
    assert gang.first.run(gang.orders[0], step(1)).claims[0].error == "stale_attempt"
    gang.first.sync()
    assert tick().started == 1


@pytest.mark.parametrize("met", [True, False])
def test_nodes_that_do_not_find_each_other_are_named_with_the_remedy(gang: Gang, met: bool) -> None:
    names = dict(Node.objects.values_list("pk", "name"))
    first, second = names[gang.first.node_id], names[gang.second.node_id]
    if met:
        gang.first.sync(gang.first.say(gang.orders[0], "starting", MEET))
        gang.first.run(gang.orders[0], BEGUN)
    world.age_state(gang.job, 10_000)
    tick()
    attempt = gang.job.attempts.get(fence=1)
    assert attempt.outcome == "timeout"
    if met:
        assert f"No training yet on {second};" in attempt.reason
        assert f"to meet on {first} at {ADDRESS}" in attempt.reason
        assert "open all TCP ports" in attempt.reason
    else:
        assert f"{first} did not say where" in attempt.reason


def test_a_gang_that_lost_its_nodes_goes_on_in_another_shape() -> None:
    """A gang that lost its nodes goes on in another shape.

    Its checkpoint serves any number of processes; the amount of training was fixed at submission.
    """
    pair = [world.fake_node(), world.fake_node()]
    job = world.job(params={"number_gpus": 4})
    assert tick().started == 1
    first = min(pair, key=lambda node: node.node_id)
    orders = {node.node_id: node.take_up() for node in pair}
    for node in pair:
        node.run(orders[node.node_id], BEGUN)
    first.save_checkpoint(orders[first.node_id], 3)
    large = world.fake_node(slots=4)
    for node in pair:
        world.silence(node, 1000)
    assert tick().started == 0
    refresh_options()
    assert tick().started == 1
    spec = large.take_up().spec
    assert spec is not None
    assert spec.resume is not None
    assert (spec.nodes, len(spec.gpus), spec.resume.step) == (1, 4, 3)
    attempts = [attempt.promised.config for attempt in job.attempts.order_by("fence")]
    assert [config.number_nodes for config in attempts] == [2, 1]
    assert len({config.effective_batch_size for config in attempts}) == 1


def test_a_job_that_runs_again_prefers_what_it_ran_with(node: FakeNode) -> None:
    job = world.placed_job(node)
    world.fake_node(slots=4)
    order = node.take_up()
    node.run(order, step(1))
    node.end(order, "killed", reason="by a signal")
    refresh_options()
    assert tick().started == 1
    assert len({attempt.option["config"]["number_gpus"] for attempt in job.attempts.all()}) == 1
