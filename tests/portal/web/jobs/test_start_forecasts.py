"""When waiting jobs start: computed in a worker, kept, told on the page and over REST, and judged."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db.models import F
from django.template.loader import render_to_string
from django.test import Client
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from portal.accounts.models import User
from portal.clock import database_now
from portal.events.types import EventType
from portal.web.analysis import predictions
from scheduler.loop.predict import start_forecasts
from scheduler.loop.predict.start_forecasts import forecast_starts, play_input
from scheduler.loop.tick import tick
from scheduler.models import Job, Node, StartForecast
from scheduler.selectors.analysis.period import Period
from scheduler.selectors.analysis.start_record import start_verdicts
from scheduler.selectors.cluster.queue import waiting_places
from scheduler.selectors.figures.start_forecasts import judged_forecasts
from scheduler.services.jobs.transitions import note_job
from scheduler.services.windows import WindowValues, add_window
from tests.harness import world

pytestmark = pytest.mark.django_db


@pytest.fixture
def waits(person: User) -> Job:
    """A job that waits for the only GPU."""
    world.fake_node(slots=1)
    world.job(person)
    tick()
    job = world.job(person)
    tick()
    return job


def test_a_waiting_job_says_when_it_starts(browser: Client, api: APIClient, waits: Job) -> None:
    assert forecast_starts(database_now()) == 1
    page = browser.get(f"/jobs/{waits.pk}/").content.decode()
    assert "<strong>Starts</strong> about" in page
    expected = api.get(f"/api/jobs/{waits.pk}/start/").json()["expected"]
    assert expected["start_low"] <= expected["start_at"] <= expected["start_high"]
    assert expected["start_at"] < expected["end_at"]
    assert not expected["stale"]
    assert api.get(f"/api/jobs/{waits.pk}/").json()["expected"]["start_high"] == expected["start_high"]


def test_lists_say_when_waiting_jobs_start(
    browser: Client, api: APIClient, waits: Job, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    forecast_starts(database_now())
    for address in ("/", "/jobs/", "/queue/"):
        assert browser.get(address).content.decode().count("Starts about") in (1, 2), address  # narrow, wide
    rows = {row["id"]: row["expected"] for row in api.get("/api/jobs/").json()["data"]}
    assert rows.pop(waits.pk)["start_high"]
    assert set(rows.values()) == {None}
    now = database_now()
    with django_assert_max_num_queries(4):
        (place,) = waiting_places(waits.owner, offset=0, limit=25, now=now)
    assert place.starts


def test_an_interval_is_shown_where_its_ends_differ_by_the_clock() -> None:
    at = at_clock(12, 57, 5)
    ends = {"equal": at_clock(12, 57, 40), "later": at_clock(13, 20, 0), "unknown": None}
    shown = {}
    for name, high in ends.items():
        starts = {"start_at": at, "start_low": at.replace(second=1), "start_high": high, "stale": False}
        page = render_to_string("queue/expected_start.html", {"starts": starts})
        shown[name] = re.sub(r"<[^>]+>", "", page).strip().replace(f"{at:%Y-%m-%d} ", "")
    assert shown == {
        "equal": "Starts about 12:57",
        "later": "Starts about 12:57 (12:57 to 13:20)",
        "unknown": "Starts about 12:57 (12:57 to unknown)",
    }


def at_clock(hour: int, minute: int, second: int) -> datetime:
    return datetime(2026, 3, 1, hour, minute, second, tzinfo=UTC)


def test_another_persons_job_tells_its_start_and_no_more(waits: Job, client: Client) -> None:
    forecast_starts(database_now())
    client.force_login(world.user("bob"))
    page = client.get("/queue/").content.decode()
    assert "another user's job" in page
    assert "Starts about" in page
    assert waits.pk not in page
    lanes = client.get("/queue/?lanes=now", headers={"HX-Request": "true"}).content.decode()
    assert "<td>another user&#x27;s job</td><td>expected" in lanes
    assert str(waits) not in lanes


def test_the_lanes_show_where_a_job_starts_and_when_a_node_is_closed(browser: Client, person: User) -> None:
    box = world.fake_node(slots=1)
    world.placed_job(box, owner=person)
    waits = world.job(person)
    tick()
    now = database_now()
    forecast_starts(now)
    node = Node.objects.get()
    assert StartForecast.objects.get(job=waits, first=False).gpus == {node.pk: [0]}
    soon, later = now + timedelta(hours=2), now + timedelta(hours=3)
    values = WindowValues(begins_at=soon, ends_at=later, nodes=[node.pk], team="", note="new fans")
    add_window(values=values, actor=world.admin(), now=now)
    lanes = browser.get("/queue/?lanes=now", headers={"HX-Request": "true"}).content.decode()
    assert "Waiting jobs are expected to start on 1 GPU within" in lanes
    assert "Of the 1 node shown, 1 is closed for a time" in lanes
    assert "<td>closed for maintenance: new fans</td>" in lanes
    assert f"<td>{waits}</td><td>expected" in lanes
    assert "out of date" not in lanes
    calendar = browser.get("/windows/").content.decode()
    assert "1 window, 0 in force now; the next begins at " in calendar
    StartForecast.objects.update(made_at=F("made_at") - timedelta(minutes=5))
    Job.objects.filter(pk=waits.pk).update(state_since=now - timedelta(minutes=10))
    lanes = browser.get("/queue/?lanes=now", headers={"HX-Request": "true"}).content.decode()
    assert "The forecasts of waiting jobs are out of date" in lanes
    Job.objects.filter(pk=waits.pk).update(state_since=now)
    lanes = browser.get("/queue/?lanes=now", headers={"HX-Request": "true"}).content.decode()
    assert "Waiting jobs" not in lanes, "the forecast is older than the job's place in the queue"


def test_an_old_forecast_says_so(browser: Client, api: APIClient, waits: Job) -> None:
    forecast_starts(database_now())
    StartForecast.objects.update(made_at=database_now() - timedelta(minutes=5))
    Job.objects.filter(pk=waits.pk).update(state_since=database_now() - timedelta(minutes=10))
    assert api.get(f"/api/jobs/{waits.pk}/start/").json()["expected"]["stale"]
    assert "a new one is being computed" in browser.get(f"/jobs/{waits.pk}/").content.decode()
    for address in ("/jobs/", "/queue/"):
        assert ", forecast" in browser.get(address).content.decode()


def test_it_is_not_played_again_until_something_changes(waits: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_forecasts, "REPEAT", timedelta(seconds=20))
    now = database_now()
    assert forecast_starts(now) == 1
    assert forecast_starts(now + timedelta(seconds=10)) == 0
    assert forecast_starts(now + timedelta(seconds=30)) == 1
    assert StartForecast.objects.filter(job=waits).count() == 2


def test_the_first_forecast_stays_and_is_judged_by_the_start(
    browser: Client, api: APIClient, waits: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start_forecasts, "REPEAT", timedelta(seconds=20))
    now = database_now()
    forecast_starts(now)
    first = StartForecast.objects.get(job=waits, first=True)
    forecast_starts(now + timedelta(seconds=30))
    Job.objects.filter(pk=waits.pk).update(first_started_at=now + timedelta(seconds=30))
    assert StartForecast.objects.get(job=waits, first=True).made_at == first.made_at
    ((reported, actual_s),) = judged_forecasts("easy")
    assert actual_s == pytest.approx(30, abs=1)
    assert reported.value == pytest.approx((first.start_at - first.made_at).total_seconds())
    promised = api.get(f"/api/jobs/{waits.pk}/start/").json()["promised"]
    assert promised["inside"] == (promised["start_low"] <= promised["actual"] <= promised["start_high"])
    word = "inside" if promised["inside"] else "outside"
    assert f">{word}</span>" in browser.get(f"/jobs/{waits.pk}/").content.decode()


def test_starts_are_counted_apart_from_other_promises(
    browser: Client, person: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = database_now() - timedelta(hours=6)
    first, second, changed = (world.job(person) for _ in range(3))
    for job, started_s in ((first, 100), (second, 400), (changed, 5000)):
        forecast_start(job, now, low_s=60, start_s=90, high_s=120)
        Job.objects.filter(pk=job.pk).update(first_started_at=now + timedelta(seconds=started_s))
    note_job(job=changed, event=EventType.JOB_HELD, now=now + timedelta(seconds=10))
    forecast_start(world.job(person), now, low_s=60, start_s=90, high_s=120)  # it still waits
    (reported,) = start_verdicts(person, Period(now, now + timedelta(days=1)))
    assert (reported.policy, reported.starts, reported.judged, reported.inside) == ("fifo", 2, 2, 1)
    assert (reported.error_s, reported.waited_s) == (160, 250)  # medians of 10 and 310, of 100 and 400
    assert start_verdicts(world.user(), Period(now, now + timedelta(days=1))) == []
    assert len(judged_forecasts("fifo")) == 1  # of jobs that waited together, one sets the widths
    monkeypatch.setattr(predictions, "FEW", 2)
    page = browser.get("/analytics/predictions/?range=7d").content.decode()
    assert "50%" in page[page.index(">Starts<") :].split("</table>")[0]


def forecast_start(job: Job, now: datetime, *, low_s: int, start_s: int, high_s: int) -> None:
    at = {name: now + timedelta(seconds=s) for name, s in (("low", low_s), ("at", start_s), ("high", high_s))}
    bounds = {f"start_{name}": moment for name, moment in at.items()}
    StartForecast.objects.create(job=job, first=True, made_at=now, policy="fifo", plays=64, **bounds)


def test_a_job_that_starts_or_fits_nowhere_has_no_forecast(api: APIClient, person: User) -> None:
    job = world.job(person)
    tick()
    assert forecast_starts(database_now()) == 0
    assert api.get(f"/api/jobs/{job.pk}/start/").json() == {"expected": None, "promised": None}


def test_the_past_brings_jobs_as_they_were_promised(waits: Job) -> None:
    past = play_input(database_now()).past
    assert [job.id for job in past.jobs] == list(
        Job.objects.order_by("submitted_at").values_list("pk", flat=True)
    )
    assert all(job.options for job in past.jobs)
