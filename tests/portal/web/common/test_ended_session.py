"""Forms that are sent after their session has ended, or with an old mark."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from portal.accounts.models import Team, User
from scheduler.models import DatasetFile, Job
from tests.harness.forms import SentForm, form_to, forms_of

TYPED = 'half an "hour" of <b>typing</b>'
PASSWORD = "correct horse"


@pytest.fixture
def signed_in(person: User) -> Client:
    """A browser that has a session and checks marks, as a real one."""
    person.set_password(PASSWORD)
    person.is_staff = True
    person.save()
    client = Client(enforce_csrf_checks=True)
    sign_in(client, "/login/")
    return client


def sign_in(client: Client, page: str, **values: str) -> Any:
    form = form_to(client.get(page).content.decode(), "/login/")
    return client.post("/login/", {**form.values, "username": "ada", "password": PASSWORD, **values})


def end_session(client: Client) -> None:
    del client.cookies["sessionid"]


def form_of_teams(client: Client) -> SentForm:
    form = form_to(client.get("/teams/").content.decode(), "")
    form.action, form.values["name"] = "/teams/", "poets"
    return form


def send(client: Client, form: SentForm, **headers: str) -> Any:
    return client.post(form.action, form.values, headers=headers)


FORMS = (
    "/jobs/new/", "/jobs/import/", "/tokens/", "/teams/", "/users/", "/settings/", "/windows/", "/markets/",
    "/simulations/", "/policy/", "/logs/", "/users/limits/", "/nodes/",
)  # fmt: skip


@pytest.mark.parametrize("page", FORMS)
def test_what_was_typed_is_there_after_signing_in_again(signed_in: Client, page: str) -> None:
    forms = [form for form in forms_of(signed_in.get(page).content.decode()) if form.method == "post"]
    form = next(form for form in forms if "logout" not in form.action)
    form.action = form.action or page
    form.values["name"] = TYPED
    end_session(signed_in)
    asked = send(signed_in, form)
    assert asked.status_code == 401
    shown = asked.content.decode()
    assert "You have been signed out" in shown
    kept = form_to(shown, "/login/")
    wrong = signed_in.post("/login/", {**kept.values, "username": "ada", "password": "wrong"})
    kept = form_to(wrong.content.decode(), "/login/")
    back = signed_in.post("/login/", {**kept.values, "username": "ada", "password": PASSWORD})
    again = form_to(back.content.decode(), form.action.partition("#")[0])
    mark = form.values.pop("csrfmiddlewaretoken")
    assert again.values.pop("csrfmiddlewaretoken") != mark
    assert again.values == form.values


def test_nothing_happens_until_it_is_sent_again_and_then_once(
    signed_in: Client, data_file: DatasetFile
) -> None:
    form = form_to(signed_in.get("/jobs/new/").content.decode(), "/jobs/new/")
    form.values |= {"model": "builtin/tiny-llama", "training_file": data_file.pk, "name": TYPED}
    end_session(signed_in)
    kept = form_to(send(signed_in, form).content.decode(), "/login/")
    back = signed_in.post("/login/", {**kept.values, "username": "ada", "password": PASSWORD})
    assert not Job.objects.exists()
    again = form_to(back.content.decode(), "/jobs/new/")
    for _ in range(2):
        assert send(signed_in, again).status_code == 302
    assert Job.objects.get().name == TYPED


def test_a_form_with_an_old_mark_is_sent_again_by_its_writer(signed_in: Client) -> None:
    """Who signed in again in another window has another one."""
    form = form_of_teams(signed_in)
    end_session(signed_in)
    sign_in(signed_in, "/login/")
    refused = send(signed_in, form)
    assert refused.status_code == 403
    assert send(signed_in, form_to(refused.content.decode(), "/teams/")).status_code == 302
    assert Team.objects.get().name == "poets"


def test_without_session_and_mark_it_is_there_too(signed_in: Client) -> None:
    form = form_of_teams(signed_in)
    signed_in.cookies.clear()
    kept = form_to(send(signed_in, form).content.decode(), "/login/")
    back = signed_in.post("/login/", {**kept.values, "username": "ada", "password": PASSWORD})
    assert send(signed_in, form_to(back.content.decode(), "/teams/")).status_code == 302
    assert Team.objects.get().name == "poets"


@pytest.mark.parametrize(
    "headers", [{"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}, {"Origin": "null"}]
)
def test_another_origins_values_are_never_offered(signed_in: Client, headers: dict[str, str]) -> None:
    form = SentForm("/teams/", "post", {"name": "theirs"})
    for _ in range(2):
        answer = send(signed_in, form, **headers)
        assert answer.status_code == 403
        assert b"theirs" not in answer.content
        signed_in.cookies.clear()


def test_passwords_and_files_are_not_kept_and_files_are_named(signed_in: Client) -> None:
    mark = signed_in.cookies["csrftoken"].value
    end_session(signed_in)
    entered = {"old_password": PASSWORD, "new_password1": "another horse", "csrfmiddlewaretoken": mark}
    assert b"horse" not in signed_in.post("/password/", entered).content
    sent = {
        "csrfmiddlewaretoken": mark,
        "source": "foretune",
        "file": SimpleUploadedFile("a.csv", b"secret,row"),
    }
    answer = signed_in.post("/history/", sent)
    assert b"A file has to be chosen again" in answer.content
    assert b"secret" not in answer.content


def test_too_much_leads_to_signing_in_as_before(signed_in: Client) -> None:
    mark = signed_in.cookies["csrftoken"].value
    end_session(signed_in)
    answer = signed_in.post("/teams/", {"name": "x" * 100_000, "csrfmiddlewaretoken": mark})
    assert answer.status_code == 302


def test_parts_of_pages_and_programs_are_answered_as_before(signed_in: Client) -> None:
    end_session(signed_in)
    mark = signed_in.cookies["csrftoken"].value
    sent = {"csrfmiddlewaretoken": mark, "name": TYPED}
    assert signed_in.post("/jobs/new/start/", sent, headers={"HX-Request": "true"}).status_code == 401
    assert signed_in.post("/api/teams/", sent).json()["error"]["code"] == "not_authenticated"
