"""A job changed in place: over REST, on its page, and beside a tick that has decided already."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from portal.accounts.models import AuditEntry, User
from portal.clock import database_now
from scheduler.core.policies import POLICIES
from scheduler.core.types import Start
from scheduler.loop import leadership
from scheduler.loop.apply import apply
from scheduler.loop.snapshot import take_snapshot
from scheduler.loop.tick import tick
from scheduler.models import Job
from scheduler.selectors.figures.promise import is_renewed
from scheduler.services.jobs.change import change_job
from scheduler.services.jobs.verbs import pause_job, resume_job
from tests.harness import world
from tests.harness.world import CHEAP, FAST
from tests.portal.conftest import token_client

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner() -> User:
    """Someone whose cluster has a fast, dear GPU and a slow, cheap one."""
    world.fast_and_cheap_nodes()
    return world.user("ada")


@pytest.fixture
def job(owner: User) -> Job:
    fixed = {"max_steps": 2000, "tuning": "lora"}
    return world.job(owner, model="llama3.2-1b", params=fixed, goal="fastest")


@pytest.fixture
def api(owner: User) -> APIClient:
    return token_client(owner)


def models_of(job: Job) -> set[str]:
    job.refresh_from_db()
    return {option["config"]["gpu_model"] for option in job.options}


def change(api: APIClient, job: Job, **values: Any) -> Any:
    return api.patch(f"/api/jobs/{job.pk}/", values, format="json")


def test_a_waiting_job_is_promised_anew_and_learns_the_same(api: APIClient, job: Job) -> None:
    learnt, version = job.params, job.version
    in_two_days = database_now() + timedelta(days=2)
    answer = change(
        api, job, version=version, goal="cheapest", deadline_at=in_two_days.isoformat(), budget=70,
        params={"gpu_model": "l4"},
    )  # fmt: skip
    assert answer.status_code == 200, answer.json()
    assert (answer.json()["goal"], answer.json()["budget"], answer.json()["version"]) == ("cheapest", 70, 2)
    assert models_of(job) == {CHEAP}
    assert is_renewed(job)
    assert (job.params, job.fixed["gpu_model"]) == (learnt, CHEAP)
    assert (job.promised and job.promised.gpu_model, job.chosen["gpu_model"]["by"]) == (CHEAP, "user")
    event = job.events.get(type="job.promise_changed")
    assert event.data["params.gpu_model"] == [None, CHEAP]
    assert event.reason.startswith("Its goal is cheapest now. Its deadline was changed.")
    assert AuditEntry.objects.get(action="job changed", target=job.pk).data == event.data
    opened = change(api, job, params={"gpu_model": None}, deadline_at=None, budget=None).json()
    assert (opened["deadline_at"], opened["budget"]) == (None, None)
    assert models_of(job) == {FAST, CHEAP}
    assert opened["params"]["gpu_model"]["by"] == "recommended"


def test_what_is_learnt_may_change_before_the_first_attempt_only(api: APIClient, job: Job) -> None:
    assert change(api, job, params={"max_steps": 1000}).json()["params"]["max_steps"]["value"] == 1000
    assert tick().started == 1
    pause_job(job=job, actor=None, now=database_now())
    Job.objects.filter(pk=job.pk).update(state="paused", stop_for="")
    refused = change(api, job, params={"max_steps": 500, "gpu_model": CHEAP})
    assert refused.status_code == 409
    fields = refused.json()["error"]["fields"]
    assert list(fields) == ["params.max_steps"]
    assert "clone it with another value" in fields["params.max_steps"]
    job.events.filter(type="job.promise_changed").delete()
    assert change(api, job, params={"gpu_model": CHEAP}).status_code == 200
    assert not is_renewed(job), "its promise stays after its first attempt"
    assert models_of(job) == {CHEAP}
    assert job.binding is None
    assert job.promised
    assert job.promised.gpu_model == FAST


@pytest.mark.parametrize(
    ("asked", "field", "remedy"),
    [
        ({"params": {"number_gpus": 0}}, "params.number_gpus", "must be between 1 and"),
        ({"params": {"gpus": 2}}, "params.gpus", "known are tuning"),
        ({"params": {"gpu_model": "A1000"}}, "params.gpu_model", "A1000"),
        ({"deadline_at": "2020-01-01T00:00:00Z"}, "deadline_at", "must lie in the future"),
        ({"goal": "budget"}, "budget", "is needed for the goal budget"),
        ({"budget": 0}, "budget", "must be an amount above 0, at most 1,000,000,000,000"),
        ({"budget": -1}, "budget", "must be an amount above 0, at most 1,000,000,000,000"),
        ({"deadline_at": "9999-12-31T00:00:00Z"}, "deadline_at", "must lie within ten years from now"),
        ({"priority": "urgent", "goal": "cheapest"}, "priority", "may be normal at most"),
        ({"goal": "soon"}, "goal", "must be one of balanced"),
        ({"color": "red"}, "color", ""),
    ],
)
def test_a_value_that_cannot_be_is_named_and_nothing_is_written(
    api: APIClient, job: Job, asked: dict[str, Any], field: str, remedy: str
) -> None:
    refused = change(api, job, **asked)
    assert refused.status_code == (403 if field == "priority" else 400)
    assert remedy in refused.json()["error"]["fields"][field]
    assert list(job.events.values_list("type", flat=True)) == ["job.submitted"]
    assert Job.objects.get(pk=job.pk).fixed == job.fixed


def test_a_job_that_has_started_or_changed_is_a_conflict(api: APIClient, job: Job, owner: User) -> None:
    change_job(job=job, actor=owner, now=database_now(), version=job.version, goal="balanced")
    stale = change(api, job, version=job.version, goal="cheapest")
    assert (stale.status_code, stale.json()["error"]["code"]) == (409, "changed_meanwhile")
    assert stale.json()["error"]["fields"] == {"version": "is 2 now; look again, and then change it"}
    assert tick().started == 1
    late = change(api, job, goal="cheapest", priority="low").json()["error"]
    assert late["state"] == "queued"
    assert "it has just been given GPUs; pause it" in late["fields"]["goal"]
    assert Job.objects.get(pk=job.pk).priority == 0
    assert change(api, job, priority="low").status_code == 200


def test_nobody_else_changes_a_job(job: Job) -> None:
    assert change(token_client(world.user("eve")), job, goal="fastest").status_code == 404


def test_a_start_that_was_decided_before_the_change_is_not_carried_out(owner: User, job: Job) -> None:
    epoch, now = leadership.acquire(), database_now()
    assert epoch is not None
    state = take_snapshot({}, now)
    plan = POLICIES["fifo"].decide(state, now.timestamp())
    assert [action.option.gpu_model for action in plan.actions if isinstance(action, Start)] == [FAST]
    change_job(job=job, actor=owner, now=now, params={"gpu_model": CHEAP})
    assert apply(epoch, state, plan, "fifo", now).started == 0
    leadership.release(epoch)
    assert tick().started == 1
    assert job.attempts.get().promised.gpu_model == CHEAP


def test_a_paused_job_is_changed_and_goes_on_so(owner: User, job: Job) -> None:
    pause_job(job=job, actor=owner, now=database_now())
    change_job(job=job, actor=owner, now=database_now(), params={"gpu_model": CHEAP})
    resume_job(job=job, actor=owner, now=database_now())
    assert tick().started == 1
    assert job.attempts.get().promised.gpu_model == CHEAP


def test_the_page_changes_what_differs_and_names_what_is_wrong(client: Client, owner: User, job: Job) -> None:
    client.force_login(owner)
    page = f"/jobs/{job.pk}/change/"
    form = client.get(f"/jobs/{job.pk}/", {"tab": "change"}).context["form"]
    shown = {name: form[name].value() for name in form.fields if form[name].value() is not None}
    assert client.post(page, {**shown, "goal": "cheapest", "params-gpu_model": "L4"}).status_code == 302
    job.refresh_from_db()
    assert (job.goal, job.fixed["gpu_model"], job.fixed["max_steps"]) == ("cheapest", CHEAP, 2000)
    assert list(job.events.values_list("number", flat=True)) == [1, 2]
    late = client.post(page, {**shown, "goal": "fastest"}, follow=True).content.decode()
    assert "The job has changed since you looked" in late
    wrong = client.post(page, {"version": "2", "params-gpu_model": "A1000"})
    assert wrong.status_code == 400
    assert "change_params-gpu_model_error" in wrong.content.decode()
    assert tick().started == 1
    running = client.get(f"/jobs/{job.pk}/", {"tab": "change"}).content.decode()
    assert "Priority class" in running
    assert "Fixed values" not in running
