"""The jobs of the demo and when they are submitted.

There are more by day than by night, and more small models than large ones. The demo is looked
at in the evening of its own last day, whatever the clock says: the hour must not decide whether
a job runs or waits.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from portal.accounts.models import User
from portal.ops.demo.people import People
from scheduler.models import DatasetFile, Job
from scheduler.services.jobs.verbs import submit_job

MODELS = (
    ("meta-llama/Llama-3.2-1B", 3), ("meta-llama/Llama-3.2-3B", 4), ("meta-llama/Llama-3.1-8B", 6),
    ("mistralai/Mistral-7B-v0.3", 4), ("mistralai/Mistral-Nemo-Base-2407", 1),
    ("mistralai/Mistral-Small-24B-Base-2501", 1),
)  # fmt: skip
TASKS = ("tone of voice", "summaries", "intent", "extraction", "triage", "rewriting", "answers")
A100 = "A100-SXM4-80GB"
FIXED: tuple[dict[str, Any], ...] = (
    {}, {"epochs": 1}, {"number_gpus": 1}, {"number_gpus": 1, "lora_r": 32}, {"number_gpus": 2},
    {"number_gpus": 4}, {"gpu_model": A100, "number_gpus": 2}, {"gpu_model": A100, "number_gpus": 4},
    {"gpu_model": A100, "number_gpus": 1}, {"gpu_model": A100, "number_gpus": 8, "epochs": 4},
    {"gpu_model": "L40S", "epochs": 1}, {"tuning": "qlora", "epochs": 1},
)  # fmt: skip
DAY, WORKING_DAY = timedelta(days=1), timedelta(hours=11)
GOALS = ("balanced", "balanced", "fastest", "cheapest")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedJob:
    """A job that somebody will submit at `at`."""

    at: datetime
    owner: User
    training_file: DatasetFile
    model: str
    name: str
    goal: str
    params: dict[str, Any]


def wishes(
    rng: random.Random, people: People, *, count: int, start: datetime, end: datetime
) -> list[PlannedJob]:
    """Return all submissions in order.

    A tenth of them come within the last two hours, so that some wait.
    """
    late = max(1, count // 10)
    moments = sorted(_by_day(rng, start, end) for _ in range(count - late))
    moments += sorted(end - timedelta(hours=2) * rng.random() for _ in range(late))
    return [_wish(rng, people, moment) for moment in sorted(moments)]


def _by_day(rng: random.Random, start: datetime, end: datetime) -> datetime:
    """Return a moment of the period.

    It is four times as likely in the eleven hours of a working day as in its night.
    """
    while True:
        moment = start + (end - start) * rng.random()
        if rng.random() < (1.0 if (end - moment) % DAY < WORKING_DAY else 0.25):
            return moment


def _wish(rng: random.Random, people: People, at: datetime) -> PlannedJob:
    owner = rng.choice(people.members)
    data = rng.choice(people.files[owner.username])
    model = rng.choices([name for name, _ in MODELS], [weight for _, weight in MODELS])[0]
    topic = data.filename.removesuffix(".jsonl").replace("-", " ")
    return PlannedJob(
        at=at,
        owner=owner,
        training_file=data,
        model=model,
        name=f"{topic}, {rng.choice(TASKS)}",
        goal=rng.choice(GOALS),
        params=rng.choice(FIXED),
    )


def submit(wish: PlannedJob, people: People) -> Job:
    """Through the service that every interface submits through."""
    return submit_job(
        owner=wish.owner,
        team=people.teams[wish.owner.username],
        model=wish.model,
        training_file=wish.training_file,
        params=wish.params,
        goal=wish.goal,
        name=wish.name,
        now=wish.at,
    )
