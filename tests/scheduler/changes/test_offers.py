"""The changes that help a waiting job: asked for, computed, shown and done."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from portal.accounts.models import User
from portal.clock import database_now
from scheduler.loop.predict.job_changes import find_next
from scheduler.loop.predict.start_forecasts import forecast_starts
from scheduler.loop.tick import tick
from scheduler.models import ChangeSearch, Job, Node
from scheduler.services.jobs.priorities import hold_job
from scheduler.services.jobs.verbs import cancel_job
from tests.harness import world
from tests.portal.conftest import token_client

pytestmark = pytest.mark.django_db
FAST, CHEAP = "A100-SXM4-80GB", "L4"


@pytest.fixture
def owner() -> User:
    """Someone whose first job holds the fast GPU, while the slow one is idle."""
    for name, model, price in (("fast", FAST, 40.0), ("cheap", CHEAP, 0.1)):
        world.fake_node(name=name, slots=1, model=model, memory_bytes=24 << 30)
        Node.objects.filter(name=name).update(price_per_gpu_hour=price)
    ada = world.user("ada")
    ask(ada)
    assert tick().started == 1
    return ada


def ask(owner: User, **values: Any) -> Job:
    fixed = {"max_steps": 2000, "method": "lora", "gpu_model": FAST}
    return world.job(owner, model="llama3.2-1b", params=fixed, goal="fastest", **values)


@pytest.fixture
def waits(owner: User) -> Job:
    job = ask(owner)
    tick()
    return job


@pytest.fixture
def api(owner: User) -> APIClient:
    return token_client(owner)


def offers(api: APIClient, job: Job) -> dict[str, Any]:
    """What is told once the worker has looked."""
    assert api.get(f"/api/jobs/{job.pk}/changes/").status_code == 200
    find_next(database_now())
    answer = api.get(f"/api/jobs/{job.pk}/changes/").json()
    assert not answer["computing"]
    return {one["text"]: one for one in answer["offers"]}


def test_idle_gpus_are_offered_and_taken_by_the_change(api: APIClient, waits: Job) -> None:
    asked = api.get(f"/api/jobs/{waits.pk}/changes/").json()
    assert (asked["computing"], asked["offers"]) == (True, [])
    reported = offers(api, waits)
    one = reported[f"On 1 {CHEAP} GPU"]
    assert one["change"] == {"params": {"gpu_model": CHEAP, "number_gpus": 1, "number_nodes": 1}}
    assert (one["may"], one["kind"], one["delayed"]) == (True, "placement", 0)
    assert one["sooner_s"] > 0
    assert one["start_at"] < one["end_at"]
    assert one["cost"] > 0
    answer = api.post(
        f"/api/jobs/{waits.pk}/change/", {"version": waits.version, **one["change"]}, format="json"
    )
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


def test_a_job_that_ends_the_waiting_is_named_to_those_who_see_it(api: APIClient, waits: Job) -> None:
    first = Job.objects.exclude(pk=waits.pk).get()
    one = offers(api, waits)[f"If {first} ended now"]
    assert (one["job"], one["change"], one["may"]) == (first.pk, {}, False)


def test_the_start_moves_as_promised(api: APIClient, waits: Job, owner: User) -> None:
    forecast_starts(database_now())
    before = api.get(f"/api/jobs/{waits.pk}/start/").json()["expected"]
    one = offers(api, waits)[f"On 1 {CHEAP} GPU"]
    api.post(f"/api/jobs/{waits.pk}/change/", one["change"], format="json")
    assert api.get(f"/api/jobs/{waits.pk}/start/").json()["expected"] is None
    assert forecast_starts(database_now()) == 1
    after = api.get(f"/api/jobs/{waits.pk}/start/").json()["expected"]
    assert after["start_at"] < before["start_at"]
    cancel_job(job=waits, actor=owner, now=database_now())
    assert api.get(f"/api/jobs/{waits.pk}/changes/").json()["offers"] == []


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
    told = api.get(f"/api/jobs/{waits.pk}/changes/").json()
    assert "internal error" in told["trouble"]
    client.force_login(owner)
    assert "internal error" in client.get(f"/jobs/{waits.pk}/changes/").content.decode()
    second = find_next(database_now())
    assert second is not None
    assert (second.job_id, second.trouble) == (other.pk, "")
