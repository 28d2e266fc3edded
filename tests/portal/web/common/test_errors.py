"""Error messages of the pages.

They stand at the field, serve every reader, and offer a way on.
"""

from __future__ import annotations

import errno
import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from portal.accounts.models import User
from scheduler.models import DatasetFile
from scheduler.services.files import storage
from tests.harness import world


def field(page: str, name: str) -> str:
    """The tag of the field with this name."""
    found = re.search(rf'<(?:input|select|textarea)[^>]* name="{name}"[^>]*>', page)
    assert found, name
    return found[0]


def complaint(page: str, name: str) -> str:
    """The text that the field with this name points to as its error."""
    tag = field(page, name)
    assert 'aria-invalid="true"' in tag, tag
    pointed = re.search(r'aria-describedby="([^"]*)"', tag)
    assert pointed, tag
    reported = re.search(rf'id="{pointed[1].split()[-1]}">(.*?)</div></div>', page, re.DOTALL)
    assert reported, pointed[1]
    return re.sub("<[^>]+>", "", reported[1]).strip()


def test_a_field_points_to_its_error_and_its_help(browser: Client, data_file: DatasetFile) -> None:
    values = {"model": "", "training_file": data_file.pk, "goal": "deadline", "params-epochs": "many"}
    page = browser.post("/jobs/new/", values).content.decode()
    assert complaint(page, "model") == "This field is required."
    assert complaint(page, "params-epochs") == "Enter a number in the digits 0 to 9, e.g. 0.5 or 1e-4."
    named = re.search(r'aria-describedby="([^"]*)"', field(page, "params-epochs"))
    assert named
    assert all(f'id="{name}"' in page for name in named[1].split())


def test_what_a_service_refuses_is_told_at_its_field_too(browser: Client, data_file: DatasetFile) -> None:
    values = {"model": "builtin/tiny-llama", "training_file": data_file.pk, "goal": "deadline"}
    page = browser.post("/jobs/new/", values).content.decode()
    assert "is needed for the goal deadline" in complaint(page, "deadline_at")


def test_a_refused_upload_is_told_at_its_field(browser: Client) -> None:
    values = {"model": "builtin/tiny-llama", "upload": SimpleUploadedFile("x.jsonl", b"[]")}
    page = browser.post("/jobs/new/", values).content.decode()
    assert "the file is empty; it needs at least one row" in complaint(page, "upload")


def test_forms_of_administrators_point_to_their_errors(admin_browser: Client) -> None:
    page = admin_browser.post("/users/", {"username": "a b", "email": "nowhere"}).content.decode()
    assert "valid email" in complaint(page, "email")
    assert "valid username" in complaint(page, "username")


def test_a_wrong_password_does_not_cost_the_name(person: User) -> None:
    page = Client().post("/login/", {"username": person.username, "password": "wrong"}).content.decode()
    assert f'value="{person.username}"' in field(page, "username")
    assert "autofocus" in field(page, "password")
    assert "wrong" not in field(page, "password")


@pytest.fixture
def _full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(storage.os, "fsync", no_room)


@pytest.mark.usefixtures("_full_disk")
def test_a_full_disk_is_told_at_the_upload_and_with_the_form(browser: Client) -> None:
    def upload() -> SimpleUploadedFile:
        return SimpleUploadedFile("x.jsonl", world.training_lines())

    assert "disk is full" in browser.post("/jobs/new/upload/", {"upload": upload()}).content.decode()
    refused = browser.post("/jobs/new/", {"model": "builtin/tiny-llama", "upload": upload()})
    assert refused.status_code == 400
    assert "disk is full" in complaint(refused.content.decode(), "upload")
    assert not DatasetFile.objects.exists()


def test_a_disk_that_fills_up_elsewhere_is_no_mistake_of_the_portal(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("portal.web.jobs.uploads.stored", no_room)
    browser.raise_request_exception = False
    answer = browser.post("/jobs/new/upload/", {"upload": SimpleUploadedFile("x.jsonl", b"{}")})
    assert answer.status_code == 507
    assert "A disk of the portal is full" in answer.content.decode()


def test_the_address_of_a_form_is_no_blank_page(browser: Client, person: User) -> None:
    job = world.job(person)
    answer = browser.get(f"/jobs/{job.pk}/cancel/")
    assert (answer.status_code, answer["Allow"]) == (405, "POST")
    page = answer.content.decode()
    assert "Go back to the page and use its links and buttons" in page
    assert "Sign out" in page, "the navigation is there"
    assert browser.get("/nodes/").status_code == 200
    reported = browser.put("/api/jobs/")
    assert (reported.status_code, reported.json()["error"]["code"]) == (405, "method_not_allowed")


def test_who_is_locked_out_is_told_for_how_long(person: User) -> None:
    client = Client()
    for _ in range(10):
        answer = client.post("/login/", {"username": person.username, "password": "wrong"})
    assert (answer.status_code, answer["Retry-After"]) == (429, "900")
    assert "locked for your address for 15 minutes" in answer.content.decode()


def test_twenty_lines_with_one_mistake_are_told_once(browser: Client) -> None:
    bad = b'{"messages": [{"content": "a"}]}\n' * 25
    page = browser.post("/jobs/new/upload/", {"upload": SimpleUploadedFile("x.jsonl", bad)}).content.decode()
    assert "lines 1 to 20: messages[0].role must be one of" in page
    assert page.count("must be one of") == 1


def test_no_page_to_sign_in_is_put_into_a_part_of_another_page(client: Client) -> None:
    part = client.get("/jobs/", headers={"HX-Request": "true"})
    assert (part.status_code, part.content) == (401, b"")
    assert client.get("/jobs/")["Location"] == "/login/?next=/jobs/"
