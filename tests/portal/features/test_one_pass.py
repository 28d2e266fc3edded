"""One request passes through knowledge once.

Queries, learnings and enumerations are counted.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from knowledge.core.predict.local_correction import LocalCorrection
from knowledge.core.recommend import search_space
from scheduler.models import DatasetFile
from tests.harness import world

A100 = "A100-SXM4-80GB"
MOST_QUERIES = 12
PAGE, REST, CHECK = "/jobs/new/advice/", "/api/recommendations/", "/api/recommendations/check/"
ASKED: dict[str, dict[str, object]] = {
    "plain": {},
    "pinned": {"gpu_model": A100, "number_gpus": 2},
    "impossible": {"tuning": "full", "effective_batch_size": 64, "per_device_batch_size": 64},
}


@pytest.fixture(autouse=True)
def _an_a100_with_own_runs(db: None) -> None:
    world.fake_node(model=A100, memory_bytes=80 << 30, slots=8)
    world.own_runs(gpu_model=A100, count=20)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts of learnings from own runs and of enumerations.

    Enumerations are counted for each set of candidates.
    """
    counts: Counter[str] = Counter()
    learn, enumerated = LocalCorrection.of, search_space.enumerated

    def learning(*args: Any, **values: Any) -> LocalCorrection:
        counts["learnt"] += 1
        return learn(*args, **values)

    def enumerating(request: Any, bound: Any) -> Any:
        kept = sorted((name, bound.get(name)) for name in search_space.BOUND)
        counts[f"{request.inventory} {sorted(request.fixed.items())} {kept}"] += 1
        return enumerated(request, bound)

    monkeypatch.setattr(LocalCorrection, "of", learning)
    monkeypatch.setattr(search_space, "enumerated", enumerating)
    return counts


def ask(address: str, client: Any, file: DatasetFile, params: dict[str, object]) -> None:
    """Through the page of a new job, or REST."""
    if address == PAGE:
        query = {"model": "llama3.1-8b", "training_file": file.pk}
        query |= {f"params-{name}": value for name, value in params.items()}
        answer = client.get(PAGE, query)
    else:
        request = {"model": "llama3.1-8b", "training_file": file.pk, "params": params}
        answer = client.post(address, request, format="json")
    assert answer.status_code == 200


@pytest.mark.one_database
@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("address", [PAGE, REST, CHECK])
def test_a_request_asks_little_enumerates_once_and_learns_only_what_is_new(
    name: str, address: str, browser: Client, api: APIClient, data_file: DatasetFile, counted: Counter[str]
) -> None:
    client = browser if address == PAGE else api
    ask(address, client, data_file, ASKED[name])  # what a process reads once is known from here on
    assert counted["learnt"] <= 1
    counted.clear()
    with CaptureQueriesContext(connection) as queries:
        ask(address, client, data_file, ASKED[name])
    assert len(queries) <= MOST_QUERIES + (address == REST), "REST keeps its answer as a plan"
    assert counted["learnt"] == 0
    assert set((+counted).values()) == {1}
