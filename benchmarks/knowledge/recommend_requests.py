"""Milliseconds and queries of the recommendation on the page of a new job.

The requests are plain, pinned and impossible ones, on one node with eight A100s, twenty own
runs on them and the given predictor, in a throw-away SQLite database; they are sent by Django's
test client. Milliseconds are of one core, the fastest repeat counts.

It needs the environment of the tests: `python3 run.py setup --dev`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

from knowledge.core.model.fitted_model import FittedModel

A100 = "A100-SXM4-80GB"
RUNS = 20
REPEATS = 20
ASKED: dict[str, dict[str, object]] = {
    "plain": {},
    "pinned": {"gpu_model": A100, "number_gpus": 2},
    "impossible": {"tuning": "full", "effective_batch_size": 64, "per_device_batch_size": 64},
}


def measure_requests(knowledge: Mapping[str, FittedModel]) -> dict[str, dict[str, float]]:
    """Return milliseconds and queries of each kind of request.

    Sets Django up, so it is called once per process.
    """
    with TemporaryDirectory() as folder:
        os.environ |= {"DATA_DIR": folder, "DATABASE_URL": f"sqlite:///{folder}/portal.sqlite3"}
        os.environ |= {"DJANGO_SETTINGS_MODULE": "portal.settings", "LOG_LEVEL": "ERROR"}
        os.environ["ALLOWED_HOSTS"] = "testserver"
        (Path(folder) / "static").mkdir()  # WhiteNoise warns where there is none
        import django

        django.setup()
        page = _page(knowledge)
        return {name: _measured(page, params) for name, params in ASKED.items()}


def _page(knowledge: Mapping[str, FittedModel]) -> Callable[[dict[str, object]], Any]:
    """Return a function that asks for the recommendation with some values fixed.

    The portal that answers is newly made.
    """
    from django.core.management import call_command
    from django.test import Client

    from knowledge.models import PredictorVersion
    from knowledge.predictors import loaded_predictor, predictor_files
    from portal.clock import database_now
    from tests.harness import world

    call_command("migrate", verbosity=0)
    owner = world.user()
    file = world.data_file(owner, rows=200)
    world.fake_node(model=A100, memory_bytes=80 << 30, slots=8)
    digest = predictor_files.save(knowledge, loaded_predictor.folder() / "predictor.skops")
    PredictorVersion.objects.create(
        number=1, path="predictor.skops", sha256=digest, rows=1, active=True, created_at=database_now()
    )
    world.own_runs(gpu_model=A100, count=RUNS)
    client = Client()
    client.force_login(owner)

    def ask(params: dict[str, object]) -> Any:
        query = {"model": "llama3.1-8b", "training_file": file.pk}
        answer = client.get("/jobs/new/advice/", query | {f"params-{n}": v for n, v in params.items()})  # type: ignore[arg-type]
        assert answer.status_code == 200
        return answer

    return ask


def _measured(page: Callable[[dict[str, object]], Any], params: dict[str, object]) -> dict[str, float]:
    from django.db import connection

    statements: list[str] = []

    def note(execute: Callable[..., Any], sql: str, *more: Any) -> Any:
        statements.append(sql)
        return execute(sql, *more)

    page(params)
    with connection.execute_wrapper(note):
        page(params)
    times = []
    for _ in range(REPEATS):
        began = process_time()
        page(params)
        times.append(1000 * (process_time() - began))
    return {"ms": round(min(times), 1), "queries": len(statements)}
