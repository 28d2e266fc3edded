"""A node as a picture, on its page and over REST, as far as the viewer may see jobs."""

from __future__ import annotations

import pytest
from django.test import Client

from portal.accounts.models import User
from portal.clock import database_now
from scheduler.loop.tick import tick
from scheduler.models import Job, Node
from tests.harness import world
from tests.harness.fake_node import FakeNode

pytestmark = pytest.mark.django_db


@pytest.fixture
def node() -> FakeNode:
    made = world.fake_node(slots=4)
    world.declare_sites(made, 4)
    return made


@pytest.fixture
def job(node: FakeNode) -> Job:
    """It holds the first two slots."""
    made = world.job(params={"number_gpus": 2}, name="summaries", topology="guaranteed", topology_level=3)
    tick()
    return made


def seen_by(person: User, node: FakeNode) -> tuple[str, dict[str, object]]:
    client = Client()
    client.force_login(person)
    page = client.get(f"/nodes/{node.node_id}/live/").content.decode()
    return page, client.get(f"/api/nodes/{node.node_id}/topology/").json()


def test_the_owner_sees_the_job_on_its_gpus_and_what_is_free(node: FakeNode, job: Job) -> None:
    page, reported = seen_by(job.owner, node)
    assert "As its owner declared it." in page
    assert page.count('class="gpu held"') == 2
    assert page.count(f'href="/jobs/{job.pk}/">summaries</a>') >= 2
    assert reported["declared"] is True
    assert [gpu["job"] for gpu in reported["gpus"]] == [job.pk, job.pk, None, None]  # type: ignore[attr-defined]
    assert reported["free"] == [
        {"gpus": 1, "level": "pcie"},
        {"gpus": 2, "level": "numa"},
        {"gpus": 4, "level": None},
    ]


def test_others_see_that_a_gpu_is_held_alone(node: FakeNode, job: Job) -> None:
    page, reported = seen_by(world.user(), node)
    assert "summaries" not in page
    assert page.count("another user&#x27;s job") + page.count("another user's job") >= 2
    assert [(gpu["busy"], gpu["job"]) for gpu in reported["gpus"]] == [  # type: ignore[attr-defined]
        (True, None), (True, None), (False, None), (False, None),
    ]  # fmt: skip


def test_a_warning_is_shown_where_nothing_is_known() -> None:
    node = world.fake_node(slots=2)
    Node.objects.filter(pk=node.node_id).update(topology_warning="GPU 1 reports nonsense.")
    page, reported = seen_by(world.user(), node)
    assert "GPU 1 reports nonsense." in page
    assert (reported["gpus"], reported["free"]) == ([], [])
    assert reported["warning"] == "GPU 1 reports nonsense."


def test_a_job_that_waits_for_closeness_says_so(node: FakeNode, job: Job) -> None:
    near = world.job(params={"number_gpus": 2}, topology="guaranteed", topology_level=3)
    tick()
    far = world.job(params={"number_gpus": 2}, topology="guaranteed", topology_level=3)
    tick()
    near.refresh_from_db()
    far.refresh_from_db()
    assert (near.state, far.wait_code) == ("assigned", "busy")
    assert near.submitted_at < database_now()
