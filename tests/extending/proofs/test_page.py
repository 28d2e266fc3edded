"""An added page is linked to, photographed and asked for by every role.

It was added by its checklist.
"""

from __future__ import annotations

import pytest
from django.test import Client

from portal.ops.launch.pages import Shot, all_shots
from tests.harness import world
from tests.portal.access import table


@pytest.mark.django_db
def test_the_navigation_leads_to_it() -> None:
    client = Client()
    client.force_login(world.user())
    assert '<a class="nav-link" href="/waiting/">Waiting</a>' in client.get("/").content.decode()
    here = '<a class="nav-link active" aria-current="page" href="/waiting/">Waiting</a>'
    assert here in client.get("/waiting/").content.decode()


def test_it_is_photographed() -> None:
    assert Shot("waiting", "/waiting/", "waiting") in all_shots()


def test_its_row_says_that_only_people_who_signed_in_see_it() -> None:
    row = next(row for row in table.read() if row.address == "/waiting/")
    assert {answer for role, answer in row.expected.items() if role in ("member", "stranger", "admin")} == {
        "200"
    }
    assert row.expected["anonymous"] == "login"
