"""Generated requests against the API's own description.

No answer is a 5xx or missing from the description. Random requests are generated; on demand also those at
each bound of each value, 4,300 in all, which take seconds to collect and minutes to send.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from hypothesis import HealthCheck, settings
from pytest_django import DjangoDbBlocker
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from portal.accounts.models import Membership, Scope, Team, User
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


@pytest.fixture(scope="module")
def known(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[dict[str, Any]]:
    with rows_of_a_module(django_db_blocker):
        yield ids_that_exist(world.user("ada"))


def ids_that_exist(person: User) -> dict[str, Any]:
    """Return ids that exist, and the token of an administrator.

    With them generated requests come further than 404.
    """
    node = world.fake_node()
    job = world.placed_job(node, owner=person)
    token = token_client(world.admin(), Scope.ADMIN).authorization
    # No token has the number 0: revoking one that exists would end the test's own way in.
    ids = {"job_id": job.pk, "file_id": job.training_file_id, "node_id": node.node_id, "token_id": 0}
    member = Membership.objects.create(user=person, team=Team.objects.create(name="Linguists"))
    ids |= {"user_id": person.pk, "team_id": member.team_id, "member_id": member.pk}
    return {**ids, "token": token}


@described.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
def test_every_generated_request_is_answered_as_described(case: Any, known: dict[str, Any], db: None) -> None:
    for name, value in known.items():
        if name in case.path_parameters:
            case.path_parameters[name] = value
    with one_connection():
        # What reads the answers here does not uncompress them.
        headers = {"Authorization": known["token"], "Accept-Encoding": "identity"}
        case.call_and_validate(headers=headers, checks=CHECKS)
