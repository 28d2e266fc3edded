"""Generated requests against the API's own description.

No answer is a 5xx or missing from the description. Random requests are generated; on demand also those at
each bound of each value, 4,300 in all, each as administrator, user, lead of a team and service account, which
take seconds to collect and many minutes to send.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, transaction
from hypothesis import HealthCheck, settings
from pytest_django import DjangoDbBlocker
from rest_framework.test import APIClient
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from portal.accounts.models import Membership, Role, Scope, Team
from portal.accounts.public_ids import public_id
from portal.accounts.service_accounts import create_service_account
from portal.api.examples import VALUES
from portal.clock import database_now
from portal.wsgi import application
from tests.harness import world
from tests.portal.conftest import rows_of_a_module, token_client

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
EXAMPLES = 3
EVERY_BOUND = "ON_DEMAND" in os.environ  # as `run.py test --slow` sets it
described = schemathesis.openapi.from_wsgi("/api/schema/", application)
described.config.phases.coverage.enabled = EVERY_BOUND
# Odd values have tests of their own, on both databases.
pytestmark = [pytest.mark.postgresql, *([pytest.mark.slow] * EVERY_BOUND)]


@contextmanager
def one_connection() -> Iterator[None]:
    """Keep the test's connection open when a request ends.

    Django's own test client does the same.
    """
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield
    for signal in signals:
        signal.connect(close_old_connections)


ROLES = ("admin", "user", "lead", "service account")
ASKED = ROLES if EVERY_BOUND else ROLES[:1]


@dataclass(frozen=True)
class Known:
    """Ids that exist, by their names in addresses and in the examples of bodies, and a token by role.

    With them generated requests come further than 404.
    """

    tokens: dict[str, str]
    ids: dict[str, Any]
    values: dict[str, Any]


@pytest.fixture(scope="module")
def known(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Known]:
    with rows_of_a_module(django_db_blocker):
        yield what_exists()


def what_exists() -> Known:
    """Objects of a member of a team, which its lead runs."""
    now, admin, ada, lea = database_now(), world.admin(), world.user("ada"), world.user("lea")
    team = Team.objects.create(name="Linguists")
    Membership.objects.create(user=ada, team=team)
    Membership.objects.create(user=lea, team=team, role=Role.LEAD)
    bot = create_service_account(username="bot", team=team, actor=lea, now=now)
    askers = {"admin": (admin, Scope.ADMIN), "user": (ada, Scope.WRITE), "lead": (lea, Scope.WRITE)}
    askers["service account"] = (bot, Scope.SUBMIT)
    programs = {role: token_client(*asker) for role, asker in askers.items()}
    node = world.fake_node()
    job = world.placed_job(node, owner=ada, team=team)
    made, own = (partial(_made, programs[role]) for role in ("admin", "user"))
    file = world.data_file(ada).pk
    times = {"begins_at": now + timedelta(days=9), "ends_at": now + timedelta(days=10)}
    trained = {"model": "builtin/tiny-llama", "training_file": file}
    ids = {
        "job_id": job.pk,
        "file_id": job.training_file_id,
        "node_id": node.node_id,
        "user_id": public_id(ada),
        "team_id": public_id(team),
        "account_id": public_id(bot),
        "token_id": "tok-0",  # revoking one that exists would end the test's own way in
        "market_id": made("markets", name="west", gpu_model="cpu", on_demand_price=1.0),
        "window_id": made("windows", nodes=[node.node_id], **times),
        "array_id": own("arrays", values=[{"max_steps": 1}, {"max_steps": 2}], **trained),
        "upload_id": own("uploads", filename="rows.jsonl", bytes=10),
    }
    values = {"training_file": file, "nodes": [node.node_id], "user": "ada", "ids": [job.pk]}
    return Known({role: program.authorization for role, program in programs.items()}, ids, values)


def _made(client: APIClient, place: str, **body: Any) -> str:
    answer = client.post(f"/api/{place}/", body, format="json")
    assert answer.status_code == 201, answer.content
    return str(answer.json()["id"])


@described.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
def test_every_generated_request_is_answered_as_described(case: Any, known: Known, db: None) -> None:
    case.path_parameters.update({name: known.ids[name] for name in known.ids.keys() & case.path_parameters})
    if isinstance(case.body, dict):
        shown = {name for name in known.values if case.body.get(name) == VALUES[name]}
        case.body = case.body | {name: known.values[name] for name in shown}
    for role in ASKED:
        # What reads the answers here does not uncompress them.
        headers = {"Authorization": known.tokens[role], "Accept-Encoding": "identity"}
        with one_connection(), transaction.atomic():
            case.call_and_validate(headers=headers, checks=CHECKS)
            transaction.set_rollback(True)  # what one role deletes, the next one finds
