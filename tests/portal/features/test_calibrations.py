"""Calibrating a node from its page and over REST."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from portal.clock import database_now
from scheduler.models import Calibration, Job, Node
from scheduler.services.calibration.advance import advance_all
from tests.harness import world
from tests.harness.fake_node import FakeNode
from tests.scheduler.nodes.calibrating import Worker

BODY = {"budget_s": 600, "models": ["builtin/tiny-llama"], "runs": 4}


@pytest.fixture
def node(db: None) -> FakeNode:
    return world.fake_node(name="gpu-box")


def work_to_the_end(node: FakeNode) -> None:
    """As workers, scheduler and node do it, until nothing is open."""
    train = Worker(node)
    while Calibration.objects.filter(ended_at__isnull=True).exists():
        advance_all(now=database_now)
        train()


def test_the_button_starts_it_and_the_page_tells_how_far_it_is(
    node: FakeNode, admin_browser: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    path = f"/nodes/{node.node_id}/"
    assert b"Calibrate</button>" in admin_browser.get(path).content
    begun = admin_browser.post(path + "calibrate/", {"minutes": "10", "model": "builtin/tiny-llama"})
    assert begun["Location"] == path
    made = Calibration.objects.get()
    assert (made.until - made.requested_at).total_seconds() == 600
    assert made.requested_by.username == "ada"
    Calibration.objects.update(plan=made.plan[:6])
    shown = admin_browser.get(path).content.decode()
    used = re.compile(r"0 of 6 runs have ended and (\d+)% of the time is used")
    (begun_percent,) = used.findall(shown)
    assert int(begun_percent) < 10, "what the requests took"
    Calibration.objects.update(requested_at=made.requested_at - timedelta(seconds=400))
    later = admin_browser.get(path).content.decode()
    (later_percent,) = used.findall(later)
    assert 40 <= int(later_percent) < 50
    assert f'aria-valuenow="{later_percent}"' in later
    assert re.search(r"at most .* left\.", shown)
    assert "Calibrate</button>" not in shown, "one at a time"
    work_to_the_end(node)
    part = admin_browser.get(path + "calibration/").content.decode()
    assert "6 of 6 planned runs started." in part
    assert "each run predicted from dissimilar ones only" in part
    assert "Calibrate</button>" in part
    assert "hx-get" not in part, "nothing changes any more"
    assert "tokens/s" in part.lower()
    with django_assert_max_num_queries(12):
        admin_browser.get(path)


@pytest.mark.one_database
def test_a_refused_form_keeps_its_values_and_says_why_at_the_field(
    node: FakeNode, admin_browser: Client
) -> None:
    path = f"/nodes/{node.node_id}/calibrate/"
    unknown = admin_browser.post(path, {"minutes": "10", "model": "tiny-lama"})
    assert unknown.status_code == 400
    assert b"Did you mean" in unknown.content
    assert b'value="tiny-lama"' in unknown.content
    short = admin_browser.post(path, {"minutes": "1", "model": "random/llama3.1-8b"})
    assert list(short.context["calibration_form"].errors) == ["minutes"]
    for minutes in ("", "0", "1441", "1.5", "NaN", "9" * 400, "x"):
        wrong = admin_browser.post(path, {"minutes": minutes})
        assert (wrong.status_code, list(wrong.context["calibration_form"].errors)) == (400, ["minutes"])
    assert not Calibration.objects.exists()


def test_a_second_one_is_refused_and_the_first_can_be_called_off(
    node: FakeNode, admin_browser: Client
) -> None:
    path = f"/nodes/{node.node_id}/"
    for _ in range(2):
        answer = admin_browser.post(path + "calibrate/", {"minutes": "10"}, follow=True)
    assert b"is still going on" in answer.content
    made = Calibration.objects.get()
    advance_all(now=database_now)
    cancelled = admin_browser.post(f"{path}calibrations/{made.pk}/cancel/", follow=True).content.decode()
    assert "Unfinished runs are being cancelled" in cancelled
    advance_all(now=database_now)
    assert "Cancelled by ada." in admin_browser.get(path).content.decode()
    assert set(Job.objects.values_list("state", flat=True)) == {"cancelled"}
    assert admin_browser.post(f"{path}calibrations/cal-none/cancel/").status_code == 404


def test_only_administrators_calibrate(node: FakeNode, browser: Client) -> None:
    path = f"/nodes/{node.node_id}/"
    assert b"Calibration" not in browser.get(path).content
    assert browser.get(path + "calibration/").status_code == 403
    assert browser.post(path + "calibrate/", {"minutes": "10"}).status_code == 403
    assert browser.post(path + "calibrations/cal-1/cancel/").status_code == 403


def test_a_program_calibrates_a_node_and_reads_what_came_out(node: FakeNode, admin_api: APIClient) -> None:
    url = f"/api/nodes/{node.node_id}/calibrations/"
    response = admin_api.post(url, BODY, format="json")
    made = response.json()
    assert (response.status_code, made["state"], made["planned"], made["ended"]) == (201, "running", 4, 0)
    work_to_the_end(node)
    done = admin_api.get(f"{url}{made['id']}/").json()
    assert (done["state"], done["submitted"], done["ended"]) == ("done", 4, 4)
    assert done["judged_runs"] >= 1
    assert done["error_before"] > 0
    assert len(done["measured"]) >= 4
    assert {run["status"] for run in done["measured"]} == {"ok", "oom"}
    [listed] = admin_api.get(url).json()["data"]
    assert (listed["id"], "measured" in listed) == (made["id"], False)


def test_the_same_key_and_body_ask_once_and_a_second_one_conflicts(
    node: FakeNode, admin_api: APIClient
) -> None:
    url = f"/api/nodes/{node.node_id}/calibrations/"
    twins = [admin_api.post(url, BODY, format="json", HTTP_IDEMPOTENCY_KEY="k").json() for _ in range(2)]
    assert twins[0]["id"] == twins[1]["id"]
    refused = admin_api.post(url, BODY, format="json")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "conflict")


@pytest.mark.one_database
def test_a_program_cancels_once_and_is_told_when_it_is_too_late(node: FakeNode, admin_api: APIClient) -> None:
    url = f"/api/nodes/{node.node_id}/calibrations/"
    made = admin_api.post(url, BODY, format="json").json()
    assert admin_api.post(f"{url}{made['id']}/cancel/").json()["state"] == "stopping"
    advance_all(now=database_now)
    assert admin_api.post(f"{url}{made['id']}/cancel/").json()["state"] == "cancelled"
    other = admin_api.post(url, BODY, format="json").json()
    work_to_the_end(node)
    late = admin_api.post(f"{url}{other['id']}/cancel/")
    assert (late.status_code, late.json()["error"]["state"]) == (409, "done")
    assert admin_api.get(f"{url}cal-none/").status_code == 404
    assert admin_api.get("/api/nodes/node-none/calibrations/").status_code == 404


@pytest.mark.one_database
@pytest.mark.parametrize(
    "wrong",
    [{"budget_s": "600"}, {"budget_s": 0}, {"budget_s": 1e9}, {"models": "x"}, {"models": ["tiny-lama"]},
     {"models": [1]}, {"runs": 0}, {"runs": 1.0}, {"minutes": 5}, {"budget_s": 1, "models": []}],
)  # fmt: skip
def test_a_wrong_value_is_named(wrong: dict[str, object], node: FakeNode, admin_api: APIClient) -> None:
    refused = admin_api.post(f"/api/nodes/{node.node_id}/calibrations/", wrong, format="json")
    assert refused.status_code == 400
    named = [name.split(".")[0] for name in refused.json()["error"]["fields"]]
    assert named == list(wrong)[:1]
    assert not Calibration.objects.exists()


def test_a_drained_node_is_not_calibrated(node: FakeNode, admin_api: APIClient) -> None:
    Node.objects.update(state="drained")
    refused = admin_api.post(f"/api/nodes/{node.node_id}/calibrations/", BODY, format="json")
    assert refused.status_code == 409
    assert "only a ready node" in refused.json()["error"]["message"]
