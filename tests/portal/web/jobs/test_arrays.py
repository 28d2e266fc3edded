"""Jobs that come after whole arrays, through the form and on their pages."""

from __future__ import annotations

import re
from typing import Any

from django.test import Client

from portal.accounts.models import User
from portal.clock import database_now
from scheduler.loop.tick import tick
from scheduler.models import Job, JobArray
from scheduler.services.jobs.arrays import submit_array
from tests.harness import world


def array_of(person: User, name: str = "rates") -> JobArray:
    same: Any = {"model": "builtin/tiny-llama", "training_file": world.data_file(person), "name": name}
    return submit_array(owner=person, values=[{"seed": 1}, {"seed": 2}], now=database_now(), **same)


def test_a_job_comes_after_a_whole_array_and_can_be_repeated(browser: Client, person: User) -> None:
    world.fake_node(slots=3)
    array = array_of(person)
    form = browser.get("/jobs/new/").content.decode()
    assert re.search(f'<optgroup label="Whole arrays">\\s*<option value="{array.pk}">', form)
    assert f"all 2 jobs of rates …{array.pk[-6:]}" in form
    file = world.data_file(person).pk
    sent = {
        "model": "builtin/tiny-llama",
        "training_file": file,
        "goal": "balanced",
        "key": "a",
        "name": "last",
    }
    answer = browser.post("/jobs/new/", {**sent, "after": array.pk, "after_kind": "ended"})
    assert answer.status_code == 302, answer.content
    last = Job.objects.get(name="last")
    assert list(last.dependencies.values_list("on_array", "kind")) == [(array.pk, "ended")]
    tick()
    page = browser.get(f"/jobs/{last.pk}/").content.decode()
    link = f'<a href="/jobs/?q={array.pk}">{array.pk}</a>'
    assert f"It comes after {link}." in page
    assert f"All jobs of {link}" in page
    assert "must end; now 2 queued" in page
    again = browser.get(f"/jobs/new/?from={last.pk}").content.decode()
    assert f'<option value="{array.pk}" selected>' in again
    repeat = browser.get(f"/jobs/{last.pk}/?tab=repeat").content.decode()
    assert f"&quot;array&quot;: &quot;{array.pk}&quot;" in repeat


def test_arrays_of_others_and_of_nobody_are_refused_at_the_field(browser: Client, person: User) -> None:
    theirs, mine = array_of(world.user("other")), world.job(person)
    sent = {"model": "builtin/tiny-llama", "training_file": mine.training_file_id, "key": "a"}
    for wrong, kind in ((theirs.pk, "array"), ("ftarray-none", "array"), ("<b>", "job"), ("a\x00b", "job")):
        page = browser.post("/jobs/new/", {**sent, "after": wrong}).content.decode()
        assert f"is not the id of one of your {kind}s." in page
    assert "Whole arrays" not in page, "none of them goes on that is the person's own"
    assert Job.objects.filter(owner=person).count() == 1
