"""Executions leave as a CSV that comes back without doubling anything."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest
from django.http import StreamingHttpResponse
from django.utils import timezone
from rest_framework.test import APIClient

from knowledge.importing import import_history
from knowledge.models import Execution
from knowledge.services import record_execution
from tests.knowledge.conftest import TINY

SHIPPED = Path(__file__).resolve().parents[2] / "knowledge" / "data" / "executions.csv"
URL = "/api/executions.csv"


def own_runs(rates: list[float]) -> None:
    for rate in rates:
        record_execution(
            attempt_id=uuid4(),
            config=TINY,
            status="ok",
            tokens_per_second=rate,
            runtime_s=61.5,
            peak_memory_bytes=1,
            memory_capacity_bytes=3,
            now=timezone.now(),
        )


def csv_of(api: APIClient, **query: str) -> str:
    answer = api.get(URL, query, headers={"accept": "text/csv"})
    assert answer.status_code == 200
    assert isinstance(answer, StreamingHttpResponse)
    assert answer["Content-Type"].startswith("text/csv")
    return answer.getvalue().decode()


def test_what_is_exported_adds_nothing_when_it_is_imported_again(admin_api: APIClient) -> None:
    now = timezone.now()
    lines = SHIPPED.read_text(encoding="utf-8").splitlines()
    import_history(text="\n".join(lines[:301]), now=now)
    own_runs([900.0, 900.0, 1000.1])
    before = Execution.objects.count()
    text = csv_of(admin_api)
    assert len(text.splitlines()) == before + 1 == 304
    assert import_history(text=text, now=now).added == 0
    assert Execution.objects.count() == before


def test_another_portal_takes_the_export_and_knows_it_the_second_time(admin_api: APIClient) -> None:
    own_runs([900.0, 900.0])
    text = csv_of(admin_api)
    Execution.objects.all().delete()
    assert import_history(text=text, now=timezone.now()).added == 2
    assert import_history(text=text, now=timezone.now()).added == 0
    assert csv_of(admin_api) == text


def test_only_own_runs_can_be_asked_for(admin_api: APIClient) -> None:
    lines = SHIPPED.read_text(encoding="utf-8").splitlines()
    import_history(text="\n".join(lines[:11]), now=timezone.now())
    own_runs([900.0])
    assert len(csv_of(admin_api, own="true").splitlines()) == 2


def test_a_wrong_or_unknown_question_is_named(admin_api: APIClient) -> None:
    assert "own" in admin_api.get(URL, {"own": "perhaps"}).json()["error"]["fields"]
    assert "mine" in admin_api.get(URL, {"mine": "true"}).json()["error"]["fields"]


@pytest.mark.parametrize("accept", ["text/csv", "application/json"])
def test_only_administrators_may_export(api: APIClient, accept: str) -> None:
    answer = api.get(URL, headers={"accept": accept})
    assert answer.status_code == 403
    assert answer.json()["error"]["code"]
