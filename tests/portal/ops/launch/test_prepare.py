"""A start makes things ready."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from portal.clock import database_now
from portal.ops.launch.prepare import join_token
from scheduler.models import Node
from scheduler.services.deletions import remove_node
from tests.harness import world
from trainer.agent.portal_api.client import Portal
from trainer.agent.portal_api.enrol import use_saved_token
from trainer.agent.storage.folder import NodeFolder

pytestmark = pytest.mark.django_db
URL = "http://127.0.0.1:8000"


def test_this_machine_joins_once_and_again_after_its_node_was_removed(tmp_path: Path) -> None:
    world.fake_node(name="another")
    assert join_token(tmp_path, URL).startswith("fjoin-")
    own = Node.objects.get(pk=world.fake_node(name="own").node_id)
    token = tmp_path / "token.json"
    token.write_text(json.dumps({"node": own.pk, "token": "x"}))
    assert join_token(tmp_path, URL) == ""
    Node.objects.filter(pk=own.pk).update(state="lost")
    own.refresh_from_db()
    remove_node(node=own, actor=world.admin(), now=database_now())
    assert join_token(tmp_path, URL).startswith("fjoin-")
    assert not token.exists()


def test_a_node_finds_its_portal_under_another_port(tmp_path: Path) -> None:
    node, moved = world.fake_node(), "http://127.0.0.1:8001"
    folder = NodeFolder(tmp_path)
    folder.token_file.write_text(json.dumps({"portal": URL, "node": node.node_id, "token": node.token}))
    assert join_token(tmp_path, moved) == ""
    assert use_saved_token(Portal(moved), folder)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"node": null}'])
def test_a_damaged_token_file_does_not_keep_a_machine_out(content: str, tmp_path: Path) -> None:
    world.admin()
    (tmp_path / "token.json").write_text(content)
    assert join_token(tmp_path, URL).startswith("fjoin-")
