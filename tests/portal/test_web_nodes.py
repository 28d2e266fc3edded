"""Nodes through the test client."""

from __future__ import annotations

from django.test import Client

from portal.accounts.models import User
from tests.harness import world


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
