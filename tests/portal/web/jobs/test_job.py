"""One job's page through the test client."""

from __future__ import annotations

import json
import re
import shlex
from datetime import timedelta

import pytest
from django.http import HttpResponse
from django.test import Client
from rest_framework.test import APIClient

from portal.accounts.models import Membership, Team, User
from portal.clock import database_now
from scheduler.core.job_warnings import WARNINGS, Risk
from scheduler.loop.tick import tick
from scheduler.models import Job
from scheduler.selectors.figures.promise import new_prediction
from scheduler.services.jobs.verbs import cancel_job, pause_job
from tests.harness import fake_node, world
from tests.harness.fake_node import FakeNode
from trainer.protocol import ClaimOrder
from trainer.step_metrics import STEP_CHARTS

MARKUP = "<script>alert(1)</script>"


def text(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def running(job: Job, node: FakeNode, *logs: str) -> ClaimOrder:
    tick()
    order = node.take_up()
    reports = [{"kind": "log", "body": {"text": log}} for log in logs]
    node.run(order, fake_node.step(3), *reports)
    return order


def test_what_is_wrong_with_an_output_is_told_with_it(browser: Client, person: User, api: APIClient) -> None:
    node = world.fake_node(name="gpu-box")
    job = world.job(person)
    order = running(job, node)
    lost = f"Parts of the output are lost: layers.1.mlp. {MARKUP}"
    said = fake_node.result(output_warnings=[lost, 5, {"no": "sentence"}, ""])
    assert node.end(order, "succeeded", said).claims == ()
    page = text(browser, f"/jobs/{job.pk}/")
    assert "The output is not all that was trained." in page
    assert "lost: layers.1.mlp. &lt;script&gt;" in page
    assert MARKUP not in page
    assert api.get(f"/api/jobs/{job.pk}/").json()["output_warnings"] == [lost]


def test_how_the_data_were_read_is_told_from_the_start(browser: Client, person: User, api: APIClient) -> None:
    node = world.fake_node(name="gpu-box")
    job = world.job(person)
    tick()
    order = node.take_up()
    cut = f"8 rows of train.jsonl had more than 256 tokens and were cut {MARKUP}"
    node.run(order, {"kind": "start", "body": {"data_notes": [cut, None, ""]}})
    page = text(browser, f"/jobs/{job.pk}/")
    assert "8 rows of train.jsonl had more than 256 tokens and were cut &lt;script&gt;" in page
    assert MARKUP not in page
    assert api.get(f"/api/jobs/{job.pk}/").json()["data_notes"] == [cut]
    assert api.get(f"/api/jobs/{world.job(person).pk}/").json()["data_notes"] == []


def test_a_job_page_lives_until_the_job_has_ended(browser: Client, person: User) -> None:
    node = world.fake_node(name="gpu-box")
    job = world.job(person, name="My job")
    order = running(job, node)
    page = text(browser, f"/jobs/{job.pk}/")
    assert f'hx-get="/jobs/{job.pk}/live/"' in page
    assert f'hx-get="/jobs/{job.pk}/tabs/overview/"' in page
    assert "gpu-box" in page
    chart = browser.get(f"/jobs/{job.pk}/charts/loss/").json()
    assert (chart["final"], chart["data"][0]["x"]) == (False, [3])
    node.upload(order, "adapter/model.bin", b"weights")
    node.end(order, "succeeded", fake_node.result(first_loss=2.0))
    ended = text(browser, f"/jobs/{job.pk}/tabs/overview/")
    assert "hx-get" not in ended + text(browser, f"/jobs/{job.pk}/live/")
    assert f"/api/jobs/{job.pk}/artifacts/adapter/model.bin" in ended
    rates = browser.get(f"/jobs/{job.pk}/charts/throughput/").json()
    assert (rates["final"], rates["data"][0]["y"]) == (True, [1000.0])


def test_a_new_prediction_is_shown_beside_the_promise(browser: Client, person: User) -> None:
    node = world.fake_node()
    job = world.job(person)
    tick()
    order = node.take_up()
    started = {"steps_total": 10, "row_tokens": 5000, "startup_s": 2.0}
    node.run(order, {"kind": "start", "body": started})
    assert job.attempts.get().prediction is not None
    assert "New prediction" in text(browser, f"/jobs/{job.pk}/tabs/overview/")


def test_a_new_prediction_keeps_what_was_measured_and_ends_with_the_job(
    browser: Client, person: User
) -> None:
    node = world.fake_node()
    job = world.job(person)
    tick()
    order = node.take_up()
    node.run(order, {"kind": "start", "body": {"steps_total": 100, "row_tokens": 5000, "startup_s": 2.0}})
    for number in range(1, 6):
        report = fake_node.step(number)
        node.run(order, {**report, "body": {**report["body"], "step_s": 10.0}})
    job.refresh_from_db()
    running = new_prediction(job, None, database_now())
    pause_job(job=job, actor=person, now=database_now())
    node.end(order, "stopped")
    job.refresh_from_db()
    paused = new_prediction(job, None, database_now())
    assert running
    assert paused
    assert paused.tokens_per_second == running.tokens_per_second
    assert paused.duration_s.value == pytest.approx(95 * 10, rel=0.3)
    cancel_job(job=job, actor=person, now=database_now())
    page = text(browser, f"/jobs/{job.pk}/tabs/overview/")
    assert "New prediction" not in page
    assert f'<a href="/jobs/new/?from={job.pk}">the form with its values</a>' in page


def test_a_running_job_says_when_it_ends_and_what_it_is_warned_of(
    browser: Client, person: User, api: APIClient
) -> None:
    node = world.fake_node()
    job = world.job(person, deadline_at=database_now() + timedelta(seconds=300))
    tick()
    order = node.take_up()
    node.run(order, {"kind": "start", "body": {"steps_total": 100, "row_tokens": 5000}})
    for number in range(1, 6):
        report = fake_node.step(number)
        node.run(order, {**report, "body": {**report["body"], "step_s": 10.0}})
    live = text(browser, f"/jobs/{job.pk}/live/")
    assert "<dt>End</dt>" in live
    assert live.count(WARNINGS[Risk.LATE].text) == 1
    answer = api.get(f"/api/jobs/{job.pk}/").json()
    assert answer["progress"]["eta_s"] == pytest.approx(95 * 10, rel=0.3)
    assert (
        answer["progress"]["end"]["earliest"]
        < answer["progress"]["end"]["at"]
        < answer["progress"]["end"]["latest"]
    )
    assert [(one["code"], one["remedy"]) for one in answer["warnings"]] == [
        ("late", WARNINGS[Risk.LATE].remedy)
    ]
    assert api.get("/api/jobs/").json()["data"][0]["warnings"] == answer["warnings"]
    kinds = [event["type"] for event in api.get(f"/api/jobs/{job.pk}/events/").json()["data"]]
    assert kinds.count("job.deadline_at_risk") == 1
    overview = text(browser, f"/jobs/{job.pk}/tabs/overview/")
    assert "New prediction" in overview
    job.refresh_from_db()
    pause_job(job=job, actor=person, now=database_now())
    assert WARNINGS[Risk.LATE].text not in text(browser, f"/jobs/{job.pk}/live/")
    paused = api.get(f"/api/jobs/{job.pk}/").json()
    assert (paused["warnings"], paused["progress"]["eta_s"], paused["progress"]["end"]) == ([], None, None)


def test_a_state_says_for_how_long_and_a_last_one_how_long_ago(browser: Client, person: User) -> None:
    job = world.job(person)
    world.age_state(job, 600)
    live = text(browser, f"/jobs/{job.pk}/live/")
    assert re.search(r">for 1[0-4] min( \d+ s)?</time>", live), "ten minutes, and what a busy machine takes"
    browser.post(f"/jobs/{job.pk}/cancel/")
    assert ">just now</time>" in text(browser, f"/jobs/{job.pk}/live/")


def test_the_states_are_shown_with_how_long_they_lasted(browser: Client, person: User) -> None:
    job = world.job(person)
    browser.post(f"/jobs/{job.pk}/pause/")
    shown = browser.get(f"/jobs/{job.pk}/")
    assert [stretch.state for stretch in shown.context["stretches"]] == ["queued", "paused"]
    assert shown.context["stretches"][0].duration_s is not None


def test_why_a_job_waits_is_told(browser: Client, person: User) -> None:
    job = world.job(person)
    tick()
    assert "Why it waits" in text(browser, f"/jobs/{job.pk}/live/")


def test_the_log_is_shown_and_searched(browser: Client, person: User) -> None:
    node = world.fake_node()
    job = world.job(person)
    running(job, node, "Loading the model\nTraining begins\n", f"line {MARKUP}\n")
    assert "Training begins" in text(browser, f"/jobs/{job.pk}/?tab=log")
    found = text(browser, f"/jobs/{job.pk}/?tab=log&q=TRAIN")
    assert "1 line with" in found
    assert "Loading the model" not in found
    assert "No line contains" in text(browser, f"/jobs/{job.pk}/?tab=log&q=absent")
    assert MARKUP not in text(browser, f"/jobs/{job.pk}/?tab=log")


def test_a_search_that_is_too_long_is_told_at_its_field(browser: Client, person: User) -> None:
    job = world.job(person)
    assert "at most 200 characters" in text(browser, f"/jobs/{job.pk}/?tab=log&q={'x' * 300}")


def test_checkpoints_say_where_they_can_be_used(browser: Client, person: User) -> None:
    node = world.fake_node(name="gpu-box")
    job = world.job(person)
    order = running(job, node)
    node.save_checkpoint(order, 4)
    file = {"path": "w.bin", "sha256": "0" * 64, "bytes": 1}
    node.run(order, fake_node.checkpoint(5, [file], stored="node"))
    shown = text(browser, f"/jobs/{job.pk}/?tab=attempts")
    assert "in the portal" in shown
    assert "on gpu-box only" in shown


def test_a_failed_job_says_where_the_cause_lies_and_that_no_checkpoint_will_come(
    browser: Client, person: User
) -> None:
    node = world.fake_node()
    job = world.job(person)
    node.end(running(job, node), "error", reason="The loss is no number.")
    page = text(browser, f"/jobs/{job.pk}/?tab=attempts")
    assert "<strong>Data or code:</strong> The loss is no number." in page
    assert "None was kept." in page


def test_parameters_say_who_chose_them(browser: Client, person: User) -> None:
    job = world.job(person, params={"lora_r": 4})
    shown = text(browser, f"/jobs/{job.pk}/?tab=parameters")
    assert "LoRA rank" in shown
    assert '<div class="text-body-secondary">user</div>' in shown
    assert "Evidence" in shown


def test_events_name_who_acted(browser: Client, person: User) -> None:
    job = world.job(person)
    browser.post(f"/jobs/{job.pk}/pause/")
    shown = text(browser, f"/jobs/{job.pk}/?tab=events")
    assert "queued → paused" in shown
    assert "<td>ada</td>" in shown


def test_the_api_call_makes_the_same_job(browser: Client, person: User) -> None:
    team = Team.objects.create(name="Linguists")
    Membership.objects.create(team=team, user=person)
    job = world.job(person, name="it's mine", params={"max_steps": 3}, team=team)
    curl = browser.get(f"/jobs/{job.pk}/?tab=repeat").context["curl"]
    body = json.loads(shlex.split(curl)[-1])
    answer = browser.post("/api/jobs/", json.dumps(body), content_type="application/json")
    assert answer.status_code == 201
    again = Job.objects.get(pk=answer.json()["id"])
    assert (again.name, again.fixed, again.team) == (job.name, job.fixed, team)
    assert again.training_file == job.training_file


def test_names_are_shown_as_plain_text(browser: Client, person: User) -> None:
    job = world.job(person, name=MARKUP)
    for path in ("/", "/jobs/", f"/jobs/{job.pk}/", f"/jobs/{job.pk}/?tab=repeat"):
        page = text(browser, path)
        assert MARKUP not in page
        assert "&lt;script&gt;alert(1)" in page


def test_verbs_act_and_refusals_are_told(browser: Client, person: User) -> None:
    job = world.job(person)
    browser.post(f"/jobs/{job.pk}/pause/")
    assert Job.objects.get().state == "paused"
    for _ in range(2):  # what is so already stays so
        assert b"Only a paused" not in browser.post(f"/jobs/{job.pk}/resume/", follow=True).content
    assert job.events.filter(type="job.resumed").count() == 1
    browser.post(f"/jobs/{job.pk}/cancel/")
    assert Job.objects.get().state == "cancelled"
    assert b"Only a paused job" in browser.post(f"/jobs/{job.pk}/resume/", follow=True).content
    assert browser.post(f"/jobs/{job.pk}/delete/").status_code == 404
    assert browser.get(f"/jobs/{job.pk}/cancel/").status_code == 405


@pytest.mark.one_database
@pytest.mark.parametrize("part", ["", "live/", *(f"charts/{name}/" for name in STEP_CHARTS), "tabs/log/"])
def test_a_strangers_job_does_not_exist(browser: Client, part: str) -> None:
    job = world.job()
    foreign = browser.get(f"/jobs/{job.pk}/{part}")
    missing = browser.get(f"/jobs/ftjob-none/{part}")
    assert foreign.status_code == missing.status_code == 404
    assert unmasked(foreign) == unmasked(missing)
    assert browser.post(f"/jobs/{job.pk}/cancel/").status_code == 404


def unmasked(page: HttpResponse) -> bytes:
    """Return the content without the token of its sign-out form.

    The token is masked anew for every answer.
    """
    return page.content.replace(page.context["csrf_token"].encode(), b"")


@pytest.mark.one_database
@pytest.mark.parametrize("part", ["?tab=secrets", "tabs/secrets/", "charts/secrets/"])
def test_parts_that_do_not_exist_are_not_found(browser: Client, person: User, part: str) -> None:
    assert browser.get(f"/jobs/{world.job(person).pk}/{part}").status_code == 404


def test_jobs_that_a_reason_names_are_links_for_those_who_see_them(browser: Client, person: User) -> None:
    first, strangers = world.job(person, name="<b>pretrain</b>"), world.job(world.user("eve"), name="secret")
    job = world.job(person)
    Job.objects.filter(pk=job.pk).update(
        wait_code="dependency", wait_text=f"It comes after {first.pk}, {strangers.pk}."
    )
    link = f'It comes after <a href="/jobs/{first.pk}/">&lt;b&gt;pretrain&lt;/b&gt;</a>, {strangers.pk}.'
    for path in (f"/jobs/{job.pk}/", "/jobs/", "/queue/", "/"):
        shown = text(browser, path)
        assert link in shown
        assert "secret" not in shown
