"""Measurements that nodes made by themselves (docs/adr/0043)."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime

from django.conf import settings
from django.db import transaction

from knowledge.catalogue.portal_catalogue import portal_catalogue
from knowledge.core.domain.config_space import FIELDS, OUR_TRAINER
from knowledge.core.domain.types import Config
from knowledge.models import Execution
from knowledge.services import record_speed_test, unlearn
from scheduler.models import Node, NodeSpeedTest
from trainer.recipes import DEFAULT_RECIPE, ParamError
from trainer.self_tests import SpeedRun, SpeedTest

log = logging.getLogger(__name__)
REPLACED = "replaced by a newer speed test of its node"


@transaction.atomic
def take_speed_tests(*, node: Node, tests: Iterable[SpeedTest], now: datetime) -> None:
    """Keep the newest test of each GPU model that the node has.

    A test that is known changes nothing. A test that gave figures is learnt from, in place of the node's last
    one. One that gave none, or cannot be understood, leaves its reason.
    """
    memory = dict(node.gpus.order_by("-index").values_list("model", "memory_bytes"))
    known = {row.gpu_model: row for row in node.speed_tests.all()}
    for test in tests:
        model = portal_catalogue().gpu_key(test.gpu_model)
        row = known.get(model) or NodeSpeedTest(node=node, gpu_model=model)
        if model in memory and row.test != test.test:
            row.test, row.at, row.problem = test.test, now, test.problem
            row.save()
            if not test.problem:
                _learn(row, test, memory[model], now)


def _learn(row: NodeSpeedTest, test: SpeedTest, memory_bytes: int, now: datetime) -> None:
    try:
        configs = [config_of(test, run, row.gpu_model) for run in test.runs]
    except ParamError as wrong:
        row.problem = f"This portal does not know such a test: {wrong}"[:500]
        row.save()
        return
    before = [run.pk for run in row.executions.all()]
    runs = zip(configs, test.runs, strict=True)
    row.executions.set(_recorded_before(row) or _recorded(row.node, test, list(runs), memory_bytes, now))
    row.measured_at, row.busy_cores = now, test.busy_cores
    row.save()
    unlearn(executions=before, reason=REPLACED)


def _recorded_before(row: NodeSpeedTest) -> list[Execution]:
    """The executions of a test that the same machine told under another identity."""
    same = NodeSpeedTest.objects.filter(test=row.test).exclude(pk=row.pk)
    return list(Execution.objects.filter(pk__in=same.values("executions")))


def _recorded(
    node: Node, test: SpeedTest, runs: list[tuple[Config, SpeedRun]], memory_bytes: int, now: datetime
) -> list[Execution]:
    versions = sorted(f"{name} {version}" for name, version in node.software.items() if name in PACKAGES)
    # A job also waits for a sync: half of one before its start on average, and half after its end.
    startup_s = (test.startup_s or 0.0) + settings.SYNC_EVERY_S
    return [
        record_speed_test(
            config=config,
            tokens_per_second=run.tokens_per_s,
            startup_s=None if number else startup_s,
            peak_memory_bytes=run.peak_memory_bytes,
            memory_capacity_bytes=memory_bytes,
            software=" ".join(versions),
            now=now,
        )
        for number, (config, run) in enumerate(runs)
    ]


PACKAGES = ("accelerate", "peft", "python", "torch", "transformers")  # as trainings name their software


def config_of(test: SpeedTest, run: SpeedRun, gpu_model: str) -> Config:
    """Return the configuration of a test's training.

    It is as recommendations write it. Raises ParamError.
    """
    if not test.model.startswith("builtin/"):
        raise ParamError({"model": "must be built in"})
    given = DEFAULT_RECIPE.clean(run.params)
    sizes = {"tokens_per_sample", "per_device_batch_size", "gradient_accumulation_steps", "tuning"}
    if missing := sizes - given.keys():
        raise ParamError(dict.fromkeys(sorted(missing), "is missing"))
    values = {name: value for name, value in given.items() if name in FIELDS}
    placed = {"gpu_model": gpu_model, "number_gpus": 1, "number_nodes": 1, "network": "none"}
    return Config(**{**OUR_TRAINER, **values, **placed, "model_name": test.model})
