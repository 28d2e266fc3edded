"""Jobs that ran and ended before a stack was started, on a node that is no more."""

from __future__ import annotations

from datetime import UTC, datetime

from django.test.utils import setup_test_environment
from django.utils import timezone

from portal.accounts.models import User
from scheduler.loop.tick import tick
from scheduler.models import Node
from scheduler.services.deletions import remove_node
from scheduler.services.nodes.state import drain_node
from tests.harness import world
from tests.scheduler.analysis.past import past

DURATIONS_S = [300.0 * (1 + number % 7) for number in range(12)]
ENDED = datetime(2026, 1, 1, tzinfo=UTC)  # of the last of them


def make() -> None:
    """Called in the process that prepares the database of a stack."""
    setup_test_environment()  # lets the fake node in
    past(world.fake_node(name="of-the-past"), DURATIONS_S, ended=ENDED)
    node, admin, now = Node.objects.get(), User.objects.get(username="admin"), timezone.now()
    drain_node(node=node, actor=admin, reason="It has done its work.", move_jobs=False, now=now)
    tick()  # notices that the node is empty
    remove_node(node=node, actor=admin, now=now)
