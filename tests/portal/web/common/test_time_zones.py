"""Times on pages and in forms: in the reader's own zone, the browser's, or the portal's."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.http import HttpResponse
from django.test import Client

from portal.accounts import time_zones
from portal.accounts.models import User
from scheduler.models import DatasetFile, Job
from tests.harness import world
from tests.harness.forms import form_to
from tests.portal.conftest import token_client

KOLKATA, NEW_YORK, BERLIN = "Asia/Kolkata", "America/New_York", "Europe/Berlin"
Form = Callable[..., dict[str, str]]


def prefer(person: User, zone: str) -> None:
    User.objects.filter(pk=person.pk).update(time_zone=zone)


def submitted_at(person: User, moment: datetime) -> Job:
    job = world.job(person)
    Job.objects.filter(pk=job.pk).update(submitted_at=moment)
    return job


def page_of(browser: Client, job: Job) -> str:
    return browser.get(f"/jobs/{job.pk}/").content.decode()


@pytest.fixture
def form(data_file: DatasetFile) -> Form:
    def make(**values: str) -> dict[str, str]:
        return {"model": "builtin/tiny-llama", "training_file": data_file.pk, "goal": "balanced", **values}

    return make


def test_a_page_tells_times_in_the_zone_that_its_reader_chose(browser: Client, person: User) -> None:
    job = submitted_at(person, datetime(2026, 11, 20, 1, 48, 15, tzinfo=UTC))
    assert 'title="2026-11-20 01:48:15 UTC"' in page_of(browser, job)
    prefer(person, KOLKATA)
    page = page_of(browser, job)
    assert 'title="2026-11-20 07:18:15 UTC+05:30"' in page
    assert 'datetime="2026-11-20T07:18:15+05:30"' in page


@pytest.mark.parametrize(
    ("moment", "facts"),
    [
        (datetime(2026, 3, 8, 6, 59, 59, tzinfo=UTC), "2026-03-08 01:59:59 UTC-05:00"),
        (datetime(2026, 3, 8, 7, 0, 0, tzinfo=UTC), "2026-03-08 03:00:00 UTC-04:00"),
        (datetime(2026, 11, 1, 5, 30, 0, tzinfo=UTC), "2026-11-01 01:30:00 UTC-04:00"),
        (datetime(2026, 11, 1, 6, 30, 0, tzinfo=UTC), "2026-11-01 01:30:00 UTC-05:00"),
    ],
)
def test_times_are_right_on_both_sides_of_a_change_of_clocks(
    browser: Client, person: User, moment: datetime, facts: str
) -> None:
    prefer(person, NEW_YORK)
    assert f'title="{facts}"' in page_of(browser, submitted_at(person, moment))


def test_the_browsers_zone_holds_until_the_person_chooses_one(browser: Client, person: User) -> None:
    job = submitted_at(person, datetime(2026, 11, 20, 1, 48, 15, tzinfo=UTC))
    browser.cookies[time_zones.COOKIE] = NEW_YORK
    assert "2026-11-19 20:48:15 UTC-05:00" in page_of(browser, job)
    prefer(person, KOLKATA)
    assert "2026-11-20 07:18:15 UTC+05:30" in page_of(browser, job)


def test_without_either_the_portals_zone_holds(browser: Client, person: User, settings: LazySettings) -> None:
    settings.TIME_ZONE = "Europe/Berlin"
    job = submitted_at(person, datetime(2026, 11, 20, 1, 48, 15, tzinfo=UTC))
    assert "2026-11-20 02:48:15 UTC+01:00" in page_of(browser, job)


@pytest.mark.one_database
@pytest.mark.parametrize(
    "value",
    ["../../etc/passwd", "/etc/localtime", "Factory", "localtime", "<script>", "UTC+99", "x" * 3000, "é", ""],
)
def test_a_cookie_that_names_no_zone_changes_nothing(browser: Client, person: User, value: str) -> None:
    browser.cookies[time_zones.COOKIE] = value
    job = submitted_at(person, datetime(2026, 11, 20, 1, 48, 15, tzinfo=UTC))
    assert 'title="2026-11-20 01:48:15 UTC"' in page_of(browser, job)


def test_programs_are_told_times_in_the_portals_zone(person: User) -> None:
    prefer(person, KOLKATA)
    job = submitted_at(person, datetime(2026, 11, 20, 1, 48, 15, tzinfo=UTC))
    answer = token_client(person).get(f"/api/jobs/{job.pk}/").json()["created_at"]
    assert answer == "2026-11-20T01:48:15Z"


def deadline(browser: Client, values: dict[str, str]) -> Job | HttpResponse:
    answer: Any = browser.post("/jobs/new/", values)
    return Job.objects.get() if answer.status_code == 302 else answer


def test_a_deadline_goes_through_the_form_and_back_in_the_persons_zone(
    browser: Client, person: User, form: Form
) -> None:
    prefer(person, KOLKATA)
    assert "Time in Asia/Kolkata." in browser.get("/jobs/new/").content.decode()
    job = deadline(browser, form(deadline_at="2030-01-02T03:04", time_zone=KOLKATA))
    assert isinstance(job, Job)
    assert job.deadline_at == datetime(2030, 1, 1, 21, 34, tzinfo=UTC)
    again = browser.get(f"/jobs/new/?from={job.pk}").content.decode()
    assert 'value="2030-01-02T03:04"' in again


def test_a_form_is_read_in_the_zone_that_it_told(browser: Client, form: Form) -> None:
    """The browser's zone is learnt after the first page, and changes when people travel."""
    browser.cookies[time_zones.COOKIE] = NEW_YORK
    job = deadline(browser, form(deadline_at="2030-01-02T03:04", time_zone=KOLKATA))
    assert isinstance(job, Job)
    assert job.deadline_at == datetime(2030, 1, 1, 21, 34, tzinfo=UTC)


def test_a_refused_form_still_tells_its_own_zone(browser: Client, form: Form) -> None:
    browser.cookies[time_zones.COOKIE] = NEW_YORK
    answer = deadline(browser, form(deadline_at="2030-01-02T03:04", time_zone=KOLKATA, model=""))
    assert isinstance(answer, HttpResponse)
    page = answer.content.decode()
    assert "Time in Asia/Kolkata." in page
    assert f'name="time_zone" value="{KOLKATA}"' in page


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("time", "message"),
    [
        ("2030-03-10T02:30", "2030-03-10 02:30 is skipped in America/New_York"),
        ("2030-11-03T01:30", "2030-11-03 01:30 comes twice in America/New_York"),
        ("9999-12-31T23:59", "Choose a year between 2 and 9998."),
        ("2030-02-30T01:00", "Enter a valid date/time."),
    ],
)
def test_a_time_that_is_no_single_moment_is_told_at_its_field(
    browser: Client, person: User, form: Form, time: str, message: str
) -> None:
    prefer(person, NEW_YORK)
    answer: Any = deadline(browser, form(deadline_at=time))
    assert answer.status_code == 400
    assert message in answer.context["form"].errors["deadline_at"][0]


def repeated_hour() -> datetime:
    """A moment of the next hour that comes twice in Berlin, half past two for the second time."""
    now = datetime.now(UTC)
    ends = [datetime(year, 10, day, 1, 30, 7, 250_000, tzinfo=UTC) for year in (now.year, now.year + 1)
            for day in range(25, 32)]  # fmt: skip
    return next(end for end in ends if end.weekday() == 6 and end > now + timedelta(days=1))


def sent_back(browser: Client, page: str, action: str) -> dict[str, str]:
    """The values of a form that nobody touched."""
    return form_to(browser.get(page).content.decode(), action).values


@pytest.mark.parametrize("zone", [BERLIN, NEW_YORK])
@pytest.mark.parametrize("later", [timedelta(), timedelta(hours=-1)])
def test_a_moment_that_nobody_touches_stays_to_the_microsecond(
    browser: Client, person: User, zone: str, later: timedelta
) -> None:
    """In both halves of the hour that comes twice, in a change and in a clone."""
    prefer(person, zone)
    moment = repeated_hour() + later
    job = world.job(person, deadline_at=moment)
    values = sent_back(browser, f"/jobs/{job.pk}/tabs/change/", f"/jobs/{job.pk}/change/")
    assert browser.post(f"/jobs/{job.pk}/change/", values | {"budget": "5"}).status_code == 302
    job.refresh_from_db()
    assert (job.deadline_at, job.budget) == (moment, 5)
    values = sent_back(browser, f"/jobs/new/?from={job.pk}", "/jobs/new/")
    assert browser.post("/jobs/new/", values).status_code == 302
    assert [one.deadline_at for one in Job.objects.all()] == [moment, moment]


def test_a_touched_moment_is_read_anew_and_an_edited_hidden_one_counts_for_nothing(
    browser: Client, person: User
) -> None:
    prefer(person, BERLIN)
    moment = repeated_hour()
    job = world.job(person, deadline_at=moment)
    there = f"/jobs/{job.pk}/change/"
    values = sent_back(browser, f"/jobs/{job.pk}/tabs/change/", there)
    again = f"{moment:%Y-%m-%d}T02:31"
    for odd in ({"deadline_at": again}, {"deadline_at_exactly": "then"}, {"deadline_at_exactly": again}):
        answer: Any = browser.post(there, values | odd)
        assert "comes twice" in answer.context["form"].errors["deadline_at"][0]
    assert browser.post(there, values | {"deadline_at": f"{moment:%Y-%m-%d}T04:31"}).status_code == 302
    job.refresh_from_db()
    assert job.deadline_at == moment.replace(hour=3, minute=31, second=0, microsecond=0)


def test_a_form_of_no_zone_is_refused(browser: Client, form: Form) -> None:
    answer: Any = deadline(browser, form(deadline_at="2030-01-02T03:04", time_zone="Mars/Olympus"))
    assert answer.status_code == 400
    assert "There is no time zone of this name" in answer.content.decode()


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("said", "kept"),
    [(KOLKATA, KOLKATA), ("america/new york", NEW_YORK), (" utc ", "UTC"), ("", "")],
)
def test_a_person_chooses_a_zone_however_it_is_spelt(
    browser: Client, person: User, said: str, kept: str
) -> None:
    prefer(person, "Europe/Berlin")
    assert browser.post("/settings/", {"time_zone": said}).status_code == 302
    person.refresh_from_db()
    assert person.time_zone == kept


@pytest.mark.one_database
@pytest.mark.parametrize("said", ["Mars/Olympus", "localtime", "x" * 65, "a\x00b"])
def test_a_zone_that_does_not_exist_is_told_at_its_field(browser: Client, person: User, said: str) -> None:
    answer = browser.post("/settings/", {"time_zone": said})
    assert answer.status_code == 400
    assert list(answer.context["form"].errors) == ["time_zone"]


def test_the_settings_say_in_which_zone_times_are_told(browser: Client, person: User) -> None:
    browser.cookies[time_zones.COOKIE] = KOLKATA
    page = browser.get("/settings/").content.decode()
    assert "<strong>Asia/Kolkata</strong>" in page
    assert '<option value="Europe/Berlin">' in page


def test_moments_at_the_ends_of_the_calendar_do_not_break_pages(browser: Client, person: User) -> None:
    job = world.job(person)
    last, first = datetime(9999, 12, 31, 23, 59, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC)
    for zone, moment in ((KOLKATA, last), (NEW_YORK, first)):
        prefer(person, zone)
        Job.objects.filter(pk=job.pk).update(deadline_at=moment)
        assert browser.get(f"/jobs/{job.pk}/").status_code == 200
        assert browser.get(f"/jobs/new/?from={job.pk}").status_code == 200


@pytest.mark.parametrize("query", ["from=0001-01-01", "to=9999-12-30", "from=2026-03-08T02:30"])
@pytest.mark.parametrize("zone", [KOLKATA, NEW_YORK])
def test_odd_dates_of_a_period_do_not_break_pages(
    browser: Client, person: User, zone: str, query: str
) -> None:
    prefer(person, zone)
    assert browser.get(f"/analytics/?{query}").status_code in (200, 400)


def test_a_period_is_read_in_the_readers_zone(browser: Client, person: User) -> None:
    for zone, reported in ((KOLKATA, "2026-10-01 00:00 UTC+05:30"), ("UTC", "2026-10-01 00:00 UTC<")):
        prefer(person, zone)
        page = browser.get("/analytics/?from=2026-10-01&to=2026-10-02").content.decode()
        assert reported in page
        assert 'value="2026-10-02"' in page


def test_a_stored_sentence_tells_its_times_in_the_readers_zone(browser: Client, person: User) -> None:
    prefer(person, KOLKATA)
    job = world.job(person)
    text = "box declined it and is asked again at 2026-11-20T01:48:15+00:00 (not 2026-13-40T01:48:15+00:00)."
    Job.objects.filter(pk=job.pk).update(wait_code="declined", wait_text=text)
    reported = "asked again at 2026-11-20 07:18:15 UTC+05:30 (not 2026-13-40T01:48:15+00:00)."
    for path in (f"/jobs/{job.pk}/", "/jobs/", "/queue/"):
        assert reported in browser.get(path).content.decode(), path
