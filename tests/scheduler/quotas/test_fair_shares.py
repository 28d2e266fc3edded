"""Fair shares live in rows: no choice of a policy forgets what was used."""

from __future__ import annotations

from datetime import timedelta

import pytest

from portal.accounts.errors import NotAllowed
from portal.accounts.models import Team
from portal.clock import database_now
from scheduler.core.ordering.decayed_use import HALF_LIFE_S
from scheduler.errors import BadParameters
from scheduler.loop.snapshot import take_snapshot
from scheduler.loop.tick import tick
from scheduler.models import Decision, Epoch, FairShare, Job
from scheduler.selectors.cluster.fair_shares import share_of
from scheduler.selectors.decisions import replay_decision
from scheduler.services.fair_shares import set_weight
from scheduler.services.policy import choose_policy
from tests.harness import world
from tests.harness.fake_node import FakeNode
from tests.harness.invariants import assert_sound

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


def choose(name: str) -> None:
    choose_policy(name=name, actor=world.admin(), reason="", now=database_now())


def run_for(node: FakeNode, job: Job, seconds: float) -> None:
    """Let a job run on all slots of the node for so long, and end it."""
    tick()
    order = next(order for order in node.sync().claims if order.spec)
    node.sync(node.say(order, "starting"))
    world.age_starts(seconds, of=job)
    node.end(order, "succeeded")


def test_what_was_used_under_another_policy_counts_under_fair(node: FakeNode) -> None:
    """Ada ran for two hours under FIFO; under fair Bob goes first, although he came later."""
    ada, bob = world.user("ada"), world.user("bob")
    team = Team.objects.create(name="vision")
    choose("fifo")
    run_for(node, world.job(ada, team=team, params={"number_gpus": 2}), 7200)
    used = {row.user or row.team: row.used_gpu_s for row in FairShare.objects.all()}
    assert used == {ada: pytest.approx(14400, rel=0.02), team: pytest.approx(14400, rel=0.02)}
    choose("srtf")
    tick()
    choose("fair")
    first = world.job(ada, team=team, params={"number_gpus": 2})
    second = world.job(bob, params={"number_gpus": 2})
    tick()
    assert (world.state_of(first), world.state_of(second)) == ("queued", "assigned")
    state = take_snapshot({}, database_now())
    assert state.used is not None
    assert state.used[f"user {bob.pk}"] < 60 < state.used[f"team {team.pk}"]
    row = Decision.objects.latest("pk")
    assert not replay_decision(row).differences
    assert_sound()


def test_use_fades_and_what_is_held_counts_at_once(node: FakeNode) -> None:
    ada = world.user("ada")
    run_for(node, world.job(ada), 3600)
    before = share_of(ada, database_now()).used_gpu_s
    later = database_now() + timedelta(seconds=HALF_LIFE_S)
    assert share_of(ada, later).used_gpu_s == pytest.approx(before / 2, rel=1e-3)
    held = world.placed_job(node, owner=ada)
    world.age_starts(3600, of=held)
    held.attempts.get().claims.get().allocations.update(allocated_at=held.attempts.get().created_at)
    now = database_now()
    shown = share_of(ada, now).used_gpu_s
    assert shown == pytest.approx(2 * before, rel=0.02)
    assert take_snapshot({}, now).used == pytest.approx({f"user {ada.pk}": shown})


def test_who_weighs_more_is_served_more(node: FakeNode) -> None:
    ada, bob = world.user("ada"), world.user("bob")
    choose("fair")
    run_for(node, world.job(ada, params={"number_gpus": 2}), 3600)
    run_for(node, world.job(bob, params={"number_gpus": 2}), 3000)
    with pytest.raises(NotAllowed):
        set_weight(of=ada, weight=2.0, actor=ada, now=database_now())
    for wrong in (0.0, -1.0, float("nan"), float("inf"), 1e9):
        with pytest.raises(BadParameters):
            set_weight(of=ada, weight=wrong, actor=world.admin(), now=database_now())
    set_weight(of=ada, weight=2.0, actor=world.admin(), now=database_now())
    of_bob, of_ada = (world.job(person, params={"number_gpus": 2}) for person in (bob, ada))
    tick()
    assert (world.state_of(of_bob), world.state_of(of_ada)) == ("queued", "assigned")
    assert Epoch.objects.get().memory["fair"]["used"]
