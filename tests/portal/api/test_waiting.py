"""Answers that wait for news, and requests that name what was seen.

That the server keeps such requests without a thread is shown in tests/portal/serving, and with a real
training in tests/stack.
"""

from __future__ import annotations

from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from portal.accounts.models import User
from portal.serving import parking
from portal.serving.parking import ParkingLot, Turn
from scheduler.loop.tick import tick
from scheduler.models import Job
from scheduler.selectors.signs import signs_of
from tests.harness import fake_node, world
from tests.harness.fake_node import FakeNode

WAITS = 204  # nobody sees it: the server serves the request again


class Kept:
    """One request that a server keeps, served again whenever the test says so."""

    def __init__(self, api: APIClient, most: int = 5) -> None:
        self.api = api
        self.lot = ParkingLot(most=most, signs_of=signs_of, wake=lambda _: None)
        self.turn = Turn(self.lot)

    def get(self, path: str, **query: object) -> Any:
        self.turn.wait = None
        mark = parking.turn.set(self.turn)
        try:
            headers = {"If-None-Match": str(known)} if (known := query.pop("known", None)) else {}
            return self.api.get(path, query, headers=headers)
        finally:
            parking.turn.reset(mark)

    @property
    def has_news(self) -> bool:
        """What the reading thread would find."""
        assert self.turn.wait is not None
        subject: Any = self.turn.wait.subject
        return signs_of([subject]).get(subject) != self.turn.wait.seen


@pytest.fixture
def node(db: None) -> FakeNode:
    return world.fake_node(slots=1)


@pytest.fixture
def job(person: User, node: FakeNode) -> str:
    return f"/api/jobs/{world.job(owner=person).pk}/"


def test_a_job_is_waited_for_until_it_changes_starts_or_ends(
    api: APIClient, job: str, node: FakeNode
) -> None:
    change, started, ended = (Kept(api) for _ in range(3))
    assert change.get(job, wait_s=60).status_code == WAITS
    assert started.get(job, wait_s=60, until="started").status_code == WAITS
    assert ended.get(job, wait_s=60, until="ended").status_code == WAITS
    assert not change.has_news
    tick()
    order = node.take_up()
    assert change.has_news
    assert change.get(job, wait_s=60).json()["internal_state"] == "starting"
    node.run(order, fake_node.step(1))
    assert started.get(job, wait_s=60, until="started").json()["state"] == "running"
    assert ended.get(job, wait_s=60, until="ended").status_code == WAITS
    step = Kept(api)
    assert step.get(job, wait_s=60).status_code == WAITS
    node.run(order, fake_node.step(2))
    assert not ended.has_news, "progress wakes nobody who waits for the end"
    assert step.get(job, wait_s=60).json()["progress"]["step"] == 2
    node.end(order, "succeeded", fake_node.result())
    assert ended.get(job, wait_s=60, until="ended").json()["state"] == "succeeded"
    assert Kept(api).get(job, wait_s=60).status_code == 200, "nothing changes any more"


def test_the_log_and_the_metrics_are_waited_for_until_the_end(
    api: APIClient, job: str, node: FakeNode
) -> None:
    tick()
    order = node.take_up()
    log, rows = Kept(api), Kept(api)
    assert log.get(f"{job}logs/", wait_s=60).status_code == WAITS
    assert rows.get(f"{job}metrics/", wait_s=60).status_code == WAITS
    node.run(order, {"kind": "log", "body": {"text": "hello"}}, fake_node.step(1))
    assert log.has_news
    assert rows.has_news
    assert log.get(f"{job}logs/", wait_s=60).json() == {"text": "hello", "next_offset": 5, "complete": False}
    read = rows.get(f"{job}metrics/", wait_s=60).json()["data"]
    assert [row["step"] for row in read] == [1]
    assert rows.get(f"{job}metrics/", wait_s=60, after=read[0]["id"]).status_code == WAITS
    assert log.get(f"{job}logs/", wait_s=60, offset=5).status_code == WAITS
    node.end(order, "succeeded", fake_node.result())
    assert log.has_news
    rest = log.get(f"{job}logs/", wait_s=60, offset=5).json()
    assert rest["complete"]
    assert rows.get(f"{job}metrics/", wait_s=60, after=10**9).json()["data"] == []


def test_a_wait_ends_with_its_time_and_is_not_kept_beyond_the_bounds(api: APIClient, job: str) -> None:
    over = Kept(api)
    over.turn.began -= 5
    assert over.get(job, wait_s=5).status_code == 200
    full = Kept(api, most=1)
    assert full.get(job, wait_s=5).status_code == WAITS
    full.turn = Turn(full.lot)
    assert full.get(job, wait_s=5).status_code == 200
    many = Kept(api, most=1000)
    statuses = []
    for _ in range(parking.MOST_OF_ONE_ASKER + 1):
        many.turn = Turn(many.lot)
        statuses.append(many.get(job, wait_s=5).status_code)
    assert statuses == [WAITS] * parking.MOST_OF_ONE_ASKER + [200]
    assert api.get(job, {"wait_s": 5}).status_code == 200, "a server that keeps none answers at once"


@pytest.mark.parametrize(
    ("part", "query", "field"),
    [
        ("", {"wait_s": 0}, "wait_s"),
        ("", {"wait_s": 61}, "wait_s"),
        ("", {"wait_s": "1.5"}, "wait_s"),
        ("", {"until": "ended"}, "until"),
        ("", {"wait_s": 1, "until": "done"}, "until"),
        ("logs/", {"wait_s": 61}, "wait_s"),
        ("metrics/", {"wait_s": 1, "points": 5}, "wait_s"),
    ],
)
def test_a_wrong_wait_is_refused(
    api: APIClient, job: str, part: str, query: dict[str, object], field: str
) -> None:
    refused = Kept(api).get(f"{job}{part}", **query)
    assert (refused.status_code, list(refused.json()["error"]["fields"])) == (400, [field])


def test_nobody_waits_for_a_foreign_job(stranger: APIClient, job: str) -> None:
    for part in ("", "logs/", "metrics/"):
        kept = Kept(stranger)
        assert kept.get(f"{job}{part}", wait_s=60).status_code == 404
        assert kept.turn.wait is None


def test_what_was_seen_is_not_told_again_and_costs_one_query(
    api: APIClient, job: str, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    tag = api.get(job)["ETag"]
    api.get("/api/me/")  # what every request costs is known by then
    with django_assert_num_queries(4) as asked:
        answer = api.get(job, headers={"If-None-Match": tag})
    assert (answer.status_code, answer["ETag"], answer.content) == (304, tag, b"")
    assert sum("scheduler_job" in query["sql"] for query in asked.captured_queries) == 1
    assert api.get(job, headers={"If-None-Match": f'"x", W/{tag}'}).status_code == 304
    waits = Kept(api)
    assert waits.get(job, wait_s=5, known=tag).status_code == WAITS
    Job.objects.update(step=3)
    news = waits.get(job, wait_s=5, known=tag)
    assert (news.status_code, news.json()["progress"]["step"]) == (200, 3)
    assert news["ETag"] != tag
    assert Kept(api).get(job, wait_s=5, known=tag).status_code == 200, "it changed since that answer"


def test_a_change_begins_from_what_was_seen_or_is_refused(api: APIClient, job: str) -> None:
    tag = api.get(job)["ETag"]
    patch = lambda tag, **values: api.patch(job, values, format="json", headers={"If-Match": tag})  # noqa: E731
    Job.objects.update(step=1)
    changed = patch(tag, priority="low")
    assert changed.status_code == 200, "progress is no change"
    for refused in (
        patch(tag, priority="normal"),
        api.post(f"{job}pause/", headers={"If-Match": tag}),
        api.post(f"{job}cancel/", headers={"If-Match": 'W/"0-x", "1-y"'}),
    ):
        assert (refused.status_code, refused.json()["error"]["code"]) == (412, "changed_meanwhile")
    assert Job.objects.get().state == "queued"
    assert api.post(f"{job}pause/", headers={"If-Match": changed["ETag"]}).status_code == 200
    assert patch("*", priority="normal").status_code == 200
