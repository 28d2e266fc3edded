"""A replayed market takes a real training's node away twice, and its deadline is kept."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from knowledge.core.domain.cost import cost
from portal.clock import database_now
from scheduler.models import Allocation, Job, Market, Node, NodePrice
from tests.harness.stack import SHORT_LEASES, Stack, until
from tests.stack.jobs import LONG, ended, final_loss, outcomes

pytestmark = [pytest.mark.stack, pytest.mark.slow]
LONGER = {**LONG, "max_steps": 6000}  # it must outlast both nodes on a quiet machine
# A training takes longer on a busy machine, and so does a stop that saves its work.
BUSY = min(3.0, max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))
IN_TIME_S, NOTICE_S = 1200 * BUSY, 24
# In seconds: a node until it is withdrawn, another until it is killed, and then none.
TRACE = "t_s,price,available\n0,0.25,1\n90,0.25,0\n120,0.25,1\n215,0.25,0\n6000,0.25,0\n"


@pytest.fixture
def stack(_rows_are_readable: None) -> Iterator[Stack]:
    made = Stack(leases={**SHORT_LEASES, "MARKET_EVERY_S": "2"}).start()
    yield made
    made.stop()


@pytest.fixture
def played(stack: Stack) -> Iterator[subprocess.Popen[bytes]]:
    trace = stack.root / "trace.csv"
    trace.write_text(TRACE)
    (stack.root / "nodes").mkdir(mode=0o711)
    options = ["--speed", "1", "--nodes", "1", "--notice", str(NOTICE_S), "--market", "replay"]
    place = ["--portal", stack.url, "--dir", str(stack.root / "nodes")]
    command = [sys.executable, "manage.py", "play_market", str(trace), *options, *place]
    process = subprocess.Popen(command, env=stack.supervisor.env)
    yield process
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=60)


def test_a_job_survives_a_withdrawal_and_a_kill_and_ends_in_time(
    stack: Stack, played: subprocess.Popen[bytes]
) -> None:
    stack.client.wait_for_node("replay-1")
    deadline = database_now() + timedelta(seconds=IN_TIME_S)
    submitted = stack.client.submit(
        model="builtin/tiny-llama", training_file=stack.training_file, params={**LONGER, "seed": 7},
        deadline_at=deadline.isoformat(),
    )  # fmt: skip
    job = str(submitted["id"])
    assert submitted["spot"] == "yes"
    _see(lambda: _nodes(stack, job)[-1:] == ["replay-1"], what="a start on the first spot node")
    _see(lambda: _nodes(stack, job)[-1:] == ["replay-2"], what="a start on the second")
    _see(lambda: "lost" in outcomes(stack.client.job(job)), what="the second one's loss")
    stack.start_agent("steady")
    _call_on_demand(stack, "steady")
    reported = ended(stack, job, timeout_s=IN_TIME_S)
    assert outcomes(reported) == ["stopped", "lost", "succeeded"]
    row = Job.objects.using(stack.alias).get(pk=job)
    assert row.ended_at is not None
    assert row.ended_at < deadline
    assert row.infrastructure_used == 0
    market = stack.client.get(f"jobs/{job}/market/")
    assert market["interruptions"] == 2
    assert market["spent"] == pytest.approx(_by_allocations(stack, job), abs=0.01)
    assert market["spent"] < market["on_demand_only"]
    undisturbed = stack.submit(**LONGER)
    assert final_loss(reported) == final_loss(ended(stack, undisturbed, timeout_s=IN_TIME_S))


def _see(true: Callable[[], bool], *, what: str) -> None:
    """Each answer takes from the training's time, so that it is asked for once a second."""
    until(true, timeout_s=IN_TIME_S, every_s=1.0, what=what)


def _nodes(stack: Stack, job: str) -> list[str]:
    """The nodes of its attempts that train or trained, in order."""
    attempts = stack.client.job(job)["attempts"]
    return [one["node"] for attempt in attempts for one in attempt["nodes"] if attempt["running_at"]]


def _call_on_demand(stack: Stack, name: str) -> None:
    node = Node.objects.using(stack.alias).get(name=name)
    market = Market.objects.using(stack.alias).get()
    stack.admin.patch(f"nodes/{node.pk}/", {"kind": "on_demand", "market": market.name})


def _by_allocations(stack: Stack, job: str) -> float:
    """Each allocation second by second, at the price that held."""
    total = 0.0
    held: Any = Allocation.objects.using(stack.alias).filter(claim__attempt__job=job)
    for one in held.select_related("gpu"):
        prices = list(NodePrice.objects.using(stack.alias).filter(node=one.gpu.node_id).order_by("pk"))
        for price, following in zip(prices, [*prices[1:], None], strict=True):
            begin = max(price.since, one.allocated_at)
            end = min(following.since, one.released_at) if following else one.released_at
            if end > begin:
                total += cost((end - begin).total_seconds(), price.price_per_gpu_hour)
    return total
