"""The executions shown beside a recommendation are the nearest ones."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import pytest

from knowledge import selectors
from knowledge.core.domain.types import Config, Evidence, Option
from knowledge.core.explain import evidence
from knowledge.recommendations.recommender import Recommender
from knowledge.services import record_execution
from tests.knowledge.conftest import CATALOGUE, CLUSTER, DATA, NOW

pytestmark = pytest.mark.django_db
ALIAS = "llama3.1-8b"


def ask() -> tuple[Option, tuple[Evidence, ...]]:
    found = Recommender.of(CLUSTER).recommend(model=ALIAS, fixed={"gpu_model": "L40S"}, workload=DATA)
    assert found.best is not None
    return found.best, found.evidence


def record(config: Config, rate: float = 100.0) -> None:
    record_execution(
        attempt_id=uuid4(), config=config, status="ok", now=NOW, tokens_per_second=rate, learn=False
    )


def test_a_large_history_does_not_hide_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selectors, "EVIDENCE_SCANNED", 3)
    best, nothing = ask()
    assert nothing == ()
    for _ in range(4):
        record(replace(best.config, gpu_model="A100-SXM4-80GB"))
    record(best.config, rate=123.0)
    for _ in range(4):
        record(replace(best.config, model_name="mistralai/Mistral-7B-v0.1"))
    assert ask()[1][0].tokens_per_second == 123.0


def test_a_model_asked_for_by_an_alias_is_the_model_that_was_measured() -> None:
    record(ask()[0].config, rate=123.0)
    record(replace(ask()[0].config, model_name="mistralai/Mistral-7B-v0.1"))
    first, second = ask()[1]
    assert (first.tokens_per_second, first.distance) == (123.0, 0.0)
    assert second.distance == 1.0


def test_the_models_related_to_one_begin_with_itself() -> None:
    assert evidence.related_models(ALIAS, CATALOGUE)[0] == "meta-llama/Llama-3.1-8B"
    assert "mistralai/Mistral-7B-v0.1" in evidence.related_models(ALIAS, CATALOGUE)
    assert evidence.related_models("/no/such/folder", CATALOGUE) == ["/no/such/folder"]
