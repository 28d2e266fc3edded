"""Pages through the Django test client: what they show, refuse and cost."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from portal.accounts.models import User
from scheduler.loop.tick import tick
from scheduler.models import DatasetFile, Job
from tests.harness import fake_node, world

PAGES = ("/jobs/", "/jobs/new/", "/jobs/new/advice/", "/jobs/ftjob-x/", "/jobs/ftjob-x/chart/", "/nodes/")
MARKUP = "<script>alert(1)</script>"


@pytest.fixture
def form(data_file: DatasetFile) -> Callable[..., dict[str, Any]]:
    """The form as a browser sends it: empty fields are sent as well."""

    def make(**values: Any) -> dict[str, Any]:
        filled = {"model": "builtin/tiny-llama", "training_file": data_file.pk, "goal": "balanced"}
        return {**filled, "name": "", "key": "form-1", "params-epochs": "", **values}

    return make


@pytest.mark.parametrize("path", PAGES)
def test_pages_are_for_people_who_signed_in(path: str, client: Client, db: None) -> None:
    assert client.get(path)["Location"].startswith("/login/?next=")


def test_signing_in_and_out(client: Client, person: User) -> None:
    wrong = client.post("/login/", {"username": "ada", "password": "no"})
    assert b"The name or the password is wrong" in wrong.content
    assert client.post("/login/", {"username": "ada", "password": "x"})["Location"] == "/jobs/"
    assert client.post("/logout/")["Location"] == "/login/"
    assert client.get("/jobs/").status_code == 302


def test_ten_wrong_passwords_lock_the_door(client: Client, person: User) -> None:
    answers = [client.post("/login/", {"username": "ada", "password": "no"}) for _ in range(11)]
    assert answers[-1].status_code == 429


def test_a_form_without_its_csrf_token_is_refused_in_words(person: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(person)
    answer = client.post("/jobs/new/", {})
    assert answer.status_code == 403
    assert b"load it again" in answer.content


def test_two_fields_submit_a_job(browser: Client, form: Callable[..., dict[str, Any]]) -> None:
    answer = browser.post("/jobs/new/", form())
    job = Job.objects.get()
    assert answer["Location"] == f"/jobs/{job.pk}/"
    assert job.fixed == {}


def test_a_file_can_be_sent_with_the_form(browser: Client) -> None:
    upload = SimpleUploadedFile("rows.jsonl", world.training_lines(5))
    answer = browser.post("/jobs/new/", {"model": "builtin/tiny-llama", "upload": upload, "key": "k"})
    assert answer.status_code == 302
    assert Job.objects.get().training_file.rows == 5


def test_a_double_click_and_the_back_button_make_one_job(
    browser: Client, form: Callable[..., dict[str, Any]]
) -> None:
    places = {browser.post("/jobs/new/", form())["Location"] for _ in range(3)}
    assert len(places) == Job.objects.count() == 1
    changed = browser.post("/jobs/new/", form(name="other"))
    assert b"This form was sent before" in changed.content
    assert Job.objects.count() == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("model", ""),
        ("model", "x" * 301),
        ("model", "no-such-model"),
        ("model", "a\x00b"),
        ("training_file", "file-none"),
        ("training_file", ""),
        ("name", "x" * 1_000_000),
        ("goal", "best"),
        ("params-epochs", "NaN"),
        ("params-epochs", "1e999"),
        ("params-epochs", "-1"),
        ("params-epochs", "1,5"),
        ("params-lora_r", "9" * 400),
        ("params-lora_r", "1.5"),
        ("params-seed", "\ud800".encode("utf-8", "surrogatepass").decode("utf-8", "replace")),
        ("params-method", "magic"),
        ("params-gpu_model", "abacus"),
    ],
)
def test_a_wrong_value_is_told_at_its_field_and_the_others_are_kept(
    browser: Client, form: Callable[..., dict[str, Any]], field: str, value: str
) -> None:
    answer = browser.post("/jobs/new/", form(**{"params-max_steps": "7", field: value}))
    assert answer.status_code == 400
    assert list(answer.context["form"].errors) == [field]
    assert b'value="7"' in answer.content
    assert not Job.objects.exists()


def test_hidden_extra_fields_are_ignored_and_logged(
    browser: Client, form: Callable[..., dict[str, Any]], caplog: pytest.LogCaptureFixture, person: User
) -> None:
    with caplog.at_level(logging.WARNING):
        browser.post("/jobs/new/", form(owner="1", state="succeeded"))
    job = Job.objects.get()
    assert (job.owner, job.state) == (person, "queued")
    assert "owner, state" in caplog.text


def test_a_chosen_file_is_stored_at_once_or_refused_by_line(browser: Client) -> None:
    good = browser.post(
        "/jobs/new/upload/", {"upload": SimpleUploadedFile("a.jsonl", world.training_lines(3))}
    )
    stored = DatasetFile.objects.get()
    assert f'value="{stored.pk}" selected' in good.content.decode()
    bad = browser.post("/jobs/new/upload/", {"upload": SimpleUploadedFile("a.jsonl", b"{bad")})
    assert b"line 1" in bad.content


def test_the_recommendation_is_shown_with_reasons(browser: Client, data_file: DatasetFile) -> None:
    world.fake_node()
    query = {"model": "builtin/tiny-llama", "training_file": data_file.pk}
    shown = browser.get("/jobs/new/advice/", query).content.decode()
    assert "Tokens per second" in shown
    assert "Learning rate" in shown
    unknown = browser.get("/jobs/new/advice/", {**query, "model": "llama-banana"}).content.decode()
    assert "is not in the catalogue" in unknown


def test_a_job_page_lives_until_the_job_has_ended(browser: Client, person: User) -> None:
    node = world.fake_node(name="gpu-box")
    job = world.job(person, name="My job")
    tick()
    order = node.take_up()
    node.run(order, fake_node.step(3), {"kind": "log", "body": {"text": f"line {MARKUP}"}})
    page = browser.get(f"/jobs/{job.pk}/").content.decode()
    assert f'hx-get="/jobs/{job.pk}/live/"' in page
    assert "gpu-box" in page
    assert MARKUP not in page
    chart = browser.get(f"/jobs/{job.pk}/chart/").json()
    assert (chart["final"], chart["data"][0]["x"]) == (False, [3])
    node.upload(order, "adapter/model.bin", b"weights")
    node.end(order, "succeeded", fake_node.result(first_loss=2.0))
    live = browser.get(f"/jobs/{job.pk}/live/").content.decode()
    assert "hx-get" not in live
    assert f"/api/jobs/{job.pk}/artifacts/adapter/model.bin" in live
    assert browser.get(f"/jobs/{job.pk}/chart/").json()["final"] is True


def test_a_job_page_is_within_twelve_queries(
    browser: Client, person: User, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    job = world.placed_job(world.fake_node(), owner=person)
    for path in (f"/jobs/{job.pk}/", "/jobs/", "/nodes/", "/jobs/new/"):
        with django_assert_max_num_queries(12):
            assert browser.get(path).status_code == 200


def test_names_are_shown_as_plain_text(browser: Client, person: User) -> None:
    job = world.job(person, name=MARKUP)
    for path in ("/jobs/", f"/jobs/{job.pk}/"):
        page = browser.get(path).content.decode()
        assert MARKUP not in page
        assert "&lt;script&gt;alert(1)" in page


def test_verbs_act_and_refusals_are_told(browser: Client, person: User) -> None:
    job = world.job(person)
    browser.post(f"/jobs/{job.pk}/pause/")
    assert Job.objects.get().state == "paused"
    assert b"Only a paused" not in browser.post(f"/jobs/{job.pk}/resume/", follow=True).content
    assert b"Only a paused job" in browser.post(f"/jobs/{job.pk}/resume/", follow=True).content
    browser.post(f"/jobs/{job.pk}/cancel/")
    assert Job.objects.get().state == "cancelled"
    assert browser.post(f"/jobs/{job.pk}/delete/").status_code == 404
    assert browser.get(f"/jobs/{job.pk}/cancel/").status_code == 405


def test_a_strangers_job_does_not_exist(browser: Client) -> None:
    job = world.job()
    for part in ("", "live/", "chart/"):
        assert browser.get(f"/jobs/{job.pk}/{part}").status_code == 404
    assert browser.post(f"/jobs/{job.pk}/cancel/").status_code == 404


def test_the_list_filters_and_pages(browser: Client, person: User) -> None:
    jobs = [world.job(person, name=f"job number {n}") for n in range(3)]
    assert b"job number 2" in browser.get("/jobs/", {"state": "queued"}).content
    assert b"job number 2" not in browser.get("/jobs/", {"state": "failed"}).content
    assert b"job number 2" not in browser.get("/jobs/", {"after": jobs[1].pk}).content
    fragment = browser.get("/jobs/", headers={"HX-Request": "true"}).content
    assert b"<html" not in fragment
    assert b"job number 0" in fragment


def test_people_see_nodes_and_administrators_change_them(browser: Client, person: User) -> None:
    node = world.fake_node(name="gpu-box")
    page = browser.get("/nodes/").content
    assert b"gpu-box" in page
    assert b"Add a node" not in page
    assert browser.post(f"/nodes/{node.node_id}/drain/").status_code == 403
    assert browser.post("/nodes/join-token/").status_code == 403
    User.objects.filter(pk=person.pk).update(is_staff=True)
    assert b"--join fjoin-" in browser.post("/nodes/join-token/").content
    assert b"draining" in browser.post(f"/nodes/{node.node_id}/drain/", follow=True).content
    assert browser.post(f"/nodes/{node.node_id}/resume/", follow=True).status_code == 200
    assert b"only a drained or blocked" in browser.post(f"/nodes/{node.node_id}/resume/", follow=True).content
    assert browser.post("/nodes/node-none/drain/").status_code == 404


def test_others_jobs_are_not_named_on_the_nodes_page(browser: Client) -> None:
    world.placed_job(world.fake_node(), name="secret plan")
    assert b"secret plan" not in browser.get("/nodes/").content
