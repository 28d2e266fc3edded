"""The queue page shows whom the policy would start first."""

from __future__ import annotations

import pytest

from portal.clock import database_now
from scheduler.loop.tick import tick
from scheduler.selectors.cluster.queue import waiting_places
from scheduler.services.policy import choose_policy
from tests.harness import world

pytestmark = pytest.mark.django_db


def test_waiting_jobs_stand_in_the_order_of_the_policy_and_new_ones_last() -> None:
    choose_policy(name="sjf", actor=world.admin(), reason="test", now=database_now())
    owner = world.user()
    file = world.data_file(owner)
    node = world.fake_node(slots=1)
    world.placed_job(node, owner=owner, training_file=file)
    long, short = (world.job(owner, training_file=file, params={"epochs": epochs}) for epochs in (50, 1))
    tick()
    new = world.job(owner, training_file=file, params={"epochs": 1})
    now = database_now()
    assert [place.job for place in waiting_places(owner, offset=0, limit=5, now=now)] == [short, long, new]
    pages = [waiting_places(owner, offset=offset, limit=1, now=now) for offset in range(4)]
    assert [[(place.position, place.job) for place in page] for page in pages] == [
        [(1, short)], [(2, long)], [(3, new)], [],
    ]  # fmt: skip
