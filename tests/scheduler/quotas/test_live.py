"""Quotas, limits and classes of the live loop."""

from __future__ import annotations

from datetime import timedelta

import pytest

from portal.accounts.errors import NotAllowed
from portal.accounts.models import Membership, Team, User
from portal.clock import database_now
from scheduler.errors import BadParameters, IllegalTransition
from scheduler.loop.tick import tick
from scheduler.models import Allocation, Decision, Job, TeamQuota
from scheduler.selectors.decisions import replay_decision
from scheduler.selectors.quotas import limits_in_force, month_start, used_this_month
from scheduler.services.jobs.change import change_job
from scheduler.services.jobs.priorities import hold_job, release_job
from scheduler.services.jobs.verbs import cancel_job
from scheduler.services.policy import choose_policy
from scheduler.services.quotas import LimitValues, QuotaValues, put_quota, remove_quota, set_limit, set_quotas
from scheduler.states import PriorityClass, StopFor, WaitState
from tests.harness import world
from tests.harness.fake_node import step
from tests.harness.invariants import assert_sound
from tests.harness.preempting import LONG_ENOUGH_S, running

pytestmark = pytest.mark.django_db
LONG = {"max_steps": 20_000, "number_gpus": 1}
ONE = QuotaValues(gpu_model="cpu", guaranteed=1)


def team_of(*people: User, name: str = "vision") -> Team:
    team = Team.objects.create(name=name)
    Membership.objects.bulk_create(Membership(team=team, user=person) for person in people)
    return team


def guarantee(team: Team, *quotas: QuotaValues) -> None:
    set_quotas(team=team, quotas=list(quotas), actor=world.admin(), now=database_now())


def wait_of(job: Job) -> tuple[str, str]:
    job.refresh_from_db()
    return job.state, job.wait_code


def test_a_team_starts_what_its_quota_allows_and_a_change_counts_from_the_next_tick() -> None:
    world.fake_node(slots=4)
    ada = world.user()
    team = team_of(ada)
    guarantee(team, QuotaValues(gpu_model="cpu", guaranteed=1, borrow_limit=0))
    jobs = [world.job(ada, team=team) for _ in range(3)]
    assert tick().started == 1
    assert [wait_of(job)[1] for job in jobs] == ["", WaitState.QUOTA_TEAM, WaitState.QUOTA_TEAM]
    assert jobs[1].wait_text.startswith("Its team's jobs hold 1 CPU slot, and 1 is guaranteed.")
    put_quota(
        team=team, values=QuotaValues(gpu_model="cpu", guaranteed=2, borrow_limit=0),
        actor=world.admin(), now=database_now(),
    )  # fmt: skip
    assert tick().started == 1
    remove_quota(team=team, gpu_model="cpu", actor=world.admin(), now=database_now())
    assert tick().started == 1
    assert_sound()


def test_a_persons_limit_and_that_of_everybody() -> None:
    world.fake_node(slots=4)
    ada, bob = world.user("ada"), world.user("bob")
    set_limit(user=None, values=LimitValues(running_jobs=1), actor=world.admin(), now=database_now())
    set_limit(user=bob, values=LimitValues(gpus=2), actor=world.admin(), now=database_now())
    of_ada, of_bob = ([world.job(person) for _ in range(2)] for person in (ada, bob))
    assert tick().started == 3
    assert [wait_of(job)[1] for job in of_ada] == ["", WaitState.QUOTA_USER]
    assert [wait_of(job)[0] for job in of_bob] == ["assigned", "assigned"]


def test_gpu_hours_of_a_month_count_what_was_held_and_what_runs() -> None:
    world.fake_node(slots=4)
    ada = world.user()
    first = world.job(ada)
    tick()
    now = database_now()
    held = Allocation.objects.get()
    start = month_start(now)
    begun = max(now - timedelta(hours=2), start)
    Allocation.objects.filter(pk=held.pk).update(allocated_at=start - timedelta(days=3), released_at=None)
    assert used_this_month([ada.pk], now)[ada.pk] == pytest.approx((now - start).total_seconds())
    Allocation.objects.filter(pk=held.pk).update(allocated_at=begun)
    used_s = (now - begun).total_seconds()
    values = LimitValues(gpu_hours_month=used_s / 3600)
    set_limit(user=ada, values=values, actor=world.admin(), now=now)
    limits = limits_in_force({ada.pk}, now)
    assert limits.users[0].gpu_s_left == pytest.approx(0.0, abs=1e-6)
    second = world.job(ada)
    tick()
    assert wait_of(second) == ("queued", WaitState.HOURS_USER)
    assert wait_of(first)[0] == "assigned"


def test_a_guaranteed_owner_takes_back_what_was_lent_and_the_decision_is_made_again() -> None:
    node = world.fake_node(slots=2)
    choose_policy(name="srtf", actor=world.admin(), reason="", now=database_now())
    ada, bob = world.user(), world.user()
    vision, speech = team_of(ada), team_of(bob, name="speech")
    guarantee(vision, ONE)
    guarantee(speech, ONE)
    lent = [world.job(bob, team=speech, params=LONG) for _ in range(2)]
    assert tick().started == 2
    for order in [order for order in node.sync().claims if order.spec]:
        node.sync(node.say(order, "starting"))
        node.run(order)
    long_ago = database_now() - timedelta(minutes=10)
    Job.objects.filter(pk__in=[job.pk for job in lent]).update(first_started_at=long_ago)
    for number, job in enumerate(lent):
        job.attempts.update(created_at=long_ago + timedelta(minutes=number))
    mine = world.job(ada, team=vision, params=LONG)
    tick()
    for job in lent:
        job.refresh_from_db()
    assert [job.stop_for for job in lent] == ["", StopFor.PREEMPT]
    assert wait_of(mine) == ("queued", WaitState.PENDING)
    for row in Decision.objects.all():
        assert not replay_decision(row).differences
    assert_sound()


def test_nobody_borrows_what_a_stopped_job_of_the_owner_comes_back_to() -> None:
    choose_policy(name="las", actor=world.admin(), reason="", now=database_now())
    node, ada, bob = world.fake_node(slots=2), world.user("ada"), world.user("bob")
    team = team_of(ada)
    guarantee(team, QuotaValues(gpu_model="cpu", guaranteed=2))
    first = world.placed_job(node, owner=ada, team=team, params=LONG)
    order = node.take_up()
    node.run(order, step(1))
    borrower = world.placed_job(node, owner=bob, params=LONG)
    world.age_starts(LONG_ENOUGH_S, of=first)
    second = world.job(ada, team=team, params=LONG)
    assert tick().started == 0
    first.refresh_from_db()
    assert first.preempting
    node.end(node.take_up(), "error")
    later = world.job(bob, params=LONG)
    assert tick().started == 0
    assert wait_of(later) == ("queued", WaitState.QUOTA_TEAM)
    node.end(order, "stopped")
    assert tick().started == 2
    assert [wait_of(job)[0] for job in (first, second, borrower)] == ["assigned", "assigned", "failed"]


def test_an_urgent_job_takes_the_gpu_of_its_team_that_is_at_its_limit() -> None:
    """It waits for that one although another is free: both jobs at a time would exceed the limit."""
    node = world.fake_node(slots=2)
    choose_policy(name="las", actor=world.admin(), reason="", now=database_now())
    ada = world.admin()
    team = team_of(ada)
    guarantee(team, QuotaValues(gpu_model="cpu", guaranteed=1, borrow_limit=0))
    usual, order = running(node, ada)
    Job.objects.filter(pk=usual.pk).update(team=team)
    urgent = world.job(ada, team=team, priority=PriorityClass.URGENT, params=LONG)
    assert tick().started == 0
    usual.refresh_from_db()
    assert usual.stop_for == StopFor.PREEMPT
    assert wait_of(urgent) == ("queued", WaitState.PENDING)
    node.end(order, "stopped")
    assert tick().started == 1
    assert (wait_of(urgent)[0], wait_of(usual)) == ("assigned", ("queued", WaitState.QUOTA_TEAM))
    for row in Decision.objects.all():
        assert not replay_decision(row).differences
    assert_sound()


def test_higher_classes_go_first_and_a_class_needs_a_right() -> None:
    ada = world.user()
    with pytest.raises(BadParameters) as refused:
        world.job(ada, priority=PriorityClass.HIGH)
    assert "may be normal at most" in refused.value.fields["priority"]
    set_limit(
        user=ada, values=LimitValues(max_class=PriorityClass.HIGH), actor=world.admin(), now=database_now()
    )
    world.fake_node(slots=1)
    low, normal = world.job(ada, priority=PriorityClass.LOW), world.job(ada)
    high = world.job(ada, priority=PriorityClass.HIGH)
    tick()
    assert [wait_of(job)[0] for job in (low, normal, high)] == ["queued", "queued", "assigned"]


def test_a_job_can_be_changed_until_it_ends_by_those_who_answer_for_it() -> None:
    ada, bob = world.user(), world.user()
    team = team_of(ada, bob)
    job = world.job(ada, team=team)
    with pytest.raises(NotAllowed):
        change_job(job=job, actor=bob, now=database_now(), priority=PriorityClass.LOW)
    Membership.objects.filter(user=bob).update(role="lead")
    changed = change_job(
        job=job, actor=bob, now=database_now(), seen="queued", priority=PriorityClass.LOW, preemptible=False
    )
    assert (changed.priority, changed.preemptible, changed.version) == (PriorityClass.LOW, False, 2)
    event = changed.events.get(type="job.changed")
    assert event.data == {"priority": [0, -1], "preemptible": [True, False]}
    assert change_job(job=job, actor=ada, now=database_now(), priority=PriorityClass.LOW).version == 2
    with pytest.raises(IllegalTransition) as moved:
        change_job(job=job, actor=ada, now=database_now(), seen="running", priority=PriorityClass.NORMAL)
    assert moved.value.state == "queued"
    cancel_job(job=job, actor=ada, now=database_now())
    with pytest.raises(IllegalTransition):
        change_job(job=job, actor=ada, now=database_now(), priority=PriorityClass.NORMAL)


def test_an_administrator_holds_a_job_and_others_pass_it() -> None:
    world.fake_node(slots=1)
    ada, admin = world.user(), world.admin()
    first, second = world.job(ada), world.job(ada)
    with pytest.raises(NotAllowed):
        hold_job(job=first, actor=ada, now=database_now())
    hold_job(job=first, actor=admin, now=database_now(), note="Its data is being checked.")
    tick()
    assert wait_of(first) == ("queued", WaitState.HELD)
    assert first.wait_text == "An administrator holds it: Its data is being checked."
    assert wait_of(second)[0] == "assigned"
    cancel_job(job=second, actor=ada, now=database_now())
    release_job(job=first, actor=admin, now=database_now())
    world.fake_node(slots=1)
    assert tick().started == 1
    assert [event.type for event in first.events.order_by("number")][:3] == [
        "job.submitted",
        "job.held",
        "job.released",
    ]


BAD = {
    "negative": ([QuotaValues(guaranteed=-1)], "quotas.0.guaranteed"),
    "twice": ([ONE, ONE], "quotas.1.gpu_model"),
    "lends more than it has": ([QuotaValues(guaranteed=1, lending_limit=2)], "quotas.0.lending_limit"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_quota_names_its_field_and_changes_nothing(case: str) -> None:
    quotas, field = BAD[case]
    team = team_of()
    guarantee(team, ONE)
    with pytest.raises(BadParameters) as refused:
        guarantee(team, *quotas)
    assert list(refused.value.fields) == [field]
    assert TeamQuota.objects.get().until is None


def test_a_quota_that_changes_keeps_what_held_before() -> None:
    team = team_of()
    guarantee(team, ONE, QuotaValues(guaranteed=4))
    guarantee(team, ONE, QuotaValues(guaranteed=5))
    rows = [(row.gpu_model, row.guaranteed, row.until is None) for row in TeamQuota.objects.order_by("pk")]
    assert sorted(rows) == [("", 4, False), ("", 5, True), ("cpu", 1, True)]
