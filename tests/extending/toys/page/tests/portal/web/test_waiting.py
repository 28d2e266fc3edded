"""The page of a number."""

from __future__ import annotations

from django.test import Client

from portal.accounts.models import User
from tests.harness import world


def test_it_counts_the_jobs_that_wait(browser: Client, person: User) -> None:
    world.job(person)
    assert "1 jobs wait." in browser.get("/waiting/").content.decode()
