"""The changes that help a waiting job: asked for, computed, shown and done."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from rest_framework.test import APIClient

from portal.accounts.models import Membership, Role, Team, User
from portal.clock import database_now
from scheduler.loop.predict.job_changes import find_next
from scheduler.loop.predict.start_forecasts import forecast_starts
from scheduler.loop.tick import tick
from scheduler.models import ChangeSearch, Job, Node
from scheduler.services.jobs.dependencies import After
from scheduler.services.jobs.priorities import hold_job
from scheduler.services.jobs.verbs import cancel_job
from scheduler.services.quotas import QuotaValues, set_quotas
from scheduler.services.windows import WindowValues, add_window
from tests.harness import world
from tests.harness.world import CHEAP, FAST
from tests.portal.conftest import token_client

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner() -> User:
    """Someone whose first job holds the fast GPU, while the slow one is idle."""
    world.fast_and_cheap_nodes()
    ada = world.user("ada")
    ask(ada)
    assert tick().started == 1
    return ada


def ask(
    owner: User, *, on: str = FAST, steps: int = 2000, goal: str = "fastest", batch: int = 8, **values: Any
) -> Job:
    """A job that is fixed to a GPU model, or to none; with small batches all GPUs wait for their hosts."""
    fixed = {"max_steps": steps, "tuning": "lora", "effective_batch_size": batch}
    fixed |= {"gpu_model": on} if on else {}
    return world.job(owner, model="llama3.2-1b", params=fixed, goal=goal, **values)


@pytest.fixture
def waits(owner: User) -> Job:
    job = ask(owner)
    tick()
    return job


@pytest.fixture
def api(owner: User) -> APIClient:
    return token_client(owner)


def offers(api: APIClient, job: Job) -> dict[str, Any]:
    """The answer once the worker has looked."""
    assert api.get(f"/api/jobs/{job.pk}/changes/").status_code == 200
    find_next(database_now())
    answer = api.get(f"/api/jobs/{job.pk}/changes/").json()
    assert not answer["computing"]
    return {one["text"]: one for one in answer["offers"]}


def test_idle_gpus_are_offered_and_taken_by_the_change(api: APIClient, waits: Job) -> None:
    response = api.get(f"/api/jobs/{waits.pk}/changes/").json()
    assert (response["computing"], response["offers"]) == (True, [])
    reported = offers(api, waits)
    one = reported[f"On 1 {CHEAP} GPU"]
    assert one["change"] == {"params": {"gpu_model": CHEAP, "number_gpus": 1, "number_nodes": 1}}
    assert (one["may"], one["kind"], one["delayed"]) == (True, "placement", 0)
    assert one["sooner_s"] > 0
    assert one["start_at"] < one["end_at"]
    assert one["cost"] > 0
    answer = api.patch(f"/api/jobs/{waits.pk}/", {"version": waits.version, **one["change"]}, format="json")
    assert answer.status_code == 200
    assert tick().started == 1
    assert waits.attempts.get().promised.gpu_model == CHEAP
    assert api.get(f"/api/jobs/{waits.pk}/changes/").json()["offers"] == []


def test_the_page_offers_the_change_and_its_button_does_it(client: Client, owner: User, waits: Job) -> None:
    client.force_login(owner)
    page, part = f"/jobs/{waits.pk}/", f"/jobs/{waits.pk}/changes/"
    assert part in client.get(page).content.decode()
    assert "is being played ahead" in client.get(part).content.decode()
    find_next(database_now())
    answer = client.get(part)
    shown = answer.content.decode()
    assert f"On 1 {CHEAP} GPU" in shown
    assert "within a minute" in shown
    fields = next(fields for offer, fields in answer.context["rows"] if offer.kind == "placement")
    assert client.post(f"{page}change/", dict(fields)).status_code == 302
    waits.refresh_from_db()
    assert waits.fixed["gpu_model"] == CHEAP
    assert tick().started == 1
    assert client.get(part).content.decode() == '<div id="changes"></div>'


def test_who_may_not_change_it_sees_no_button_and_others_nothing(
    client: Client, owner: User, waits: Job
) -> None:
    eve = token_client(world.user("eve"))
    assert eve.get(f"/api/jobs/{waits.pk}/changes/").status_code == 404
    reported = offers(token_client(owner), waits)
    assert reported[f"On 1 {CHEAP} GPU"]["may"]
    admin = world.admin()
    client.force_login(admin)
    assert "Change<span" in client.get(f"/jobs/{waits.pk}/changes/").content.decode()


def test_a_held_job_is_released_by_an_administrator_alone(client: Client, owner: User, waits: Job) -> None:
    admin = world.admin()
    hold_job(job=waits, actor=admin, now=database_now())
    reported = offers(token_client(owner), waits)["If it is released"]
    assert (reported["may"], reported["change"], reported["sooner_s"]) == (False, {}, None)
    client.force_login(admin)
    assert "Release</button>" in client.get(f"/jobs/{waits.pk}/changes/").content.decode()


def test_without_its_time_to_begin_a_job_could_start_and_nobody_is_shown_a_button(
    api: APIClient, client: Client, owner: User
) -> None:
    later = ask(owner, begin_at=database_now() + timedelta(hours=30))
    one = offers(api, later)["Without its time to begin"]
    assert (one["kind"], one["change"], one["may"]) == ("begin", {}, False)
    assert one["sooner_s"] > 3600
    client.force_login(owner)
    assert "Without its time to begin" in client.get(f"/jobs/{later.pk}/changes/").content.decode()


@pytest.mark.slow
def test_an_answer_is_kept_until_the_next_plan_or_change(api: APIClient, owner: User, waits: Job) -> None:
    offers(api, waits)
    made_at = ChangeSearch.objects.get(job=waits).made_at
    assert find_next(database_now()) is None
    ask(owner)
    tick()
    stale = api.get(f"/api/jobs/{waits.pk}/changes/").json()
    assert stale["computing"]
    assert stale["offers"]
    row = find_next(database_now())
    assert row is not None
    assert row.made_at != made_at
    assert find_next(database_now() + timedelta(minutes=5)) is None


def test_a_job_that_ends_the_waiting_is_named_and_paused_by_those_who_may(
    api: APIClient, client: Client, owner: User, waits: Job
) -> None:
    first = Job.objects.exclude(pk=waits.pk).get()
    one = offers(api, waits)[f"If {first} ended now"]
    assert (one["job"], one["change"], one["may"]) == (first.pk, {}, True)
    client.force_login(owner)
    pause = f"/jobs/{first.pk}/pause/"
    assert pause in client.get(f"/jobs/{waits.pk}/changes/").content.decode()
    assert client.post(pause).status_code == 302
    assert world.state_of(first) == "stopping"


@pytest.mark.parametrize(("role", "may"), [(Role.LEAD, True), (Role.MEMBER, False)])
def test_a_lead_of_the_team_pauses_the_jobs_that_use_up_its_quota(owner: User, role: str, may: bool) -> None:
    """There are idle GPUs, which the team may not use."""
    team = Team.objects.create(name="red")
    Membership.objects.create(team=team, user=owner, role=role)
    Job.objects.update(team=team, owner=world.user("eve"))
    quota = QuotaValues(guaranteed=1, borrow_limit=0)
    set_quotas(team=team, quotas=[quota], actor=world.admin(), now=database_now())
    waits, holds = ask(owner, team=team, on=CHEAP), Job.objects.get(state="assigned")
    tick()
    waits.refresh_from_db()
    assert waits.wait_code == "quota-team"
    one = offers(token_client(owner), waits)[f"If {holds} ended now"]
    assert (one["job"], one["may"]) == (holds.pk, may)


def test_a_pause_of_a_job_that_it_comes_after_is_not_offered(api: APIClient, owner: User) -> None:
    first = Job.objects.get()
    later = ask(owner, after=(After(first),))
    one = offers(api, later)[f"If {first} ended now"]
    assert (one["kind"], one["may"]) == ("job", False)


def press(client: Client, job: Job, kind: str) -> None:
    """Do as the button of the page says."""
    client.force_login(job.owner)
    answer = client.get(f"/jobs/{job.pk}/changes/")
    fields = next(fields for offer, fields in answer.context["rows"] if offer.kind == kind)
    assert client.post(f"/jobs/{job.pk}/change/", dict(fields)).status_code == 302
    job.refresh_from_db()


@pytest.fixture
def before_a_window(owner: User) -> Job:
    """A job that is never stopped, and not surely done before a window."""
    job = ask(owner, on=CHEAP, steps=200_000, preemptible=False)
    promised = job.promised.duration_s if job.promised else None
    assert promised is not None
    assert promised.high is not None
    closes_at = database_now() + timedelta(seconds=0.3 * promised.value + 0.7 * promised.high)
    begins_at = closes_at + timedelta(seconds=settings.WINDOW_LEAD_S)
    values = WindowValues(
        begins_at=begins_at, ends_at=begins_at + timedelta(hours=9),
        nodes=list(Node.objects.values_list("pk", flat=True)),
    )  # fmt: skip
    add_window(values=values, actor=world.admin(), now=database_now())
    tick()
    job.refresh_from_db()
    assert job.wait_code == "window"
    return job


@pytest.mark.slow
def test_a_time_limit_lets_it_start_before_a_window(
    api: APIClient, client: Client, before_a_window: Job
) -> None:
    offered = offers(api, before_a_window)
    one = next(one for one in offered.values() if one["kind"] == "limit")
    assert one["text"].startswith("With a time limit of ")
    assert 0 < one["unfinished"] <= 0.25
    assert (one["may"], [*one["change"]]) == (True, ["max_run_s"])
    press(client, before_a_window, "limit")
    assert before_a_window.max_run_s == one["change"]["max_run_s"]
    assert tick().started == 1


@pytest.mark.slow
def test_a_job_that_may_be_stopped_starts_before_a_window(
    api: APIClient, client: Client, before_a_window: Job
) -> None:
    one = offers(api, before_a_window)["If it may be stopped for others"]
    assert (one["may"], one["change"], one["unfinished"]) == (True, {"preemptible": True}, 0)
    press(client, before_a_window, "stoppable")
    assert before_a_window.preemptible
    assert tick().started == 1


@pytest.mark.slow
def test_a_later_deadline_allows_idle_gpus(api: APIClient, client: Client, owner: User) -> None:
    """Only the fast GPU, which is held, would be in time."""
    fast = ask(owner, batch=4096).promised
    assert fast is not None
    due_at = database_now() + timedelta(seconds=1.5 * fast.duration_s.value)
    job = ask(owner, on="", goal="cheapest", batch=4096, deadline_at=due_at)
    tick()
    offered = offers(api, job)
    one = next(one for one in offered.values() if one["kind"] == "deadline")
    assert one["change"]["deadline_at"] > due_at.isoformat()
    press(client, job, "deadline")
    assert job.deadline_at is not None
    assert job.deadline_at.isoformat() == one["change"]["deadline_at"]
    assert tick().started == 1


def test_the_start_moves_as_promised(api: APIClient, waits: Job, owner: User) -> None:
    forecast_starts(database_now())
    before = api.get(f"/api/jobs/{waits.pk}/start/").json()["expected"]
    one = offers(api, waits)[f"On 1 {CHEAP} GPU"]
    api.patch(f"/api/jobs/{waits.pk}/", one["change"], format="json")
    assert api.get(f"/api/jobs/{waits.pk}/start/").json()["expected"] is None
    assert forecast_starts(database_now()) == 1
    after = api.get(f"/api/jobs/{waits.pk}/start/").json()["expected"]
    assert after["start_at"] < before["start_at"]
    cancel_job(job=waits, actor=owner, now=database_now())
    assert api.get(f"/api/jobs/{waits.pk}/changes/").json()["offers"] == []


@pytest.mark.slow
def test_a_job_that_cannot_be_answered_holds_up_no_other_one(
    api: APIClient, client: Client, waits: Job, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = ask(owner)
    tick()
    for job in (other, waits):  # the last one is answered first
        api.get(f"/api/jobs/{job.pk}/changes/")
    with monkeypatch.context() as broken:
        broken.setattr("scheduler.loop.predict.job_changes.play_input", lambda now: 1 / 0)
        row = find_next(database_now())
    assert row is not None
    assert (row.job_id, row.found) == (waits.pk, [])
    response = api.get(f"/api/jobs/{waits.pk}/changes/").json()
    assert "internal error" in response["trouble"]
    client.force_login(owner)
    assert "internal error" in client.get(f"/jobs/{waits.pk}/changes/").content.decode()
    second = find_next(database_now())
    assert second is not None
    assert (second.job_id, second.trouble) == (other.pk, "")
