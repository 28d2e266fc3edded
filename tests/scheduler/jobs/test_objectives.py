"""A goal, a deadline or a budget decides where the job runs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F

from knowledge.core.domain.option_json import read_option
from knowledge.core.domain.types import Goal, Option
from portal.accounts.models import User
from portal.clock import database_now
from scheduler.errors import BadParameters
from scheduler.loop import snapshot
from scheduler.loop.options.option_refresh import refresh_options
from scheduler.loop.tick import tick
from scheduler.models import Attempt, Job, Node
from tests.harness import world
from tests.harness.world import CHEAP, FAST

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner() -> User:
    """Someone whose cluster has a fast, dear GPU and a slow, cheap one."""
    world.fast_and_cheap_nodes()
    return world.user()


def ask(owner: User, **values: Any) -> Job:
    """A job whose batches are large enough for the GPU to matter more than its host."""
    params = {"max_steps": 2000, "tuning": "lora", "effective_batch_size": 256}
    return world.job(owner, model="llama3.2-1b", params=params, **values)


def predictions(owner: User) -> dict[str, Option]:
    """The best option on each GPU model."""
    options = [read_option(raw) for raw in ask(owner).options]
    Job.objects.all().delete()
    return {option.gpu_model: option for option in options}


def placed_on(job: Job) -> str:
    tick()
    return str(Attempt.objects.get(job=job).option["config"]["gpu_model"])


def test_the_goals_differ_where_speed_has_its_price(owner: User) -> None:
    of = predictions(owner)
    assert of[FAST].duration_s.value < of[CHEAP].duration_s.value / 1.3
    assert placed_on(ask(owner, goal=Goal.FASTEST)) == FAST
    assert placed_on(ask(owner, goal=Goal.CHEAPEST)) == CHEAP


def test_the_goal_deadline_takes_the_cheapest_that_ends_in_time(owner: User) -> None:
    of, now = predictions(owner), database_now()
    ample = now + timedelta(seconds=2 * of[CHEAP].duration_s.value)
    tight = now + timedelta(seconds=1.1 * of[FAST].duration_s.value)
    assert placed_on(ask(owner, goal=Goal.DEADLINE, deadline_at=tight)) == FAST
    assert placed_on(ask(owner, goal=Goal.DEADLINE, deadline_at=ample)) == CHEAP


def test_the_goal_budget_takes_the_fastest_that_costs_no_more(owner: User) -> None:
    of = predictions(owner)
    assert placed_on(ask(owner, goal=Goal.BUDGET, budget=2 * of[FAST].cost.value)) == FAST
    assert placed_on(ask(owner, goal=Goal.BUDGET, budget=2 * of[CHEAP].cost.value)) == CHEAP


def test_limits_come_before_every_goal(owner: User) -> None:
    of = predictions(owner)
    job = ask(owner, goal=Goal.FASTEST, budget=2 * of[CHEAP].cost.value)
    assert job.promise is not None
    assert job.promise["config"]["gpu_model"] == CHEAP
    assert placed_on(job) == CHEAP


def test_a_deadline_that_comes_nearer_while_the_job_waits_lets_it_take_the_dearer_gpu(owner: User) -> None:
    ample = database_now() + timedelta(seconds=2 * predictions(owner)[CHEAP].duration_s.value)
    Node.objects.update(state="draining")
    job = ask(owner, goal=Goal.DEADLINE, deadline_at=ample)
    tick()
    Job.objects.update(deadline_at=F("deadline_at") - (ample - database_now()) + timedelta(minutes=1))
    Node.objects.update(state="ready")
    assert placed_on(job) == FAST


def test_limits_that_nothing_keeps_leave_the_nearest_option_and_say_so(owner: User) -> None:
    job = ask(owner, goal=Goal.CHEAPEST, deadline_at=database_now() + timedelta(seconds=1))
    (note,) = (note for note in job.notes if "No option meets the limits" in note)
    assert "more than the deadline leaves, and costs" in note
    (seen,) = snapshot.take_snapshot({}, database_now()).jobs
    assert [option.gpu_model for option in seen.options] == [FAST]


def test_options_that_are_refreshed_keep_the_limits(owner: User) -> None:
    tight = database_now() + timedelta(seconds=1.1 * predictions(owner)[FAST].duration_s.value)
    job = ask(owner, goal=Goal.DEADLINE, deadline_at=tight)
    Job.objects.update(options_for="other nodes", options=[])
    assert refresh_options() == 1
    job.refresh_from_db()
    assert job.options[0]["config"]["gpu_model"] == FAST


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"goal": "best"}, "goal"),
        ({"goal": Goal.DEADLINE}, "deadline_at"),
        ({"goal": Goal.BUDGET}, "budget"),
        ({"budget": 0.0}, "budget"),
        ({"budget": float("nan")}, "budget"),
    ],
)
def test_an_aim_that_is_not_whole_is_refused_by_name(values: dict[str, Any], field: str) -> None:
    with pytest.raises(BadParameters) as refused:
        world.job(**values)
    assert list(refused.value.fields) == [field]
