"""A portal with very many rows, inserted in bulk, for timing its pages."""

from __future__ import annotations

import itertools
import random
import uuid
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any

from django.db import models

from knowledge.core.domain.option_json import option_json
from knowledge.core.domain.types import Config, Interval, Option, Source
from knowledge.models import Execution
from knowledge.services import row_values
from portal.accounts.models import AuditEntry, User
from portal.events.models import Event
from portal.events.services import give_positions
from portal.events.types import EventType
from scheduler.models import Allocation, Attempt, Claim, DatasetFile, Gpu, Job, Node
from scheduler.services.jobs.transitions import ARRIVALS
from scheduler.states import JobState, NodeState

GPUS_A_NODE = 4
DAYS = 30
BATCH = 5_000
PROMISES = 200  # drawn from, since making one takes longer than inserting it
MODELS = ("A100-SXM4-80GB", "H100-SXM5-80GB", "L40S")
STATES = (("succeeded", 90), ("failed", 5), ("cancelled", 2), ("queued", 2), ("running", 1))
CAUSES = {"failed": "error", "cancelled": "stopped", "succeeded": "succeeded"}


def fill(*, jobs: int, nodes: int, executions: int, people: int, now: datetime, seed: int = 1) -> None:
    """Insert jobs over 30 days, spread over `people` owners.

    Each job has an attempt with its GPU and two events. The audit log has as many entries as there
    are jobs.
    """
    rng = random.Random(seed)
    owners = [User.objects.create_user(f"person{n}") for n in range(people)]
    files = [_file(owner, now) for owner in owners]
    gpus = _nodes(nodes, now)
    free = list(gpus)
    promises = [_promise(rng) for _ in range(PROMISES)]
    rows = [_job(rng, number, owners, files, promises, now, jobs) for number in range(jobs)]
    _insert(Job, rows)
    _insert(AuditEntry, (_act(rng, number, now) for number in range(jobs)))
    _insert(Event, (event for job in rows for event in _events(job)))
    while give_positions():
        pass
    attempts = [_attempt(rng, job) for job in rows if job.first_started_at]
    _insert(Attempt, attempts)
    held = [
        (attempt, free.pop() if attempt.ended_at is None and free else rng.choice(gpus))
        for attempt in attempts
    ]
    claims = [Claim(attempt=attempt, node_id=gpu.node_id, phase="ended") for attempt, gpu in held]
    _insert(Claim, claims)
    _insert(Allocation, _allocations(held, claims))
    ended = [attempt for attempt in attempts if attempt.outcome == "succeeded"]
    _insert(Execution, (_execution(rng, attempt) for attempt in ended[-executions:]))


def _insert(kind: type[models.Model], rows: Iterable[Any]) -> None:
    waiting = iter(rows)
    while batch := list(itertools.islice(waiting, BATCH)):
        kind._default_manager.bulk_create(batch)


def _file(owner: User, now: datetime) -> DatasetFile:
    return DatasetFile.objects.create(
        owner=owner, filename="rows.jsonl", sha256="0" * 64, bytes=10**6, rows=1000, format="chat",
        lengths=[[1000, 1000]], created_at=now,
    )  # fmt: skip


def _nodes(count: int, now: datetime) -> list[Gpu]:
    joined = now - timedelta(days=DAYS)
    nodes = [
        Node(
            name=f"node-{number:04}", state=NodeState.READY, state_since=joined, enrolled_at=joined,
            last_seen_at=now, token_hash=f"{number:064}", cores=64, memory_bytes=2**40,
        )
        for number in range(count)
    ]  # fmt: skip
    _insert(Node, nodes)
    gpus = [
        Gpu(
            node=node,
            index=index,
            model=MODELS[number % len(MODELS)],
            memory_bytes=80 * 2**30,
        )
        for number, node in enumerate(nodes)
        for index in range(GPUS_A_NODE)
    ]
    _insert(Gpu, gpus)
    return gpus


def _job(
    rng: random.Random,
    number: int,
    owners: list[User],
    files: list[DatasetFile],
    promises: list[dict[str, Any]],
    now: datetime,
    count: int,
) -> Job:
    state = rng.choices([name for name, _ in STATES], [weight for _, weight in STATES])[0]
    who = rng.randrange(len(owners))
    submitted = now - timedelta(days=DAYS) * (1 - number / count)
    started = submitted + timedelta(seconds=rng.expovariate(1 / 600))
    ended = min(now, started + timedelta(seconds=rng.lognormvariate(8, 1)))
    final = state in CAUSES
    return Job(
        id=f"ftjob-{number:024x}", owner=owners[who], training_file=files[who], name=f"job {number}",
        model="meta-llama/Llama-3.1-8B", state=state, version=2, submitted_at=submitted,
        state_since=ended if final else submitted, ended_at=ended if final else None,
        first_started_at=None if state == JobState.QUEUED else min(started, now),
        failure_class="user" if state == "failed" else "", promise=rng.choice(promises),
        options=[rng.choice(promises)],
        wait_text="Needs 4 A100-SXM4-80GB GPUs; 2 are free.", step=500, total_steps=1000, loss=1.2,
    )  # fmt: skip


def _act(rng: random.Random, number: int, now: datetime) -> AuditEntry:
    action = rng.choice(("node drained", "node resumed", "token created", "node price changed"))
    return AuditEntry(
        at=now, actor_name="root", action=action, target=f"node-{number:024x}", data={"reason": "x"}
    )


def _events(job: Job) -> Iterator[Event]:
    submitted, last = EventType.JOB_SUBMITTED, ARRIVALS.get(JobState(job.state), EventType.JOB_RETRYING)
    yield Event(subject=job.pk, number=1, type=submitted, new="queued", at=job.submitted_at)
    yield Event(subject=job.pk, number=2, type=last, old="queued", new=job.state, at=job.state_since)


def _attempt(rng: random.Random, job: Job) -> Attempt:
    return Attempt(
        id=uuid.UUID(int=rng.getrandbits(128)), job=job, fence=1, option=job.promise, ended_at=job.ended_at,
        created_at=job.first_started_at or job.submitted_at, outcome=CAUSES.get(job.state, ""),
        measured={"tokens_per_s": 4000.0},
    )  # fmt: skip


def _allocations(held: list[tuple[Attempt, Gpu]], claims: list[Claim]) -> Iterator[Allocation]:
    for (attempt, gpu), claim in zip(held, claims, strict=True):
        yield Allocation(
            claim=claim, gpu=gpu, allocated_at=attempt.created_at,
            released_at=attempt.ended_at or (None if attempt.outcome == "" else attempt.created_at),
        )  # fmt: skip


def _promise(rng: random.Random) -> dict[str, Any]:
    rate, duration = rng.lognormvariate(8, 0.5), rng.lognormvariate(8, 1)
    option = Option(
        config=Config(
            model_name="meta-llama/Llama-3.1-8B", tuning="lora", gpu_model=rng.choice(MODELS), number_gpus=1,
            tokens_per_sample=1024, per_device_batch_size=4,
        ),
        p_valid=0.95, tokens_per_second=Interval(rate, rate / 1.3, rate * 1.3), startup_s=40.0,
        peak_memory_bytes=Interval(4e10, 3.5e10, 4.5e10), cost=Interval(2.0, 1.5, 2.5), source=Source.MODEL,
        duration_s=Interval(duration, duration / 1.3, duration * 1.3), steps=1000,
    )  # fmt: skip
    return option_json(option)


def _execution(rng: random.Random, attempt: Attempt) -> Execution:
    option = attempt.promised
    error = rng.lognormvariate(0, 0.2)
    return Execution(
        **row_values(option.config), created_at=attempt.ended_at or attempt.created_at,
        attempt_id=attempt.pk, status="ok",
        tokens_per_second=option.tokens_per_second.value / error, runtime_s=option.duration_s.value * error,
        peak_memory_bytes=round(4e10 * rng.lognormvariate(0, 0.1)), predicted=attempt.option,
    )  # fmt: skip
