"""Enrolment may be repeated.

A lost answer costs neither the join token nor a second node.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django.live_server_helper import LiveServer

from portal.clock import database_now
from scheduler.models import JoinToken, Node
from scheduler.services.nodes.register import create_join_token
from scheduler.states import NodeState
from tests.chaos.proxy import Proxies
from tests.harness import world
from tests.harness.fake_node import PROTOCOL, FakeNode, facts
from tests.harness.threads import at_once
from trainer.agent.portal_api.client import Portal
from trainer.agent.portal_api.enrol import enrol, use_saved_token
from trainer.agent.settings import Settings
from trainer.agent.storage.folder import NodeFolder
from trainer.protocol import Sync
from trainer.protocol_parsing import parse_facts

CHOSEN = "fnode-" + "a" * 43


def join_token() -> str:
    return create_join_token(actor=world.admin(), now=database_now())


def ask(join: str, node_token: str = CHOSEN) -> Any:
    body = {
        "join_token": join, "protocol": PROTOCOL, "name": "box", "facts": facts(), "node_token": node_token
    }  # fmt: skip
    return Client().post("/agent/v1/enrol", json.dumps(body), content_type="application/json")


@pytest.mark.django_db(transaction=True)
def test_who_asks_again_gets_the_same_node_also_at_once() -> None:
    join = join_token()
    answers = [*at_once(*[lambda: ask(join)] * 4), ask(join)]
    assert {answer.status_code for answer in answers} == {201}
    node = Node.objects.get()
    assert {(answer.json()["node"], answer.json()["node_token"]) for answer in answers} == {(node.pk, CHOSEN)}
    assert JoinToken.objects.get().uses_left == 0
    assert ask(join, "fnode-" + "b" * 43).status_code == 401


@pytest.mark.django_db
@pytest.mark.parametrize("token", ["fnode-short", "x" * 50, "fnode-" + "a" * 300, "fnode-" + "ä" * 43])
def test_a_token_that_could_be_guessed_is_refused_by_its_name(token: str) -> None:
    answer = ask(join_token(), token)
    assert (answer.status_code, answer.json()["error"]["field"]) == (400, "body.node_token")
    assert not Node.objects.exists()


@pytest.fixture
def line(live_server: LiveServer) -> Iterator[Proxies]:
    lines = Proxies(live_server.thread.port, ["box"])
    yield lines
    lines.stop()


def test_an_answer_that_is_lost_leaves_no_ghost_and_the_next_agent_is_the_same_node(
    line: Proxies, tmp_path: Path
) -> None:
    settings = Settings(portal=line["box"].url, dir=tmp_path, join_token=join_token(), name="box")
    reported = parse_facts(facts())

    def start(*, stop_after: int) -> tuple[Portal, NodeFolder, bool]:
        """An agent that is stopped after so many tries."""
        portal, folder, tries = Portal(settings.portal), NodeFolder(tmp_path), iter(range(stop_after))
        return portal, folder, enrol(portal, folder, settings, reported, lambda: next(tries, None) is None)

    line["box"].loses_answers = True
    killed, folder, enrolled = start(stop_after=2)
    killed.close()
    assert not enrolled
    assert folder.enrolment_file.stat().st_mode & 0o777 == 0o600
    assert Node.objects.get().state == NodeState.LOST, "it would be given work"
    line["box"].undisturbed()
    portal, folder, enrolled = start(stop_after=1)
    assert enrolled
    assert not folder.enrolment_file.exists()
    assert use_saved_token(portal, folder)
    portal.sync(Sync(protocol=PROTOCOL, boot_id="first", seq=1))
    portal.close()
    node = Node.objects.get()
    assert (node.name, node.state) == ("box", NodeState.READY)


@pytest.mark.django_db
def test_many_gpus_take_no_more_queries_than_one() -> None:
    queries = []
    for slots in (1, 2, 8):  # the first reads the catalogue as well
        token = join_token()
        with CaptureQueriesContext(connection) as asked:
            FakeNode.join(token, name=f"box of {slots}", slots=slots)
        queries.append(len(asked))
    assert queries[1] == queries[2] <= 50
