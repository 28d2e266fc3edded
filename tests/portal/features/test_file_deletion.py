"""Deletion of uploads, unless a job still needs them.

Only permitted users may delete them; jobs keep the names of their files.
"""

from __future__ import annotations

import re
import threading
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connections
from django.test import Client
from rest_framework.test import APIClient

from portal.accounts.models import AuditEntry, Membership, Team, User
from portal.clock import database_now
from scheduler.loop.sweeps import sweep
from scheduler.models import DatasetFile, Job
from scheduler.selectors.files import storage_of
from scheduler.services.deletions import delete_file
from scheduler.services.files.uploads import path_of
from scheduler.services.jobs import recommend
from scheduler.services.jobs.verbs import cancel_job
from tests.harness import world
from tests.portal.conftest import token_client

pytestmark = pytest.mark.django_db(transaction=True)


def delete(api: APIClient, file: DatasetFile) -> Any:
    return api.delete(f"/api/files/{file.pk}/")


def ended_job(owner: User, file: DatasetFile, **values: Any) -> Job:
    job = world.job(owner, training_file=file, **values)
    cancel_job(job=job, actor=owner, now=database_now())
    return job


def test_a_deleted_file_is_gone_and_jobs_still_say_what_it_was(
    api: APIClient, browser: Client, person: User, data_file: DatasetFile
) -> None:
    job = ended_job(person, data_file, validation_file=data_file)
    assert storage_of(person).used_bytes == data_file.bytes
    assert delete(api, data_file).status_code == 204
    assert not path_of(data_file.sha256).exists()
    assert storage_of(person).used_bytes == 0
    assert api.get("/api/files/").json()["data"] == []
    assert api.get(f"/api/files/{data_file.pk}/").status_code == 404
    assert delete(api, data_file).status_code == 404
    answer = api.get(f"/api/jobs/{job.pk}/").json()
    assert answer["training_file"] == data_file.pk
    assert answer["deleted_files"] == ["training_file", "validation_file"]
    page = browser.get(f"/jobs/{job.pk}/").content.decode()
    assert "data.jsonl (20 rows, deleted" in page
    again = browser.get(f"/jobs/new/?from={job.pk}").content.decode()
    assert "data.jsonl has been deleted" in again
    entry = AuditEntry.objects.get(action="file deleted")
    assert (entry.actor, entry.target, entry.data["owner"]) == (person, data_file.pk, "ada")


def test_a_file_that_jobs_need_is_kept_and_the_jobs_are_named(
    api: APIClient, person: User, data_file: DatasetFile
) -> None:
    other = world.data_file(person, rows=3)
    named = world.job(person, training_file=data_file, name="mine")
    validating = world.job(person, training_file=other, validation_file=data_file)
    foreign = world.job(world.user("eve"), training_file=data_file, name="secret")
    refused = delete(api, data_file)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "conflict")
    answer = refused.json()["error"]["message"]
    assert f"mine ({named.pk})" in answer
    assert validating.pk in answer
    assert "1 more" in answer
    assert foreign.pk not in answer
    assert "secret" not in answer
    for job in (named, validating):
        cancel_job(job=job, actor=person, now=database_now())
    answer = delete(api, data_file).json()["error"]["message"]
    assert "jobs that you cannot see" in answer
    cancel_job(job=foreign, actor=None, now=database_now())
    assert delete(api, data_file).status_code == 204


def test_content_that_another_file_has_too_stays(api: APIClient, data_file: DatasetFile) -> None:
    twin = world.data_file(world.user("eve"))
    assert twin.sha256 == data_file.sha256
    assert delete(api, data_file).status_code == 204
    assert path_of(twin.sha256).exists()
    assert delete(token_client(twin.owner), twin).status_code == 204
    assert not path_of(twin.sha256).exists()
    assert world.data_file(twin.owner).sha256 == twin.sha256
    assert path_of(twin.sha256).exists()


@pytest.mark.parametrize(
    ("role", "status"), [("stranger", 404), ("member", 403), ("lead", 204), ("administrator", 204)]
)
def test_leads_delete_their_teams_files_and_members_do_not(
    person: User, data_file: DatasetFile, role: str, status: int
) -> None:
    team, asker = Team.objects.create(name="owls"), world.user(is_staff=role == "administrator")
    DatasetFile.objects.update(team=team)
    if role in ("member", "lead"):
        Membership.objects.create(team=team, user=asker, role=role)
    browser = Client()
    browser.force_login(asker)
    page = browser.get("/files/").content.decode()
    assert ("data.jsonl" in page) == (role != "stranger")
    assert (f"/files/{data_file.pk}/delete/" in page) == (status == 204)
    assert delete(token_client(asker), data_file).status_code == status
    assert DatasetFile.present.exists() == (status != 204)


def test_the_page_of_files_says_what_uses_them_and_deletes_them(
    browser: Client, person: User, data_file: DatasetFile
) -> None:
    ended_job(person, data_file)
    live = world.job(person, training_file=data_file)
    page = browser.get("/files/").content.decode()
    assert "2 jobs" in page
    assert "1 unfinished" in page
    (content,) = re.findall(r'href="([^"]*)" download>data.jsonl', page)
    assert b"".join(browser.get(content).streaming_content) == path_of(data_file.sha256).read_bytes()
    address = f"/files/{data_file.pk}/delete/"
    assert f"Still needed by {live.pk}" in browser.post(address, follow=True).content.decode()
    cancel_job(job=live, actor=person, now=database_now())
    assert "data.jsonl has been deleted" in browser.post(address, follow=True).content.decode()
    assert browser.post(address).status_code == 404
    assert "No files yet" in browser.get("/files/").content.decode()


def test_a_job_that_is_submitted_while_its_file_is_deleted_is_refused(
    api: APIClient, person: User, data_file: DatasetFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = recommend.current_recommender

    def meanwhile(**asked: Any) -> Any:
        delete_file(file=data_file, actor=person, now=database_now())
        return look(**asked)

    monkeypatch.setattr(recommend, "current_recommender", meanwhile)
    body = {"model": "builtin/tiny-llama", "training_file": data_file.pk}
    refused = api.post("/api/jobs/", body, format="json")
    assert (refused.status_code, list(refused.json()["error"]["fields"])) == (400, ["training_file"])
    assert not Job.objects.exists()


def test_content_that_is_stored_again_while_it_is_deleted_is_not_lost(person: User) -> None:
    for _ in range(5):
        earlier, barrier = world.data_file(person), threading.Barrier(2)

        def delete_it(file: DatasetFile = earlier, barrier: threading.Barrier = barrier) -> None:
            barrier.wait()
            delete_file(file=file, actor=person, now=database_now())
            connections.close_all()

        def store_it(barrier: threading.Barrier = barrier) -> None:
            barrier.wait()
            world.data_file(person)
            connections.close_all()

        both = [threading.Thread(target=act) for act in (delete_it, store_it)]
        for thread in both:
            thread.start()
        for thread in both:
            thread.join()
        left = DatasetFile.present.get()
        assert path_of(left.sha256).exists()
        delete_file(file=left, actor=person, now=database_now())
        assert not path_of(left.sha256).exists()


def test_content_that_a_killed_process_left_is_swept(person: User, data_file: DatasetFile) -> None:
    DatasetFile.objects.update(deleted_at=database_now() - timedelta(hours=1))
    sweep(database_now())
    assert not path_of(data_file.sha256).exists()


def test_a_full_quota_says_that_files_can_be_deleted(
    api: APIClient, data_file: DatasetFile, settings: Any
) -> None:
    settings.STORAGE_QUOTA_BYTES = data_file.bytes

    def upload() -> Any:
        file = SimpleUploadedFile("a.jsonl", world.training_lines(1))
        return api.post("/api/files/", {"file": file}, format="multipart")

    assert "DELETE /api/files/ID/" in upload().json()["error"]["message"]
    assert delete(api, data_file).status_code == 204
    assert upload().status_code == 201
