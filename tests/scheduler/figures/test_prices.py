"""Money spent keeps the price of its time for ever."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from portal.accounts.models import Team, User
from scheduler.errors import Conflict
from scheduler.models import Allocation, Attempt, Claim, DatasetFile, Gpu, Job, Node, NodePrice
from scheduler.selectors.figures.cost import GpuCost, gpu_costs, job_costs, totals
from scheduler.services.deletions import remove_node
from scheduler.services.nodes.price import set_price
from tests.harness import world
from tests.harness.environment import examples
from tests.harness.fake_node import result
from tests.harness.invariants import assert_sound

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
LATER = NOON + 1000 * HOUR
pytestmark = pytest.mark.django_db


@dataclass
class History:
    """Two nodes, one of them with two GPUs, and what happened to them; `seen`: costs of ended jobs."""

    owner: User
    file: DatasetFile
    teams: list[Team | None]
    gpus: list[Gpu]
    now: datetime = NOON
    latest: datetime = NOON
    held: dict[int, Allocation] = field(default_factory=dict)
    seen: dict[str, float] = field(default_factory=dict)

    @classmethod
    def empty(cls) -> History:
        Allocation.objects.all().delete()
        NodePrice.objects.all().delete()
        Job.objects.all().delete()
        Node.objects.update(price_per_gpu_hour=0.0)
        if not Node.objects.exists():
            world.fake_node(slots=2)
            world.fake_node(slots=1)
        owner = User.objects.first() or world.user()
        file = DatasetFile.objects.first() or world.data_file(owner)
        teams = [None, Team.objects.get_or_create(name="A")[0], Team.objects.get_or_create(name="B")[0]]
        return cls(owner, file, teams, list(Gpu.objects.order_by("pk")))

    def price(self, which: int, price: float) -> None:
        node = Node.objects.get(pk=self.gpus[which % 3].node_id)
        seen = node.price_per_gpu_hour
        set_price(node=node, price=price, seen=seen, actor=self.owner, now=self.now)

    def take_or_free(self, which: int, of_team: float) -> None:
        if which % 3 in self.held:
            row = self.held.pop(which % 3)
            row.released_at = max(self.now, row.allocated_at)
            row.save()
            job = row.claim.attempt.job
            self.seen[job.pk] = amount(job, self.latest)
            return
        gpu = self.gpus[which % 3]
        job = Job.objects.create(
            owner=self.owner, team=self.teams[int(of_team) % 3], training_file=self.file,
            state_since=self.now, submitted_at=self.now,
        )  # fmt: skip
        attempt = Attempt.objects.create(job=job, fence=1, option={}, created_at=self.now)
        claim = Claim.objects.create(attempt=attempt, node=gpu.node)
        self.held[which % 3] = Allocation.objects.create(claim=claim, gpu=gpu, allocated_at=self.now)


def amount(job: Job, now: datetime) -> float:
    spent = job_costs([job], now).get(job.pk)
    return spent.amount if spent else 0.0


def counted_by_hand(row: Allocation, now: datetime) -> Decimal:
    """Second by second in thought: between two moments at which anything changes, one price holds."""
    prices = list(NodePrice.objects.filter(node=row.gpu.node).order_by("pk"))
    end = row.released_at or now
    moments = sorted({row.allocated_at, end, *(p.since for p in prices)})
    total = Decimal(0)
    for start, until in pairwise(moments):
        if start >= row.allocated_at and until <= end:
            holding = [p for p in prices if p.since <= start]
            price = Decimal(holding[-1].price_per_gpu_hour) if holding else Decimal(0)
            total += price * Decimal((until - start) / timedelta(microseconds=1)) / 3_600_000_000
    return total


happenings = st.lists(
    st.tuples(
        st.sampled_from(["price", "gpu", "gpu"]),
        st.integers(0, 2),
        st.sampled_from([0.0, 0.01, 1.4, 2.6, 1e6]) | st.floats(0, 50),
        st.integers(-3, 10**11),  # microseconds until it happens; a clock may be set back a little
    ),
    max_size=14,
)


@given(happenings)
@settings(max_examples=examples(40), deadline=None)
def test_no_later_price_changes_what_an_ended_job_cost(story: list[tuple[str, int, float, int]]) -> None:
    history = History.empty()
    for what, which, value, pause in story:
        history.now += timedelta(microseconds=pause)
        history.latest = max(history.latest, history.now)
        (history.price if what == "price" else history.take_or_free)(which, value)
        jobs = list(Job.objects.filter(pk__in=history.seen))
        now_told = {job.pk: amount(job, history.latest + HOUR) for job in jobs}
        assert now_told == history.seen
    rows = Allocation.objects.select_related("gpu__node")
    costs = gpu_costs(Allocation.objects.all(), LATER)
    assert [one.spent.amount for one in costs] == pytest.approx(
        [float(counted_by_hand(row, LATER)) for row in rows.order_by("pk")], rel=1e-9
    )
    check_sums(costs)
    assert_sound_prices()


def check_sums(costs: list[GpuCost]) -> None:
    """By job, team and node, one sum to a cent."""
    sums = [
        sum(spent.amount for spent in found.values())
        for found in (
            totals(costs, lambda one: one.job),
            totals(costs, lambda one: one.team),
            totals(costs, lambda one: one.node),
        )
    ]
    assert sums == pytest.approx([sums[0]] * 3, rel=1e-12, abs=0.01)
    of_jobs = job_costs(Job.objects.all(), LATER)
    assert sum(spent.amount for spent in of_jobs.values()) == pytest.approx(sums[0], rel=1e-12, abs=0.01)


def assert_sound_prices() -> None:
    for node in Node.objects.all():
        kept = list(NodePrice.objects.filter(node=node).values_list("since", "price_per_gpu_hour"))
        assert [since for since, _ in kept] == sorted(since for since, _ in kept)
        assert node.price_per_gpu_hour == (kept[-1][1] if kept else 0.0)


def priced_job(price: float) -> tuple[Job, Node]:
    """An ended job on a node that had this price."""
    node = world.fake_node()
    if price:
        world.price_node(node, price)
    job = world.placed_job(node)
    node.end(node.take_up(), "succeeded", result())
    Allocation.objects.update(released_at=NOON + HOUR, allocated_at=NOON)
    NodePrice.objects.update(since=NOON)
    return job, Node.objects.get(pk=node.node_id)


def test_a_price_that_is_set_later_gives_an_ended_job_no_cost() -> None:
    job, node = priced_job(0.0)
    world.price_node(node, 1.5)
    assert job_costs([job], LATER) == {}
    assert_sound()


def test_a_price_that_is_taken_away_leaves_what_was_spent() -> None:
    job, node = priced_job(2.0)
    gpus = Allocation.objects.count()
    world.price_node(node, 0.0)
    assert job_costs([job], LATER)[job.pk].amount == pytest.approx(2.0 * gpus)
    of_attempts = totals(gpu_costs(Allocation.objects.all(), LATER), lambda one: one.attempt)
    assert of_attempts == {job.attempts.get().pk: job_costs([job], LATER)[job.pk]}


def test_a_removed_node_keeps_what_its_jobs_cost(db: None) -> None:
    job, node = priced_job(2.0)
    before = amount(job, LATER)
    Node.objects.filter(pk=node.pk).update(state="drained")
    remove_node(node=node, actor=world.admin(), now=LATER)
    assert amount(job, LATER) == before > 0


def test_of_two_changes_at_once_one_is_refused() -> None:
    node = Node.objects.get(pk=world.fake_node().node_id)
    actor = world.admin()
    set_price(node=node, price=1.0, seen=0.0, actor=actor, now=NOON)
    with pytest.raises(Conflict):
        set_price(node=node, price=2.0, seen=0.0, actor=actor, now=NOON)
    assert NodePrice.objects.get().price_per_gpu_hour == 1.0


def test_a_cost_says_when_a_price_of_it_was_estimated() -> None:
    job, _ = priced_job(2.0)
    NodePrice.objects.update(estimated=True)
    assert job_costs([job], LATER)[job.pk].estimated
