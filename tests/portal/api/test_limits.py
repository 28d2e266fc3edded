"""Quotas, limits and priority classes through REST."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from rest_framework.test import APIClient

from portal.accounts.models import AuditEntry, Membership, Team, User
from portal.clock import database_now
from scheduler.loop.tick import tick
from scheduler.models import Allocation, Job
from tests.harness import world
from tests.harness.fake_node import step
from tests.harness.invariants import assert_sound

Body = Callable[..., dict[str, object]]


@pytest.fixture
def team(person: User) -> Team:
    made = Team.objects.create(name="Linguists")
    Membership.objects.create(team=made, user=person)
    return made


def test_a_quota_is_set_read_and_kept(
    admin_api: APIClient, api: APIClient, stranger: APIClient, team: Team, body: Body
) -> None:
    world.fake_node(slots=2)
    address = f"/api/teams/team-{team.pk}/quotas/"
    quotas = [{"gpu_model": "cpu", "guaranteed": 1, "borrow_limit": 0}, {"guaranteed": 3, "lending_limit": 2}]
    assert api.put(address, {"quotas": quotas}, format="json").status_code == 403
    answer = admin_api.put(address, {"quotas": quotas}, format="json")
    assert answer.status_code == 200, answer.content
    payload = api.get(address).json()["quotas"]
    assert answer.json()["warnings"] == ["All teams together are guaranteed 3 GPUs, and 2 are registered."]
    fields = ("gpu_model", "guaranteed", "borrow_limit", "lending_limit")
    assert [[one[name] for name in fields] for one in payload] == [["", 3, None, 2], ["cpu", 1, 0, None]]
    assert stranger.get(address).status_code == 404
    assert AuditEntry.objects.filter(action="quotas set", target=f"team {team.pk}").exists()
    for _ in range(2):
        assert api.post("/api/jobs/", body(team="Linguists"), format="json").status_code == 201
    assert tick().started == 1
    waits = [job["wait"] for job in api.get("/api/jobs/").json()["data"] if job["wait"]]
    assert [wait["code"] for wait in waits] == ["quota-team"]
    assert admin_api.put(address, {"quotas": []}, format="json").json()["quotas"] == []
    assert tick().started == 1


WRONG = {
    "negative": ({"quotas": [{"guaranteed": -1}]}, "quotas"),
    "a fraction": ({"quotas": [{"guaranteed": 1.5}]}, "quotas"),
    "twice": ({"quotas": [{"guaranteed": 1}, {"guaranteed": 2}]}, "quotas.1.gpu_model"),
    "twice by two names": (
        {"quotas": [{"gpu_model": name, "guaranteed": 1} for name in ("cpu", "CPU")]},
        "quotas.1.gpu_model",
    ),
    "lends more": ({"quotas": [{"guaranteed": 1, "lending_limit": 2}]}, "quotas.0.lending_limit"),
    "of no GPU model": ({"quotas": [{"gpu_model": "H1000", "guaranteed": 1}]}, "quotas.0.gpu_model"),
    "unknown": ({"quotas": [{"guaranteed": 1, "borow_limit": 2}]}, "quotas"),
    "nothing": ({}, "quotas"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_quota_is_refused_at_its_field(admin_api: APIClient, team: Team, case: str) -> None:
    sent, field = WRONG[case]
    answer = admin_api.put(f"/api/teams/team-{team.pk}/quotas/", sent, format="json")
    assert answer.status_code == 400
    assert any(name.startswith(field) for name in answer.json()["error"]["fields"]), answer.json()


def test_what_a_team_was_owed_and_used(admin_api: APIClient, api: APIClient, team: Team, body: Body) -> None:
    world.fake_node(slots=2)
    api.post("/api/jobs/", body(team="Linguists"), format="json")
    tick()
    Allocation.objects.update(allocated_at=database_now() - timedelta(hours=2))
    admin_api.put(f"/api/teams/team-{team.pk}/quotas/", {"quotas": [{"guaranteed": 1}]}, format="json")
    answer = api.get(f"/api/teams/team-{team.pk}/usage/")
    assert answer.status_code == 200, answer.content
    (everything,) = answer.json()["usage"]
    assert everything["total"]["used_s"] == pytest.approx(7200, rel=0.01)
    assert everything["total"]["borrowed_s"] == pytest.approx(7200, rel=0.01)
    wrong = api.get(f"/api/teams/team-{team.pk}/usage/", {"since": "2030-01-01T00:00:00Z"})
    assert wrong.status_code == 400


def test_limits_of_a_person_and_of_everybody(admin_api: APIClient, api: APIClient, person: User) -> None:
    mine = f"/api/users/user-{person.pk}/limits/"
    none = {
        "running_jobs": None, "gpus": None, "gpu_hours_month": None, "max_class": "normal", "max_run_s": None
    }  # fmt: skip
    assert api.get(mine).json() == {**none, "own": False, "gpu_hours_used": 0.0}
    assert api.put(mine, {"gpus": 9}, format="json").status_code == 403
    assert admin_api.put("/api/limits/", {"gpus": 2}, format="json").json()["gpus"] == 2
    assert api.get(mine).json()["gpus"] == 2
    assert admin_api.put(mine, {"max_class": "high"}, format="json").json()["max_class"] == "high"
    assert (api.get(mine).json()["gpus"], api.get(mine).json()["own"]) == (None, True)
    assert admin_api.delete(mine).status_code == 204
    assert api.get(mine).json()["gpus"] == 2
    assert api.get(f"/api/users/user-{world.admin().pk}/limits/").status_code == 404
    for wrong in ({"gpu_hours_month": -1}, {"max_run_s": 0}, {"max_run_s": 1.5}):
        assert admin_api.put("/api/limits/", wrong, format="json").status_code == 400


def test_a_job_has_a_class_that_can_be_changed(
    admin_api: APIClient, api: APIClient, stranger: APIClient, person: User, body: Body
) -> None:
    for path, more in (("jobs", {}), ("arrays", {"values": [{"seed": 1}, {"seed": 2}]})):
        refused = api.post(f"/api/{path}/", body(priority="high", **more), format="json")
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "permission_denied")
        assert "normal at most" in str(refused.json()["error"]["fields"]["priority"])
    assert api.post("/api/jobs/", body(priority=1), format="json").status_code == 400
    assert not Job.objects.exists()
    admin_api.put(f"/api/users/user-{person.pk}/limits/", {"max_class": "high"}, format="json")
    made = api.post("/api/jobs/", body(priority="high", preemptible=False), format="json").json()
    assert (made["priority"], made["preemptible"]) == ("high", False)
    change = f"/api/jobs/{made['id']}/"
    changed = api.patch(change, {"seen": "queued", "priority": "low"}, format="json").json()
    assert (changed["priority"], changed["preemptible"]) == ("low", False)
    assert api.patch(change, {"priority": "urgent"}, format="json").status_code == 403
    late = api.patch(change, {"seen": "running", "priority": "normal"}, format="json")
    assert late.status_code == 409
    assert "queued" in late.json()["error"]["message"]
    assert stranger.patch(change, {"priority": "low"}, format="json").status_code == 404


def test_weights_of_fair_shares(
    admin_api: APIClient, api: APIClient, stranger: APIClient, person: User
) -> None:
    mine = f"/api/users/user-{person.pk}/share/"
    assert api.get(mine).json() == {"weight": 1.0, "used_gpu_s": 0.0}
    assert api.put(mine, {"weight": 2}, format="json").status_code == 403
    assert admin_api.put(mine, {"weight": 2}, format="json").json()["weight"] == 2.0
    for wrong in ({"weight": 0}, {"weight": "2"}, {"weight": None}, {}, {"weight": 2, "more": 1}):
        assert admin_api.put(mine, wrong, format="json").status_code == 400
    assert stranger.get(mine).status_code == 404


def test_a_job_has_a_time_limit_that_can_be_changed(
    admin_api: APIClient, api: APIClient, person: User, body: Body
) -> None:
    admin_api.put(f"/api/users/user-{person.pk}/limits/", {"max_run_s": 7200}, format="json")
    refused = api.post("/api/jobs/", body(max_run_s=7201), format="json")
    assert "may be 7,200 (2 h) at most" in str(refused.json()["error"]["fields"]["max_run_s"])
    made = api.post("/api/jobs/", body(max_run_s=3600), format="json").json()
    assert made["max_run_s"] == 3600
    change = f"/api/jobs/{made['id']}/"
    assert api.patch(change, {"priority": "low"}, format="json").json()["max_run_s"] == 3600
    assert api.patch(change, {"max_run_s": None}, format="json").json()["max_run_s"] == 7200
    assert api.patch(change, {"max_run_s": 9000}, format="json").status_code == 400
    assert admin_api.patch(change, {"max_run_s": 9000}, format="json").json()["max_run_s"] == 9000


def test_a_job_is_held_and_released(admin_api: APIClient, api: APIClient, body: Body) -> None:
    world.fake_node()
    job = api.post("/api/jobs/", body(), format="json").json()["id"]
    assert api.post(f"/api/jobs/{job}/hold/", {}, format="json").status_code == 403
    assert admin_api.post(f"/api/jobs/{job}/hold/", {"note": "Later."}, format="json").status_code == 200
    tick()
    assert api.get(f"/api/jobs/{job}/").json()["wait"]["code"] == "held"
    assert admin_api.post(f"/api/jobs/{job}/release/").status_code == 200
    assert api.post(f"/api/jobs/{job}/front/", {}, format="json").status_code == 403
    assert admin_api.post(f"/api/jobs/{job}/front/", {"note": 5}, format="json").status_code == 400
    assert admin_api.post(f"/api/jobs/{job}/front/", {"note": "A deadline."}, format="json").json()[
        "front_at"
    ]
    assert admin_api.delete(f"/api/jobs/{job}/front/").json()["front_at"] is None
    assert tick().started == 1


def test_an_administrator_takes_a_jobs_gpus_back(admin_api: APIClient, api: APIClient, body: Body) -> None:
    node = world.fake_node(slots=1)
    job = api.post("/api/jobs/", body(), format="json").json()["id"]
    preempt = f"/api/jobs/{job}/preempt/"
    assert admin_api.post(preempt, {}, format="json").json()["version"] == 1, "it waits already"
    tick()
    order = node.take_up()
    node.run(order, step(1))
    assert api.post(preempt, {}, format="json").status_code == 403
    assert admin_api.post(preempt, {"note": 5}, format="json").status_code == 400
    assert admin_api.post(preempt, {"note": "It grows warm."}, format="json").status_code == 200
    assert admin_api.post(preempt, {}, format="json").status_code == 200, "it is being stopped for this"
    node.save_checkpoint(order, 7)
    node.end(order, "stopped")
    events = api.get(f"/api/jobs/{job}/events/").json()["data"]
    assert "Preempted by an administrator: It grows warm." in [event["reason"] for event in events]
    assert AuditEntry.objects.filter(action="job preempted", target=job).exists()
    assert api.get(f"/api/jobs/{job}/").json()["state"] == "queued"
    tick()
    again = node.take_up().spec
    assert again is not None
    assert again.resume is not None
    assert again.resume.step == 7
    assert_sound()


def test_an_array_takes_a_class(admin_api: APIClient, api: APIClient, body: Body) -> None:
    rates = [{"learning_rate": rate} for rate in (1e-4, 2e-4)]
    answer = api.post("/api/arrays/", body(values=rates, priority="low"), format="json").json()
    assert [job["priority"] for job in answer["jobs"]] == ["low", "low"]
