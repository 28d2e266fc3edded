"""Queue, analytics and predictions through the Django test client."""

from __future__ import annotations

import pytest
from django.test import Client

from portal.accounts.models import User
from tests.harness import fake_node, world

PAGES = ("/queue/", "/analytics/", "/analytics/predictions/")


@pytest.mark.parametrize("path", PAGES)
def test_pages_are_for_people_who_signed_in(path: str, client: Client, db: None) -> None:
    assert client.get(path)["Location"].startswith("/login/?next=")


@pytest.mark.parametrize("path", PAGES)
def test_pages_of_an_empty_portal_say_so(path: str, browser: Client) -> None:
    page = browser.get(path)
    assert page.status_code == 200
    assert b"data-figure" not in page.content
