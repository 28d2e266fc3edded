"""Names that people, nodes and files give are text on every page, whatever they hold."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from portal.accounts.models import User
from portal.clock import database_now
from scheduler.loop.tick import tick
from scheduler.models import Node
from scheduler.services.nodes.register import create_join_token
from tests.harness import world
from tests.harness.fake_node import FakeNode, facts, result, step
from trainer.protocol import PROTOCOL

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]
TEXTS = (
    '"><img src=x onerror=alert(1)>{{7*7}}{% debug %}${7*7}<b>',
    '=HYPERLINK("http://127.0.0.1/")',
    "@SUM(1+1)*cmd|' /C calc'!A0",
    'a"b\r\nSet-Cookie: x=1.jsonl',
    "../../../../etc/evil.jsonl",
    "<a href=javascript:alert(1)>x</a>",
    "\u202egpj.exe",
    "\x1b[31mred",
    "x\ny",
    "javascript:alert(1)",
)
NEVER = ("<img src=x", "<a href=javascript", 'href="javascript:')
REFUSED = 400


def posted(client: Client, address: str, body: dict[str, Any]) -> Any:
    return client.post(address, json.dumps(body), content_type="application/json")


@pytest.mark.parametrize("text", TEXTS)
def test_a_hostile_name_is_text_wherever_it_is_shown(text: str) -> None:
    admin = world.admin()
    browser = Client()
    browser.force_login(admin)
    upload = SimpleUploadedFile(text, world.training_lines(), content_type="application/jsonl")
    answers = [
        browser.post("/api/files/", {"file": upload}),
        posted(browser, "/api/tokens/", {"name": text, "scope": "read"}),
        posted(browser, "/api/teams/", {"name": text}),
    ]
    node, enrolled = _enrolled(admin, text)
    file = world.data_file(admin)
    job = {"model": "builtin/tiny-llama", "training_file": file.pk}
    named = posted(browser, "/api/jobs/", {**job, "name": text})
    assert {answer.status_code for answer in [*answers, enrolled, named]} <= {200, 201, REFUSED}
    if named.status_code == REFUSED:
        named = posted(browser, "/api/jobs/", job)
    _run(node, text)
    addresses = [
        "/",
        "/jobs/",
        "/queue/",
        "/nodes/",
        "/files/",
        "/users/",
        "/teams/",
        "/settings/",
        "/jobs/new/",
    ]
    addresses += [f"/jobs/{named.json()['id']}/", f"/nodes/{Node.objects.get().pk}/"]
    for address in addresses:
        page = browser.get(address)
        assert page.status_code in (200, 302, 404), address
        _is_harmless(page, address)
    _is_harmless(browser.get("/api/nodes/"), "/api/nodes/", is_json=True)
    table = browser.get("/api/executions.csv")
    rows = csv.reader(io.StringIO(b"".join(table).decode()))
    assert not [cell for row in rows for cell in row if cell[:1] in ("=", "@")]


def _enrolled(admin: User, text: str) -> tuple[FakeNode, Any]:
    """A node that gives the text for all that it is called, or where that is refused for nothing."""
    said = facts(software={"torch": text, text: "1"}, hostname=text)
    token = create_join_token(actor=admin, now=database_now(), uses=2)
    body = {"join_token": token, "protocol": PROTOCOL, "name": text, "facts": said}
    answer = posted(Client(), "/agent/v1/enrol", body)
    if answer.status_code == REFUSED:
        body |= {"name": "box", "facts": facts(hostname="box", software={"torch": text})}
        answer = posted(Client(), "/agent/v1/enrol", body)
    node = FakeNode(Client(), answer.json()["node"], answer.json()["node_token"])
    node.sync()
    return node, answer


def _run(node: FakeNode, text: str) -> None:
    tick()
    order = node.take_up()
    log = {"kind": "log", "body": {"text": text}}
    node.run(order, step(1), log, result(software={text: text, "torch": text}))
    node.end(order, "error", reason=text)


def _is_harmless(page: Any, address: str, *, is_json: bool = False) -> None:
    content = page.content.decode()
    assert "x" not in page.cookies, address
    if not is_json:
        assert not [mark for mark in NEVER if mark in content], address
        assert "{{7*7}}" in content or "{{49}}" not in content
