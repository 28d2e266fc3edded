"""Nodes through the test client."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from portal.accounts.models import AuditEntry, Membership, Team, User
from scheduler.models import Gpu, Node
from tests.harness import world
from tests.harness.fake_node import result


def page(client: Client, path: str) -> str:
    return client.get(path).content.decode()


def test_people_look_and_administrators_act(browser: Client, person: User) -> None:
    node = world.fake_node(name="gpu-box")
    assert "gpu-box" in page(browser, "/nodes/")
    assert "Add a node" not in page(browser, "/nodes/")
    assert "Set the price" not in page(browser, f"/nodes/{node.node_id}/")
    for verb in ("drain", "resume", "price", "remove"):
        assert browser.post(f"/nodes/{node.node_id}/{verb}/", {"reason": "x"}).status_code == 403
    assert browser.post("/nodes/join-token/").status_code == 403
    User.objects.filter(pk=person.pk).update(is_staff=True)
    assert b"FORETUNE_JOIN_TOKEN=fjoin-" in browser.post("/nodes/join-token/").content


def test_a_node_that_gets_no_starts_since_it_fell_silent_says_so(browser: Client) -> None:
    heard, silent = world.fake_node(name="heard"), world.fake_node(name="gone")
    then = timezone.now() - timedelta(seconds=settings.NODE_SUSPECT_S + 5)
    Node.objects.filter(pk=silent.node_id).update(last_seen_at=then)
    for path in ("/nodes/", f"/nodes/{silent.node_id}/"):
        assert page(browser, path).count('state-silent">silent</span>') == 1
    assert "silent</span>" not in page(browser, f"/nodes/{heard.node_id}/")
    assert " on ready nodes" in page(browser, "/nodes/")


def test_the_page_of_a_node_tells_the_release_of_its_agent(browser: Client) -> None:
    path = f"/nodes/{world.fake_node().node_id}/"
    Node.objects.update(software={"foretune": "0.1.7"})
    assert "<dt>Agent version</dt><dd>0.1.7</dd>" in page(browser, path)


def test_the_page_of_a_node_tells_which_kernels_of_hybrids_it_has(browser: Client) -> None:
    path = f"/nodes/{world.fake_node().node_id}/"
    assert "Kernels of hybrids" not in page(browser, path)
    Node.objects.update(software={"torch": "2.13", "mamba-ssm": "2.3.0", "causal-conv1d": "1.6.0"})
    assert "<dt>Kernels of hybrids</dt><dd>causal-conv1d, mamba-ssm</dd>" in page(browser, path)


def test_without_a_package_there_is_no_command_but_a_remedy(
    browser: Client, admin: User, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.DATA_DIR = tmp_path
    monkeypatch.setattr("sys.executable", "/no/python")
    shown = browser.post("/nodes/join-token/").content.decode()
    assert "cannot be built" in shown
    assert "fjoin-" not in shown


def test_a_node_is_drained_and_resumed_with_reason_author_and_history(browser: Client, admin: User) -> None:
    path = f"/nodes/{world.fake_node().node_id}/"
    browser.post(path + "drain/", {"reason": "new disk", "move_jobs": "yes"})
    node = Node.objects.get()
    assert (node.state, node.reason, node.state_by, node.move_jobs) == ("draining", "new disk", admin, True)
    shown = page(browser, path)
    assert "by ada" in shown
    assert "new disk" in shown[shown.index("History") :]
    browser.post(path + "drain/", {"reason": "twice"})
    assert Node.objects.get().reason == "new disk"
    for reason in ("disk is in", "twice"):
        browser.post(path + "resume/", {"reason": reason})
        assert Node.objects.get().state == "ready"
    actions = Counter(AuditEntry.objects.values_list("action", flat=True))
    assert actions["node drained"] == actions["node resumed"] == 1, "what is so already stays so"


@pytest.mark.parametrize("reason", ["", "x" * 501, "a\x00b"])
def test_a_verb_needs_a_usable_reason(browser: Client, admin: User, reason: str) -> None:
    path = f"/nodes/{world.fake_node().node_id}/"
    answer = browser.post(path + "drain/", {"reason": reason})
    assert answer.status_code == 400
    assert list(answer.context["verb_form"].errors) == ["reason"]
    assert Node.objects.get().state == "ready"


def test_a_price_is_set_by_whoever_saw_the_one_before(browser: Client, admin: User) -> None:
    path = f"/nodes/{world.fake_node().node_id}/"
    browser.post(path + "price/", {"price": "2.5", "seen": "0.0"})
    assert Node.objects.get().price_per_gpu_hour == 2.5
    late = browser.post(path + "price/", {"price": "9", "seen": "0.0"}, follow=True)
    assert b"Someone else has changed the price" in late.content
    assert Node.objects.get().price_per_gpu_hour == 2.5
    assert AuditEntry.objects.filter(action="node price changed").count() == 1


@pytest.mark.parametrize("price", ["", "NaN", "1e999", "-1", "1,5", "9" * 400, "1e7", "x" * 100_000])
def test_a_price_that_is_none_is_told_at_its_field(browser: Client, admin: User, price: str) -> None:
    path = f"/nodes/{world.fake_node().node_id}/"
    answer = browser.post(path + "price/", {"price": price, "seen": "0.0"})
    assert answer.status_code == 400
    assert list(answer.context["price_form"].errors) == ["price"]


def test_a_node_with_work_is_not_removed(browser: Client, admin: User) -> None:
    node = world.fake_node()
    world.placed_job(node, owner=admin)
    path = f"/nodes/{node.node_id}/"
    assert b"drain it first" in browser.post(path + "remove/", follow=True).content
    Node.objects.update(state="drained")
    assert b"still has GPUs of this node" in browser.post(path + "remove/", follow=True).content
    assert Node.present.exists()


def test_a_removed_node_is_gone_but_its_jobs_name_it(browser: Client, admin: User) -> None:
    node = world.fake_node(name="old-box")
    job = world.placed_job(node, owner=admin)
    node.end(next(iter(node.orders.values())), "succeeded", result())
    Node.objects.update(state="drained")
    assert browser.post(f"/nodes/{node.node_id}/remove/")["Location"] == "/nodes/"
    assert "old-box" not in page(browser, "/nodes/")
    assert browser.get(f"/nodes/{node.node_id}/").status_code == 404
    assert "This node was removed" in page(browser, f"/nodes/{node.node_id}/live/")  # of a page that is open
    assert browser.post(f"/nodes/{node.node_id}/resume/", {"reason": "x"}).status_code == 404
    assert "old-box" in page(browser, f"/jobs/{job.pk}/?tab=attempts")
    assert "node removed" in page(browser, "/audit/")


def test_nodes_that_do_not_exist_are_not_found(browser: Client, admin: User) -> None:
    assert browser.get("/nodes/node-none/").status_code == 404
    assert browser.post("/nodes/node-none/drain/", {"reason": "x"}).status_code == 404
    assert browser.post(f"/nodes/{world.fake_node().node_id}/melt/").status_code == 404


def test_gpus_are_shown_with_their_use_and_links(browser: Client) -> None:
    node = world.fake_node(slots=2, model="NVIDIA-A100-SXM4-80GB", memory_bytes=80 << 30)
    Gpu.objects.update(util=0.5, memory_used_bytes=20 << 30)
    for index, other in ((0, 1), (1, 0)):
        Gpu.objects.filter(index=index).update(links={str(other): "NV12"})
    shown = page(browser, f"/nodes/{node.node_id}/")
    assert "NV12" in shown
    assert "50%" in shown
    assert "20.0 GiB of 80.0 GiB" in shown


def test_others_jobs_are_not_named_and_my_teams_are(browser: Client, person: User) -> None:
    node, team = world.fake_node(slots=2), Team.objects.create(name="Linguists")
    Membership.objects.create(team=team, user=person)
    world.placed_job(node, name="secret plan", params={"number_gpus": 1})
    world.placed_job(node, name="our plan", team=team, params={"number_gpus": 1})
    for path in ("/nodes/", f"/nodes/{node.node_id}/", f"/nodes/{node.node_id}/live/"):
        shown = page(browser, path)
        assert "secret plan" not in shown
        assert "another user's job" in shown
        assert "our plan" in shown
