"""Maintenance windows through REST and pages, up to what the loop does about them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from portal.accounts.models import AuditEntry, Membership, Team, User
from portal.clock import database_now
from scheduler.loop.tick import tick
from scheduler.models import Job, MaintenanceWindow, Node
from tests.harness import world
from tests.harness.fake_node import FakeNode, step

pytestmark = pytest.mark.django_db
Body = Callable[..., dict[str, object]]


def hours(number: float) -> str:
    return (database_now() + timedelta(hours=number)).isoformat()


@pytest.fixture
def fake() -> FakeNode:
    return world.fake_node(slots=1)


@pytest.fixture
def node(fake: FakeNode) -> Node:
    return Node.objects.get(pk=fake.node_id)


@pytest.fixture
def window(admin_api: APIClient, node: Node) -> Callable[..., Any]:
    def add(begins: float = 1, ends: float = 3, **more: object) -> Any:
        sent = {"begins_at": hours(begins), "ends_at": hours(ends), "nodes": [node.pk], **more}
        return admin_api.post("/api/windows/", sent, format="json")

    return add


def state(name: str) -> tuple[str, str]:
    job = Job.objects.get(name=name)
    return job.state, job.wait_code


def test_a_window_is_added_read_by_all_and_removed(
    admin_api: APIClient, api: APIClient, window: Callable[..., Any], node: Node
) -> None:
    made = window(note="new fans")
    assert made.status_code == 201
    [row] = api.get("/api/windows/").json()["data"]
    assert (row["nodes"], row["team"], row["note"]) == ([node.pk], None, "new fans")
    path = f"/api/windows/{row['id']}/"
    assert (made["Location"], set(row["actor"])) == (path, {"id", "name"})
    assert api.get(path).json() == row
    assert admin_api.delete(path).status_code == 204
    assert api.get("/api/windows/").json()["data"] == []
    assert api.get(path).status_code == 404
    actions = set(AuditEntry.objects.values_list("action", flat=True))
    assert {"window added", "window removed"} <= actions


def test_a_window_is_changed_in_what_is_sent(
    admin_api: APIClient, api: APIClient, window: Callable[..., Any], person: User
) -> None:
    team = Team.objects.create(name="Vision")
    first, other = (window(*when).json() for when in ((1, 3), (4, 6)))
    path = f"/api/windows/{first['id']}/"
    change = lambda body: admin_api.patch(path, body, format="json")  # noqa: E731
    for named in (f"team-{team.pk}", "Vision"):
        changed = change({"team": named, "note": "demo"}).json()
        assert changed == {
            **first, "note": "demo", "reserved": True, "team": {"id": f"team-{team.pk}", "name": "Vision"},
        }  # fmt: skip
    assert AuditEntry.objects.filter(action="window changed").count() == 1, "once is enough"
    stranger = api.get(path).json()
    assert (stranger["team"], stranger["reserved"]) == (None, True)
    overlapping = change({"ends_at": other["ends_at"]})
    assert "another window then" in overlapping.json()["error"]["fields"]["begins_at"]
    for body, field in (({"team": "Nobody"}, "team"), ({"ends_at": hours(0.5)}, "ends_at"), ({"x": 1}, "x")):
        refused = change(body)
        assert (refused.status_code, list(refused.json()["error"]["fields"])) == (400, [field])
    assert change({}).json() == changed
    assert change({"team": None}).json()["team"] is None


def test_windows_come_in_the_order_of_their_beginnings(api: APIClient, window: Callable[..., Any]) -> None:
    ids = [window(*when).json()["id"] for when in ((4, 6), (1, 3), (7, 9))]
    for order, places in (("begins_at", [1, 0, 2]), ("-begins_at", [2, 0, 1])):
        seen, after = list[str](), {}
        while True:
            page = api.get("/api/windows/", {"order": order, "limit": 1, **after}).json()
            seen += [row["id"] for row in page["data"]]
            if not page["has_more"]:
                break
            after = {"after": page["next"]}
        assert seen == [ids[place] for place in places]
        other = api.get("/api/windows/", {"order": "ends_at", **after})
        assert (other.status_code, list(other.json()["error"]["fields"])) == (400, ["after"])
    assert api.get("/api/windows/?order=note").status_code == 400


@pytest.mark.parametrize(
    ("given", "field", "message"),
    [
        ({"begins": 3, "ends": 1}, "ends_at", "later than the beginning"),
        ({"begins": -3, "ends": -1}, "ends_at", "over already"),
        ({"ends": 24 * 400}, "ends_at", "within a year"),
        ({"nodes": []}, "nodes", "at least one node"),
        ({"nodes": ["node-none"]}, "nodes", "There is no node node-none"),
        ({"team": "Nobody"}, "team", "neither the id nor the name of a team"),
        ({"note": "x" * 301}, "note", "300"),
        ({"begins_at": "tomorrow"}, "begins_at", "format"),
        ({"begins_at": "2027-01-01T10:00"}, "begins_at", "time zone"),
    ],
)
def test_what_is_wrong_is_told_at_its_field(
    window: Callable[..., Any], given: dict[str, Any], field: str, message: str
) -> None:
    refused = window(**given)
    assert refused.status_code == 400
    assert message in str(refused.json()["error"])
    assert field in str(refused.json()["error"])
    assert not MaintenanceWindow.objects.exists()


def test_windows_of_two_teams_do_not_overlap(window: Callable[..., Any]) -> None:
    for name in ("Vision", "Speech"):
        Team.objects.create(name=name)
    assert window(1, 3, team="Vision").status_code == 201
    assert window(2, 4, team="Vision").status_code == 201
    refused = window(3.5, 5, team="Speech")
    assert refused.status_code == 400
    assert "another window then" in str(refused.json()["error"])
    assert window(4.5, 5, team="Speech").status_code == 201


def test_the_same_key_adds_one_window(admin_api: APIClient, node: Node) -> None:
    sent = {"begins_at": hours(1), "ends_at": hours(2), "nodes": [node.pk]}
    for _ in range(2):
        made = admin_api.post("/api/windows/", sent, format="json", headers={"idempotency-key": "one"})
        assert made.status_code == 201
    assert MaintenanceWindow.objects.count() == 1


def test_a_job_waits_for_the_end_of_maintenance(
    admin_api: APIClient, window: Callable[..., Any], person: User
) -> None:
    made = window(-1, 1, note="new fans").json()
    world.job(person, name="late")
    tick()
    assert state("late") == ("queued", "window")
    assert "new fans" in Job.objects.get().wait_text
    admin_api.delete(f"/api/windows/{made['id']}/")
    tick()
    assert state("late")[0] == "assigned"


def test_a_reservation_lets_its_team_in_alone(window: Callable[..., Any], person: User) -> None:
    team = Team.objects.create(name="Vision")
    Membership.objects.create(team=team, user=person)
    window(-1, 1, team="Vision")
    world.job(world.user("other"), name="theirs")
    mine = world.job(person, name="mine")
    Job.objects.filter(pk=mine.pk).update(team=team)
    tick()
    assert (state("theirs"), state("mine")[0]) == (("queued", "window"), "assigned")


def test_what_runs_is_saved_and_stopped_shortly_before(
    fake: FakeNode, window: Callable[..., Any], person: User
) -> None:
    job = world.placed_job(fake, owner=person)
    order = fake.take_up()
    fake.run(order, step(1))
    assert window(2, 3).status_code == 201
    tick()
    job.refresh_from_db()
    assert job.state == "running"
    MaintenanceWindow.objects.update(begins_at=database_now() + timedelta(seconds=60))
    tick()
    job.refresh_from_db()
    assert (job.state, job.stop_for) == ("stopping", "drain")
    assert "closed for maintenance" in job.events.latest("number").reason


def test_administrators_use_the_page_and_others_read_it(client: Client, node: Node, person: User) -> None:
    client.force_login(world.admin())
    begins: datetime = database_now() + timedelta(hours=1)
    sent = {
        "begins_at": f"{begins:%Y-%m-%dT%H:%M}", "ends_at": f"{begins + timedelta(hours=2):%Y-%m-%dT%H:%M}",
        "nodes": [node.pk], "note": "new fans", "time_zone": "UTC",
    }  # fmt: skip
    wrong = client.post("/windows/", {**sent, "ends_at": sent["begins_at"]})
    assert (wrong.status_code, b"later than the beginning" in wrong.content) == (400, True)
    assert client.post("/windows/", sent).status_code == 302
    client.force_login(person)
    read = client.get("/windows/").content
    assert b"new fans" in read
    assert node.name.encode() in read
    assert b"Add a window" not in read
