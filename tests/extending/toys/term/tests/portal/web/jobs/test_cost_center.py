"""The cost centre of a job is told on its page."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.harness import world


@pytest.mark.django_db
def test_the_page_shows_who_pays() -> None:
    job = world.job(cost_center="R&D 12")
    client = Client()
    client.force_login(job.owner)
    assert "R&amp;D 12</dd>" in client.get(f"/jobs/{job.pk}/").content.decode()
