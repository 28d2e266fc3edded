"""A body that ends before its announced length is refused whole.

This holds even where its beginning would make sense.
"""

from __future__ import annotations

import hashlib

import pytest
from django.test import Client

from portal.accounts.models import ApiToken, Scope, User
from portal.accounts.services import create_token
from portal.clock import database_now
from scheduler.models import Artifact, DatasetFile, UploadHold
from tests.harness import world
from tests.portal.conftest import Program
from tests.portal.limits.bodies.announced import FORM, ROW, Body, announce, session

pytestmark = pytest.mark.django_db
FIELDS, JSON = "application/x-www-form-urlencoded", "application/json"
HEAD = b'--x\r\nContent-Disposition: form-data; name="%b"; filename="a.jsonl"\r\n\r\n'
SMALL, LARGE = 10_000, 30_000  # rows: read in one piece by Django, and in many
# Cut behind a whole row, value or field: it could be all.
BODIES = {
    "a page's form": ("/tokens/", b"name=a&scope=read&more=" + b"b" * 300_000, FIELDS),
    "a page's small file": ("/jobs/new/upload/", HEAD % b"upload" + ROW * SMALL, FORM),
    "a page's large file": ("/jobs/new/upload/", HEAD % b"upload" + ROW * LARGE, FORM),
    "the API's small file": ("/api/files/", HEAD % b"file" + ROW * SMALL, FORM),
    "the API's large file": ("/api/files/", HEAD % b"file" + ROW * LARGE, FORM),
    "the API's JSON": ("/api/tokens/", b'{"name": "a", "scope": "read"}' + b" " * 300_000, JSON),
    "a short JSON": ("/api/tokens/", b'{"name": "a", "scope": "read"}', JSON),
}


@pytest.mark.parametrize("missing", [1, 500_000])
@pytest.mark.parametrize("kind", BODIES)
def test_nothing_of_it_is_stored(browser: Client, api: Program, kind: str, missing: int) -> None:
    path, content, sent_as = BODIES[kind]
    page = session(browser) | {"HTTP_X_CSRFTOKEN": "c" * 32}
    program = {"HTTP_AUTHORIZATION": api.authorization}
    tokens = ApiToken.objects.count()
    for headers in [program] if path.startswith("/api/") else [page, session(browser)]:
        sent = {**headers, "CONTENT_TYPE": sent_as}
        status, reported = announce(path, len(content) + missing, Body(content), **sent)
        assert status == 400
        assert reported is None or reported["error"]["code"] == "incomplete"
    assert not DatasetFile.objects.exists()
    assert not UploadHold.objects.exists()
    assert ApiToken.objects.count() == tokens


def test_a_form_is_not_taken_for_an_empty_one(browser: Client, person: User) -> None:
    token, _ = create_token(owner=person, name="a", scope=Scope.READ, now=database_now())
    headers = session(browser) | {"HTTP_X_CSRFTOKEN": "c" * 32, "CONTENT_TYPE": FIELDS}
    address = f"/tokens/{token.pk}/revoke/"
    assert announce(address, 10, Body(b"a=b"), **headers)[0] == 400
    token.refresh_from_db()
    assert token.revoked_at is None
    assert announce(address, 3, Body(b"a=b"), **headers)[0] == 302
    token.refresh_from_db()
    assert token.revoked_at is not None


def test_a_nodes_message_and_its_files_are_refused(person: User) -> None:
    node = world.fake_node()
    world.placed_job(node, owner=person)
    order = node.take_up()
    headers = {"CONTENT_TYPE": JSON, "HTTP_AUTHORIZATION": f"Bearer {node.token}"}
    for path in ("/agent/v1/enrol", "/agent/v1/sync"):
        assert announce(path, 100, Body(b"{}"), **headers)[0] == 400
    digest = hashlib.sha256(b"bytes").hexdigest()
    put = {"REQUEST_METHOD": "PUT", "HTTP_X_CONTENT_SHA256": digest, "QUERY_STRING": f"fence={order.fence}"}
    address = f"/agent/v1/claims/{order.claim}/artifacts/output/a.bin"
    assert announce(address, 6, Body(b"bytes"), **headers, **put)[0] == 400
    assert not Artifact.objects.exists()
    assert announce(address, 5, Body(b"bytes"), **headers, **put)[0] == 204
