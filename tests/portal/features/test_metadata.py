"""A job keeps texts of its owner's own, by key."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from django.test import Client
from rest_framework.test import APIClient

from portal.web.jobs.resubmit import as_curl
from scheduler.models import Job, StartQuestion
from tests.harness import world
from tests.portal.conftest import token_client

pytestmark = pytest.mark.django_db
Body = Callable[..., dict[str, object]]
PAIRS = {"project": "summaries", "items": "<b>12</b>", "empty": ""}


def sent_by_form(job: Job) -> dict[str, str]:
    return {"model": job.model, "training_file": job.training_file_id}


def test_it_is_given_and_read_over_rest(api: APIClient, body: Body) -> None:
    made = api.post("/api/jobs/", body(metadata=PAIRS), format="json").json()
    assert made["metadata"] == PAIRS
    assert api.get("/api/jobs/").json()["data"][0]["metadata"] == PAIRS
    assert api.post("/api/jobs/", body(), format="json").json()["metadata"] == {}
    arrays = body(metadata=PAIRS, values=[{"seed": 1}, {"seed": 2}])
    jobs = api.post("/api/arrays/", arrays, format="json").json()["jobs"]
    assert [job["metadata"] for job in jobs] == [PAIRS, PAIRS]


@pytest.mark.parametrize(
    ("metadata", "told"),
    [
        ({str(number): "" for number in range(17)}, "16 pairs at most, and these are 17"),
        ({"k" * 65: "v"}, "a key may have 64 characters, and this one has 65"),
        ({"long": "v" * 513}, "long: may have 512 characters, and this value has 513"),
        ({"": "v"}, "needs a key"),
        ({"number": 1}, "number: must be a text"),
        ({"none": None}, "none: must be a text"),
        (["project"], "must be an object of texts"),
        (None, "null"),
    ],
)
def test_other_values_are_refused_at_the_field(
    metadata: object, told: str, api: APIClient, body: Body
) -> None:
    refused = api.post("/api/jobs/", body(metadata=metadata), format="json")
    assert refused.status_code == 400
    assert told in refused.json()["error"]["fields"]["metadata"]
    assert not Job.objects.exists()


def test_the_largest_are_kept(api: APIClient, body: Body) -> None:
    largest = {f"{number:064}": "v" * 512 for number in range(16)}
    assert api.post("/api/jobs/", body(metadata=largest), format="json").json()["metadata"] == largest


def test_it_changes_while_the_job_waits_and_is_told(api: APIClient, body: Body) -> None:
    job = api.post("/api/jobs/", body(metadata=PAIRS), format="json").json()
    options = Job.objects.get().options
    change = f"/api/jobs/{job['id']}/"
    assert api.patch(change, {"metadata": {"project": "none"}}, format="json").json()["metadata"] == {
        "project": "none"
    }
    events = api.get(f"/api/jobs/{job['id']}/events/").json()["data"]
    assert events[-1]["reason"] == "Its metadata was changed."
    assert Job.objects.get().options == options, "nothing was recommended anew"
    assert api.patch(change, {"metadata": {}}, format="json").json()["metadata"] == {}


def test_it_changes_until_the_job_ends() -> None:
    job = world.placed_job(world.fake_node(slots=1))
    api = token_client(job.owner)
    change = partial(api.patch, f"/api/jobs/{job.pk}/", format="json")
    assert change({"metadata": PAIRS}).json()["metadata"] == PAIRS
    api.post(f"/api/jobs/{job.pk}/cancel/")
    Job.objects.filter(pk=job.pk).update(state="cancelled", stop_for="")
    assert change({"metadata": {}}).status_code == 409


def test_the_form_takes_lines_and_the_page_shows_texts() -> None:
    first = world.job()
    client = Client()
    client.force_login(first.owner)
    lines = "project = summaries\r\n\r\nitems=<b>12</b>\r\nempty =\r\n"
    assert client.post("/jobs/new/", {**sent_by_form(first), "metadata": lines}).status_code == 302
    job = Job.objects.exclude(pk=first.pk).get()
    assert job.metadata == PAIRS
    page = client.get(f"/jobs/{job.pk}/").content.decode()
    assert "project</dt>" in page
    assert "&lt;b&gt;12&lt;/b&gt;" in page
    assert "<b>12</b>" not in page
    changed = client.post(f"/jobs/{job.pk}/change/", {"metadata": '{"a = b": "two\\nlines"}'})
    assert changed.status_code == 302
    job.refresh_from_db()
    assert job.metadata == {"a = b": "two\nlines"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("project", "Line 1 needs a = between key and value."),
        ("a = 1\na = 2", "Line 2 names a again"),
        ("= 1", "needs a key"),
        ('{"a": 1}', "a: must be a text"),
        ('{"a": ', "This is no JSON object"),
        ('{"a": "\\ud800"}', "This is no JSON object"),
        ("\n".join(f"{number} = 1" for number in range(17)), "16 pairs at most"),
    ],
)
def test_a_form_says_which_line_is_wrong(text: str, told: str) -> None:
    first = world.job()
    client = Client()
    client.force_login(first.owner)
    refused = client.post("/jobs/new/", {**sent_by_form(first), "metadata": text})
    assert refused.status_code == 400
    assert told in refused.context["form"].errors["metadata"][0]
    assert Job.objects.count() == 1


@pytest.mark.parametrize("pairs", [PAIRS, {"{": "x"}, {"a = b": " edges "}, {"two": "1\n2"}, {}])
def test_repeating_brings_it_along(pairs: dict[str, str]) -> None:
    job = world.job(metadata=pairs)
    assert ('"metadata"' in as_curl(job, portal="http://portal")) == bool(pairs)
    client = Client()
    client.force_login(job.owner)
    shown = client.get("/jobs/new/", {"from": job.pk}).context["form"]["metadata"].value() or ""
    client.post("/jobs/new/", {**sent_by_form(job), "metadata": shown})
    assert Job.objects.exclude(pk=job.pk).get().metadata == pairs


def test_a_question_about_a_start_does_not_keep_it(api: APIClient, body: Body) -> None:
    world.fake_node()
    assert api.post("/api/recommendations/start/", body(metadata=PAIRS), format="json").status_code == 202
    assert "metadata" not in StartQuestion.objects.get().request
