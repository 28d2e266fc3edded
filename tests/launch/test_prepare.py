"""What a start makes ready."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from portal.launch.prepare import join_token
from scheduler.models import Node
from scheduler.selectors.clock import database_now
from scheduler.services.removals import remove_node
from tests.harness import world

pytestmark = pytest.mark.django_db


def test_this_machine_joins_once_and_again_after_its_node_was_removed(tmp_path: Path) -> None:
    world.fake_node(name="another")
    assert join_token(tmp_path).startswith("fjoin-")
    own = Node.objects.get(pk=world.fake_node(name="own").node_id)
    token = tmp_path / "token.json"
    token.write_text(json.dumps({"node": own.pk, "token": "x"}))
    assert join_token(tmp_path) == ""
    Node.objects.filter(pk=own.pk).update(state="lost")
    own.refresh_from_db()
    remove_node(node=own, actor=world.admin(), now=database_now())
    assert join_token(tmp_path).startswith("fjoin-")
    assert not token.exists()


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"node": null}'])
def test_a_damaged_token_file_does_not_keep_a_machine_out(content: str, tmp_path: Path) -> None:
    world.admin()
    (tmp_path / "token.json").write_text(content)
    assert join_token(tmp_path).startswith("fjoin-")
