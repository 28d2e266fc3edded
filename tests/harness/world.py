"""Small builders of real rows, through the services a user's request would take."""

from __future__ import annotations

import io
import itertools
import json
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from django.db.models import F, Max

from knowledge.core.domain.config_space import OUR_TRAINER
from knowledge.core.domain.types import Config
from knowledge.services import record_execution
from portal.accounts.models import User
from portal.clock import database_now
from scheduler.loop.tick import tick
from scheduler.models import Allocation, Attempt, DatasetFile, Epoch, Job, Node
from scheduler.services.files.uploads import store_file
from scheduler.services.jobs.verbs import submit_job
from scheduler.services.nodes.price import set_price
from scheduler.services.nodes.register import update_facts
from scheduler.services.web_beat import note_web_beat
from scheduler.states import NodeState
from tests.harness.fake_node import FakeNode, facts, joined
from trainer.protocol_parsing import parse_facts

FAST, CHEAP = "A100-SXM4-80GB", "L4"  # of `fast_and_cheap_nodes`
_numbers = itertools.count(1)


def user(name: str = "", **values: Any) -> User:
    return User.objects.create_user(name or f"user{next(_numbers)}", password="x", **values)


def admin() -> User:
    return user(is_staff=True)


def training_lines(rows: int = 20) -> bytes:
    lines = [{"prompt": f"What is {n} + {n}?", "completion": f"It is {2 * n}."} for n in range(rows)]
    return "\n".join(json.dumps(line) for line in lines).encode()


def data_file(owner: User, rows: int = 20, *, filename: str = "data.jsonl") -> DatasetFile:
    stream = io.BytesIO(training_lines(rows))
    return store_file(owner=owner, stream=stream, filename=filename, now=database_now())


def fake_node(*, name: str = "", **of_facts: Any) -> FakeNode:
    """A node that has joined."""
    return joined(admin(), name or f"node{next(_numbers)}", **of_facts)


def fast_and_cheap_nodes() -> None:
    """A fast, dear GPU and a slow, cheap one, each on a node of its own."""
    for name, model, price in (("fast", FAST, 40.0), ("cheap", CHEAP, 0.1)):
        fake_node(name=name, slots=1, model=model, memory_bytes=24 << 30)
        Node.objects.filter(name=name).update(price_per_gpu_hour=price)


def declare_sites(node: FakeNode, slots: int) -> None:
    """Sockets of four slots, in each two NUMA nodes; every slot on a switch of its own."""
    reported = facts(slots=slots)
    for slot, gpu in enumerate(reported["gpus"]):
        gpu["declared"] = {"socket": slot // 4, "numa": slot // 2, "switch": slot}
    update_facts(node=Node.objects.get(pk=node.node_id), facts=parse_facts(reported), now=database_now())


def job(owner: User | None = None, **values: Any) -> Job:
    """A submitted job for the built-in model."""
    owner = owner or user()
    if "training_file" not in values:
        values["training_file"] = data_file(owner)
    return submit_job(
        owner=owner, model=values.pop("model", "builtin/tiny-llama"), now=database_now(), **values
    )


def own_runs(*, gpu_model: str, count: int) -> None:
    """Record successful LoRA runs of llama3.1-8b on one such GPU.

    They come in several lengths and batches.
    """
    for number in range(count):
        config = Config(
            model_name="llama3.1-8b", tuning="lora", gpu_model=gpu_model, number_gpus=1,
            tokens_per_sample=256 * (1 + number % 4), per_device_batch_size=2 ** (number % 5),
            precision="bfloat16", quantization="none", lora_r=16, lora_alpha=32, gradient_checkpointing=True,
            sharding="none", network="none", **OUR_TRAINER,
        )  # fmt: skip
        record_execution(
            attempt_id=uuid4(), config=config, status="ok", now=database_now(), startup_s=20.0,
            tokens_per_second=3000.0 + 50 * number, peak_memory_bytes=40 << 30,
            memory_capacity_bytes=80 << 30,
        )  # fmt: skip


def price_node(node: FakeNode | Node, price: float, *, now: datetime | None = None) -> None:
    """Set what a GPU hour costs on the node from now on."""
    row = Node.objects.get(pk=node.pk if isinstance(node, Node) else node.node_id)
    seen = row.price_per_gpu_hour
    set_price(node=row, price=price, seen=seen, actor=admin(), now=now or database_now())


def placed_job(node: FakeNode, **values: Any) -> Job:
    """A job that a tick placed on the node."""
    made = job(**values)
    assert tick().started == 1
    node.sync()
    made.refresh_from_db()
    return made


def state_of(of: Job) -> str:
    """The job's state now."""
    of.refresh_from_db()
    return of.state


def open_allocations() -> int:
    """How many GPUs are held."""
    return Allocation.objects.filter(released_at__isnull=True).count()


def silence(node: FakeNode, seconds: float) -> None:
    """As if the node had said nothing for so long."""
    Node.objects.filter(pk=node.node_id).update(last_seen_at=database_now() - timedelta(seconds=seconds))
    served_for_long()


def age_state(of: Job, seconds: float) -> None:
    """As if the job had been in its state for so long."""
    earlier = {name: F(name) - timedelta(seconds=seconds) for name in ("state_since", "shown_since")}
    Job.objects.filter(pk=of.pk).update(**earlier)
    served_for_long()


def served_for_long() -> None:
    """Pretend that the web server has served for a day up to now.

    Nodes came through all day, up to the last one heard of.
    """
    now = database_now()
    note_web_beat(now=now)
    known = Node.present.exclude(state=NodeState.LOST)
    Epoch.objects.get_or_create(pk=1, defaults={"since": now})
    Epoch.objects.update(
        web_heard_at=now,
        web_since=now - timedelta(days=1),
        nodes_heard_at=now if known.count() < 2 else known.aggregate(at=Max("last_seen_at"))["at"],
        nodes_since=now - timedelta(days=1),
    )


def free_the_epoch() -> None:
    """End a tick that a test left open."""
    Epoch.objects.update(busy=False)


def age_attempts(seconds: float) -> None:
    """As if all ended attempts had ended so long before."""
    Attempt.objects.filter(ended_at__isnull=False).update(ended_at=F("ended_at") - timedelta(seconds=seconds))


def age_starts(seconds: float, of: Job | None = None) -> None:
    """As if all attempts, or those of one job, had begun so much earlier."""
    attempts = of.attempts.all() if of else Attempt.objects.all()
    attempts.update(created_at=F("created_at") - timedelta(seconds=seconds))
