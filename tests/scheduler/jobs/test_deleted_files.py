"""Files of jobs: they count for their owner's quota, and are deleted on demand."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client

from portal.accounts.models import Membership, Role, Scope, Team
from portal.accounts.services import create_token
from portal.clock import database_now
from scheduler.errors import OverQuota
from scheduler.models import Job
from scheduler.selectors.files import storage_of
from tests.harness import world
from tests.harness.fake_node import FakeNode

pytestmark = pytest.mark.django_db


@pytest.fixture
def job(node: FakeNode) -> Job:
    """One that has left an output of 1,000 bytes."""
    job = world.placed_job(node)
    order = node.take_up()
    assert node.upload(order, "output/adapter.bin", bytes(1000)).status_code == 204
    node.end(order, "succeeded")
    return job


def headers(job: Job) -> dict[str, str]:
    _, token = create_token(owner=job.owner, name="t", now=database_now(), scope=Scope.WRITE)
    return {"Authorization": f"Bearer {token}"}


def test_what_jobs_left_counts_for_the_quota(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    assert storage_of(job.owner).used_bytes == job.training_file.bytes + 1000
    monkeypatch.setattr(settings, "STORAGE_QUOTA_BYTES", job.training_file.bytes + 1500)
    with pytest.raises(OverQuota, match="files of ended jobs"):
        world.data_file(job.owner, rows=30)


def test_they_are_deleted_by_a_program(job: Job, client: Client) -> None:
    address = f"/api/jobs/{job.pk}/artifacts/"
    assert client.delete(address, headers=headers(job)).status_code == 204
    assert storage_of(job.owner).used_bytes == job.training_file.bytes
    assert not list((Path(settings.DATA_DIR) / "artifacts" / job.pk).rglob("*.bin"))
    assert client.get(address, headers=headers(job)).json()["data"] == []
    assert job.events.get(type="job.files_deleted").data == {"files": 1, "bytes": 1000}
    assert client.delete(address, headers=headers(job)).status_code == 409


def test_they_are_deleted_on_the_page(job: Job, client: Client) -> None:
    client.force_login(job.owner)
    page = client.get(f"/jobs/{job.pk}/").content.decode()
    assert "Delete these files" in page
    client.post(f"/jobs/{job.pk}/delete-files/")
    assert not job.artifacts.exists()
    assert "Delete these files" not in client.get(f"/jobs/{job.pk}/").content.decode()


def test_who_only_sees_a_job_deletes_nothing_of_it(job: Job, client: Client) -> None:
    mate, team = world.user("mate"), Team.objects.create(name="vision")
    Membership.objects.create(team=team, user=mate)
    Job.objects.filter(pk=job.pk).update(team=team)
    _, token = create_token(owner=mate, name="t", now=database_now(), scope=Scope.WRITE)
    program = {"Authorization": f"Bearer {token}"}
    address = f"/api/jobs/{job.pk}/artifacts/"
    assert client.get(address, headers=program).status_code == 200
    assert client.delete(address, headers=program).status_code == 403
    client.force_login(mate)
    assert "Delete these files" not in client.get(f"/jobs/{job.pk}/").content.decode()
    client.post(f"/jobs/{job.pk}/delete-files/")
    assert job.artifacts.count() == 1
    Membership.objects.update(role=Role.LEAD)
    assert client.delete(address, headers=program).status_code == 204


def test_a_job_that_lives_keeps_its_files(node: FakeNode, client: Client) -> None:
    job = world.placed_job(node)
    order = node.take_up()
    node.save_checkpoint(order, 10)
    assert client.delete(f"/api/jobs/{job.pk}/artifacts/", headers=headers(job)).status_code == 409
    assert job.artifacts.count() == 1
