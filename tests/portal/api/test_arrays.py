"""Arrays of jobs through REST."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from portal.accounts.models import User
from scheduler.loop.tick import tick
from scheduler.models import Job, JobArray
from tests.harness import world
from tests.harness.fake_node import result

Body = Callable[..., dict[str, object]]
RATES = [{"learning_rate": rate} for rate in (1e-4, 2e-4, 5e-4)]


def submit(api: APIClient, body: dict[str, object], **headers: str) -> Any:
    return api.post("/api/arrays/", body, format="json", headers=headers)


def test_a_job_for_each_value_and_as_many_at_a_time_as_asked(api: APIClient, body: Body) -> None:
    node = world.fake_node(slots=3)
    answer = submit(api, body(values=RATES, limit=2, name="rates", params={"lora_r": 4}))
    assert answer.status_code == 201, answer.content
    payload = answer.json()
    assert [job["name"] for job in payload["jobs"]] == ["rates 1", "rates 2", "rates 3"]
    jobs = list(Job.objects.order_by("submitted_at"))
    assert [job.fixed for job in jobs] == [{"lora_r": 4, **rate} for rate in RATES]
    assert tick().started == 2
    last = api.get(f"/api/jobs/{jobs[2].pk}/").json()
    assert (last["array"], last["wait"]["code"]) == (payload["id"], "array-limit")
    node.end(node.take_up(), "succeeded", result())
    assert tick().started == 1


def test_the_page_of_a_job_leads_to_the_others_of_its_array(
    api: APIClient, body: Body, browser: Client
) -> None:
    array = submit(api, body(values=RATES)).json()
    submit(api, body(values=RATES))
    page = browser.get(f"/jobs/{array['jobs'][0]['id']}/").content.decode()
    assert f'href="/jobs/?q={array["id"]}"' in page
    found = browser.get(f"/jobs/?q={array['id']}").content.decode()
    assert [found.count(job["id"]) > 0 for job in array["jobs"]] == [True] * 3
    assert f"Array {array['id']}: 3 queued" in found
    assert browser.post(f"/arrays/{array['id']}/cancel/")["Location"] == f"/jobs/?q={array['id']}"
    found = browser.get(f"/jobs/?q={array['id']}").content.decode()
    assert f"Array {array['id']}: 3 cancelled" in found
    assert "Cancel all" not in found
    assert found.count('href="/jobs/ftjob-') == 3


def test_a_member_is_what_it_would_be_alone(api: APIClient, body: Body) -> None:
    """Members that are much alike are recommended once, and differ in nothing else from single jobs."""
    world.fake_node(slots=3)
    values = [
        {"learning_rate": 1e-4},
        {"learning_rate": 2e-4, "seed": 7},
        {"seed": 8},
        {"seed": 8, "epochs": 2.0},
    ]
    values += [{"learning_rate": 3e-4, "lora_r": 4}, {"learning_rate": 4e-4, "lora_r": 4}]
    assert submit(api, body(values=values)).status_code == 201
    members = list(Job.objects.order_by("submitted_at"))
    assert [job.pk for job in members] == sorted(job.pk for job in members)
    same = ("params", "fixed", "chosen", "promise", "options", "notes", "evidence", "max_run_s", "version")
    for member, value in zip(members, values, strict=True):
        alone = Job.objects.get(pk=api.post("/api/jobs/", body(params=value), format="json").json()["id"])
        assert [getattr(member, name) for name in same] == [getattr(alone, name) for name in same]
        assert member.events.get().reason == alone.events.get().reason == "Submitted."


@pytest.mark.slow
def test_an_array_of_a_thousand_jobs(
    api: APIClient, browser: Client, body: Body, django_assert_max_num_queries: Any
) -> None:
    world.fake_node(slots=3)
    rates = [{"learning_rate": 1e-6 * (1 + number)} for number in range(1000)]
    array = submit(api, body(values=rates, limit=2)).json()
    assert len(array["jobs"]) == Job.objects.count() == 1000
    for address in (f"/jobs/?q={array['id']}", "/jobs/", "/queue/"):
        with django_assert_max_num_queries(12):
            browser.get(address)
    assert tick().started == 2
    browser.post(f"/arrays/{array['id']}/cancel/")
    assert Job.objects.filter(state="cancelled").count() == 998


def test_an_array_is_cancelled_as_a_whole(api: APIClient, body: Body) -> None:
    world.fake_node(slots=1)
    array = submit(api, body(values=RATES)).json()["id"]
    tick()
    answer = api.post(f"/api/arrays/{array}/cancel/").json()
    assert [job["state"] for job in answer["jobs"]] == ["cancelled"] * 3
    assert api.post(f"/api/arrays/{array}/cancel/").status_code == 200


def test_the_same_key_gives_the_same_array(api: APIClient, body: Body) -> None:
    one, other = (submit(api, body(values=RATES), **{"Idempotency-Key": "k"}).json() for _ in range(2))
    assert one["id"] == other["id"]
    assert (JobArray.objects.count(), Job.objects.count()) == (1, 3)


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("values", {"values": []}),
        ("values", {"values": RATES[:1]}),
        ("values", {"values": [{"seed": n} for n in range(1001)]}),
        ("values", {"values": [*RATES, {}]}),
        ("values", {"values": [*RATES, RATES[0]]}),
        ("values", {"values": [*RATES, 5]}),
        ("values", {"values": [{"gpu_model": "cpu"}, {"gpu_model": "CPU"}]}),
        ("values", {"values": "1,2"}),
        ("values.1.learnin_rate", {"values": [RATES[0], {"learnin_rate": 1}]}),
        ("values.2.learning_rate", {"values": [*RATES[:2], {"learning_rate": "fast"}]}),
        ("values.0.seed", {"values": [{"seed": float("1e30")}, {"seed": 2}]}),
        ("limit", {"values": RATES, "limit": 0}),
        ("limit", {"values": RATES, "limit": 1.5}),
        ("goal", {"values": RATES, "goal": "best"}),
        ("deadline_at", {"values": RATES, "goal": "deadline"}),
    ],
)
def test_bad_arrays_are_refused_at_their_field_and_nothing_is_stored(
    api: APIClient, body: Body, field: str, wrong: dict[str, Any]
) -> None:
    answer = submit(api, body(**wrong))
    assert answer.status_code == 400, answer.content
    assert field in answer.content.decode()
    assert not Job.objects.exists()
    assert not JobArray.objects.exists()


def test_arrays_of_others_are_not_found(api: APIClient, body: Body, person: User) -> None:
    array = submit(api, body(values=RATES)).json()["id"]
    stranger = APIClient()
    stranger.force_authenticate(world.user("stranger"))
    assert stranger.get(f"/api/arrays/{array}/").status_code == 404
    assert stranger.post(f"/api/arrays/{array}/cancel/").status_code == 404
    assert Job.objects.filter(owner=person, state="queued").count() == 3
