"""The whole demo portal.

It has people, nodes, two weeks of jobs, and predictors that learnt from them.
"""

from __future__ import annotations

import random
from datetime import datetime, timedelta

from django.db import transaction

from knowledge.predictors import training
from portal.accounts.models import User
from portal.clock import database_now
from portal.ops.demo.jobs import wishes
from portal.ops.demo.marker import mark
from portal.ops.demo.nodes import MACHINES, join
from portal.ops.demo.people import settle_in
from portal.ops.demo.playing import Play
from scheduler.loop import leadership
from scheduler.loop.tick import tick
from scheduler.models import Node
from scheduler.services.nodes.state import drain_node

DAYS = 14


class PortalNotEmpty(Exception):
    """The portal is in use."""


@transaction.atomic
def build(*, seed: int, jobs: int, password: str, train: bool, now: datetime) -> None:
    """Fill an empty portal, completely or not at all.

    The same seed gives the same world at any hour. Raises PortalNotEmpty: simulated data never mix
    with real ones.
    """
    if User.objects.exists() or Node.objects.exists():
        raise PortalNotEmpty(
            "This portal has people or nodes already; demo data go into an empty database only."
        )
    rng, start = random.Random(seed), now - timedelta(days=DAYS)
    people = settle_in(rng, password=password, now=start)
    mark(actor=people.admin, seed=seed, now=now)
    nodes = [join(machine, actor=people.admin, now=start, until=now) for machine in MACHINES]
    epoch = leadership.acquire()
    if epoch is None:
        raise PortalNotEmpty("A worker of this portal is deciding; stop its workers, then try again.")
    play = Play(rng=rng, people=people, end=now, epoch=epoch)
    play.expect(wishes(rng, people, count=jobs, start=start, end=now))
    for learnt_at in (start, start + timedelta(days=DAYS / 2), now - timedelta(hours=3)):
        play.run(learnt_at)
        if train:
            training.train(now=learnt_at, force=True)
    play.run(now)
    play.report_progress(now)
    reason = "Memory is replaced on Thursday."
    drain_node(node=nodes[-1], actor=people.admin, reason=reason, move_jobs=False, now=now)
    leadership.release(epoch)
    # Making all this took longer than a lease; a last tick explains the waiting, and must lose no node.
    Node.objects.update(last_seen_at=database_now())
    tick()
