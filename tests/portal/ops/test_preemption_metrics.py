"""Monitors count stops by policy and reason, and the GPU-seconds that they cost."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from portal.accounts.models import Team, User
from portal.clock import database_now
from scheduler.loop.tick import tick
from scheduler.models import Allocation, Attempt, Job, PendingStart, Preemption
from scheduler.services.jobs.verbs import return_to_queue
from scheduler.services.quotas import QuotaValues, set_quotas
from tests.harness import world
from tests.harness.fake_node import step
from tests.harness.invariants import assert_sound
from tests.harness.preempting import LONG_ENOUGH_S, preempting, running

HALF_A_MINUTE = timedelta(seconds=30)
STOPS, LOST = "foretune_preemptions_total", "foretune_preempted_gpu_seconds_total"


def counted(client: Client, name: str = STOPS) -> dict[tuple[str, str], float]:
    """By policy and reason."""
    families = text_string_to_metric_families(client.get("/metrics").content.decode())
    return {
        (sample.labels["policy"], sample.labels["reason"]): sample.value
        for family in families
        for sample in family.samples
        if sample.name == name
    }


@pytest.mark.parametrize(
    ("policy", "victim_class", "reason"),
    [("las", 0, "rank"), ("las", -1, "class"), ("topology", -1, "class")],
)
def test_a_stop_for_a_job_that_goes_first_counts_under_its_policy(
    client: Client, db: None, settings: Any, policy: str, victim_class: int, reason: str
) -> None:
    settings.POLICY = policy
    assert counted(client) == {}
    turn = preempting(victim_class=victim_class)
    assert counted(client) == {(policy, reason): 1}
    assert turn.victim.events.get(new="stopping").data == {"stop_reason": reason}
    assert turn.victim.decisions.get(verb="preempt").code == reason
    turn.node.end(turn.order, "stopped")
    settings.POLICY = "fifo"  # counted under the policy that was in force
    assert counted(client) == {(policy, reason): 1}
    assert_sound()


def test_work_after_the_last_checkpoint_and_the_next_start_up_are_lost(
    client: Client, db: None, settings: Any
) -> None:
    settings.POLICY = "las"
    turn = preempting(slots=2, gpus=2)
    key = ("las", "rank")
    assert counted(client, LOST) == {key: 0}
    turn.node.end(turn.order, "stopped")  # it saved nothing, so that all its time is lost
    work = counted(client, LOST)[key]
    assert work >= 2 * LONG_ENOUGH_S
    tick()
    assert counted(client, LOST)[key] == pytest.approx(work + idle_gpu_s(turn.taker))
    work = counted(client, LOST)[key]
    turn.node.end(turn.node.take_up(), "succeeded")
    tick()
    again = turn.node.take_up()
    world.age_starts(50.0)
    assert counted(client, LOST)[key] == work
    turn.node.run(again, step(1))
    both = counted(client, LOST)[key]
    assert work + 2 * 50.0 <= both < work + 2 * 100.0
    assert counted(client) == {key: 1}
    assert_sound()


def idle_gpu_s(taker: Job) -> float:
    """For how long the GPUs of a job's first attempt lay idle before it, all together."""
    gpus = Allocation.objects.filter(claim__attempt__job=taker).values("gpu")
    before = Allocation.objects.filter(gpu__in=gpus).exclude(claim__attempt__job=taker)
    began_at = Attempt.objects.get(job=taker).created_at
    return sum((began_at - one.released_at).total_seconds() for one in before if one.released_at)


def test_gpus_that_lie_idle_for_a_job_that_waits_for_more_are_lost(
    client: Client, db: None, settings: Any
) -> None:
    """Until it starts, or until they are no longer kept for it."""
    settings.POLICY, key = "las", ("las", "rank")
    node = world.fake_node(slots=2)
    (_, first), (_, second) = running(node, number_gpus=1), running(node, number_gpus=1)
    taker = world.job(params={"number_gpus": 2, "max_steps": 10_000})
    tick()
    node.end(first, "succeeded")
    Allocation.objects.filter(released_at__isnull=False).update(released_at=F("released_at") - HALF_A_MINUTE)
    PendingStart.objects.update(made_at=F("made_at") - 2 * HALF_A_MINUTE)
    node.end(second, "succeeded")
    assert counted(client, LOST)[key] == 0
    tick()
    assert counted(client, LOST)[key] == pytest.approx(idle_gpu_s(taker))
    assert idle_gpu_s(taker) >= HALF_A_MINUTE.total_seconds()
    assert_sound()


def test_gpus_that_lay_idle_for_nothing_are_lost_as_well(client: Client, db: None, settings: Any) -> None:
    """One was free from the beginning, and is lost to the stop that frees the other."""
    settings.POLICY, key = "las", ("las", "rank")
    node = world.fake_node(slots=2)
    running(node, number_gpus=1)
    taker = world.job(params={"number_gpus": 2, "max_steps": 10_000})
    tick()
    PendingStart.objects.update(made_at=F("made_at") - HALF_A_MINUTE, expires_at=F("made_at") - HALF_A_MINUTE)
    made_at = PendingStart.objects.get().made_at
    tick()
    over_at = taker.events.get(type="job.reservation_over").at
    assert counted(client, LOST)[key] == pytest.approx((over_at - made_at).total_seconds())


def test_nothing_is_lost_where_the_stopped_job_ends_by_itself(
    client: Client, db: None, settings: Any
) -> None:
    settings.POLICY = "las"
    turn = preempting()
    turn.node.end(turn.order, "succeeded")
    assert (counted(client), counted(client, LOST)) == ({("las", "rank"): 1}, {("las", "rank"): 0})


def test_what_is_guaranteed_to_a_team_counts_apart(
    browser: Client, client: Client, person: User, settings: Any
) -> None:
    settings.POLICY = "srtf"  # ranks the shorter one first, which runs
    team, node = Team.objects.create(name="owners"), world.fake_node(slots=1)
    quotas = [QuotaValues(gpu_model="cpu", guaranteed=1)]
    set_quotas(team=team, quotas=quotas, actor=world.admin(), now=database_now())
    victim, _ = running(node, person)
    mine = world.job(world.user(), team=team, params={"max_steps": 300_000})
    tick()
    assert counted(client) == {("srtf", "guarantee"): 1}, mine.wait_text
    shown = browser.get(f"/jobs/{victim.pk}/").content.decode()
    assert "whose team is guaranteed these GPUs." in shown
    assert_sound()


def test_an_administrators_stop_counts_apart(client: Client, db: None, settings: Any) -> None:
    job, _ = running(world.fake_node(slots=1))
    return_to_queue(job=job, actor=world.admin(), now=database_now())
    assert counted(client) == {(settings.POLICY, "administrator"): 1}
    assert job.events.get(new="stopping").data == {"stop_reason": "administrator"}
    assert_sound()


def test_counts_never_fall_and_take_one_query(
    client: Client, db: None, settings: Any, django_assert_max_num_queries: Any
) -> None:
    settings.POLICY = "las"
    for number in range(1, 4):
        preempting()
        assert sum(counted(client).values()) == number == Preemption.objects.count()
    with django_assert_max_num_queries(20) as captured:
        client.get("/metrics")
    assert sum("scheduler_preemption" in query["sql"] for query in captured) == 1
