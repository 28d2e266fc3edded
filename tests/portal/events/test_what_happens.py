"""What leaves an event: changes of predictors, quotas, budgets, markets, arrays and jobs."""

from __future__ import annotations

import itertools
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from knowledge.models import PredictorVersion
from knowledge.predictors import model_registry
from portal.accounts.models import Team
from portal.clock import database_now
from portal.events.models import Event
from portal.events.types import EVERYBODY, EventType, subject
from scheduler.loop.sweeps import sweep
from scheduler.loop.tick import tick
from scheduler.models import Allocation, Job, JobArray
from scheduler.selectors.quotas import month_start
from scheduler.services.jobs.arrays import cancel_array, submit_array
from scheduler.services.jobs.transitions import move_job
from scheduler.services.jobs.verbs import cancel_job, pause_job, resume_job, return_to_queue
from scheduler.services.markets import provisioning
from scheduler.services.markets.markets import change_market, remove_market
from scheduler.services.quotas import LimitValues, QuotaValues, set_limit, set_quotas
from scheduler.states import JobState
from tests.harness import world
from tests.harness.fake_node import result, step
from tests.harness.sampling import mostly_on_demand
from tests.scheduler.markets import making

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).resolve().parents[3]


def told(*types: EventType) -> list[tuple[str, str, Any]]:
    found = Event.objects.filter(type__in=types) if types else Event.objects.all()
    return [(event.subject, event.type, event.data) for event in found]


def types_of(job: Job) -> list[str]:
    return [event.type.removeprefix("job.") for event in job.events]


def test_every_type_is_written_somewhere() -> None:
    sources = itertools.chain((ROOT / "scheduler").rglob("*.py"), (ROOT / "knowledge").rglob("*.py"))
    text = " ".join(file.read_text() for file in sources if "migrations" not in file.parts)
    written = set(re.findall(r"EventType\.([A-Z_0-9]+)", text))
    assert {type.name for type in EventType} == written


def test_the_life_of_a_job_is_told_by_its_types() -> None:
    node = world.fake_node(slots=1)
    job = world.placed_job(node)
    order = node.take_up()
    node.run(order, step(1))
    pause_job(job=job, actor=job.owner, now=database_now())
    node.end(order, "stopped", result())
    resume_job(job=job, actor=job.owner, now=database_now())
    tick()
    order = node.take_up()
    node.run(order, step(1))
    return_to_queue(job=job, actor=world.admin(), now=database_now())
    node.end(order, "stopped", result())
    tick()
    order = node.take_up()
    node.run(order, step(1))
    node.end(order, "killed")
    tick()
    order = node.take_up()
    node.run(order, step(1))
    node.end(order, "succeeded", step(2), result())
    taken_up = ["assigned", "starting", "started"]
    assert types_of(job) == [
        "submitted", *taken_up, "stopping", "paused", "resumed", *taken_up, "stopping", "preempted",
        *taken_up, "retrying", *taken_up, "succeeded",
    ]  # fmt: skip
    paused = job.events.get(type=EventType.JOB_PAUSED)
    assert (paused.old, paused.new, paused.data["outcome"]) == ("stopping", "paused", "stopped")


def test_predictors_that_answer_and_are_rolled_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_registry, "_require_usable", lambda _: None)
    now, admin = database_now(), world.admin()
    for number in (1, 2):
        version = PredictorVersion.objects.create(number=number, path="x", rows=1, created_at=now)
        model_registry.promote(version, now=now)
    model_registry.roll_back(actor=admin, now=now)
    assert told(EventType.PREDICTOR_PROMOTED, EventType.PREDICTOR_ROLLED_BACK) == [
        ("predictor-1", "predictor.promoted", {}),
        ("predictor-2", "predictor.promoted", {}),
        ("predictor-1", "predictor.rolled_back", {"undone": 2}),
    ]
    assert [event.actor for event in Event.objects.order_by("id")] == [None, None, admin]


def test_quotas_and_limits_that_change_and_no_others() -> None:
    team, person, admin, now = Team.objects.create(name="vision"), world.user(), world.admin(), database_now()
    for _ in range(2):
        quotas = [QuotaValues(guaranteed=2)]
        set_quotas(team=team, quotas=quotas, actor=admin, now=now)
    set_limit(user=person, values=LimitValues(gpus=3), actor=admin, now=now)
    set_limit(user=None, values=None, actor=admin, now=now)
    of_team, of_person, of_all = told(EventType.QUOTA_CHANGED)
    assert of_team[0] == subject("team", team.pk)
    assert of_team[2]["quotas"] == [
        {"gpu_model": "", "guaranteed": 2, "borrow_limit": None, "lending_limit": None}
    ]
    assert (of_person[0], of_person[2]["limits"]["gpus"]) == (subject("user", person.pk), 3)
    assert (of_all[0], of_all[2]) == (EVERYBODY, {"limits": None})


@pytest.mark.parametrize(("share", "expected"), [(0.79, 0), (0.81, 1), (1.5, 1)])
@pytest.mark.parametrize("own", mostly_on_demand([True, False], [True]))
def test_most_of_the_hours_of_a_month_are_told_once(share: float, expected: int, own: bool) -> None:
    job = world.placed_job(world.fake_node(slots=1))
    now = database_now()
    now = max(now, month_start(now) + timedelta(hours=2))
    Allocation.objects.update(allocated_at=now - timedelta(hours=1))
    values = LimitValues(gpu_hours_month=1 / share)
    set_limit(user=job.owner if own else None, values=values, actor=world.admin(), now=now)
    for _ in range(2):
        sweep(now)
    found = told(EventType.BUDGET_80)
    assert len(found) == expected
    for of, _, data in found:
        assert of == subject("user", job.owner_id)
        assert data["used_gpu_hours"] == pytest.approx(1.0)
        assert data["month"] == f"{month_start(now):%Y-%m}"


def test_markets_that_come_change_fail_and_go(settings: Any) -> None:
    settings.PROVISIONERS = {"cloud": ["/nowhere/rents"]}
    admin = world.admin()
    market = making.market(provisioner="cloud")
    number = subject("market", market.pk)
    for _ in range(2):
        provisioning.look_after_markets(now=database_now)
        market.quiet_until = None
        market.save(update_fields=["quiet_until"])
        market.refresh_from_db()
    change_market(market=market, changes={"max_nodes": 7}, actor=admin, now=database_now())
    remove_market(market=market, actor=admin, now=database_now())
    found = [event for event in Event.objects.order_by("id") if event.subject == number]
    words = ["added", "failed", "changed", "removed"]
    assert [event.words for event in found] == words, "the same trouble is told once"
    assert found[2].data == {"max_nodes": 7}
    assert "Its provisioner cloud failed" in found[1].reason


def test_an_array_ends_with_its_last_job() -> None:
    owner = world.user()
    array = submit_array(
        owner=owner, values=[{"seed": n} for n in range(3)], now=database_now(), model="builtin/tiny-llama",
        training_file=world.data_file(owner),
    )  # fmt: skip
    first = array.jobs.order_by("pk")[0]
    cancel_job(job=first, actor=owner, now=database_now())
    sweep(database_now())
    assert told(EventType.ARRAY_ENDED) == []
    second = array.jobs.exclude(pk=first.pk).order_by("pk")[0]
    move_job(job=second, to=JobState.FAILED, now=database_now())
    cancel_array(array=array, actor=owner, now=database_now())
    for _ in range(2):
        sweep(database_now())
    assert told(EventType.ARRAY_ENDED) == [
        (array.pk, "array.ended", {"succeeded": 0, "failed": 1, "cancelled": 2})
    ]
    assert JobArray.objects.get().ended_at is not None


def test_programs_get_the_types_of_a_job(client: Client) -> None:
    job = world.job()
    pause_job(job=job, actor=job.owner, now=database_now())
    client.force_login(job.owner)
    events = client.get(f"/api/jobs/{job.pk}/events/").json()["data"]
    assert [(event["number"], event["type"], event["new"]) for event in events] == [
        (1, "job.submitted", "queued"), (2, "job.paused", "paused"),
    ]  # fmt: skip
    later = client.get(f"/api/jobs/{job.pk}/events/?after=1").json()["data"]
    assert [event["number"] for event in later] == [2]
