"""Executions leave as a CSV that comes back without doubling anything."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest
from django.http import StreamingHttpResponse
from django.utils import timezone
from rest_framework.test import APIClient

from knowledge.importing.service import import_history
from knowledge.models import Execution
from knowledge.services import record_execution
from portal.accounts.models import User
from scheduler.models import Job
from tests.harness import world
from tests.harness.fake_node import result
from tests.knowledge.conftest import TINY

SHIPPED = Path(__file__).resolve().parents[3] / "knowledge" / "data" / "executions.csv"
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


def test_executions_of_others_are_nobodys_business(
    api: APIClient, stranger: APIClient, admin_api: APIClient, person: User
) -> None:
    import_history(text="\n".join(SHIPPED.read_text(encoding="utf-8").splitlines()[:3]), now=timezone.now())
    node = world.fake_node()
    world.placed_job(node, owner=person)
    node.end(node.take_up(), "succeeded", result())
    attempt = str(Execution.objects.get(source="own").attempt_id)
    seen = {}
    for name, asker in (("owner", api), ("stranger", stranger), ("admin", admin_api)):
        answer = asker.get("/api/executions/")
        seen[name] = (answer.json()["total"], attempt in answer.content.decode())
        key = Execution.objects.get(source="own").pk  # the newest
        there, nowhere = (
            asker.get("/api/executions/", {"after": f"exec-{one}"}).json() for one in (key, key + 1)
        )
        assert (there == nowhere) is (name == "stranger")
    assert seen == {"owner": (3, True), "stranger": (2, False), "admin": (3, True)}
    one = f"/api/executions/exec-{Execution.objects.get(source='own').pk}/"
    assert [asker.get(one).status_code for asker in (api, stranger)] == [200, 404]
    own = api.get(one).json()
    for name in ("model", "gpu_model", "status", "source"):
        field = "model_name" if name == "model" else name
        found = api.get("/api/executions/", {name: own[field], "order": "-created_at"}).json()["data"]
        assert own in found
        assert {row[field] for row in found} == {own[field]}
    assert list(api.get("/api/executions/?status=well").json()["error"]["fields"]) == ["status"]
    for kind, name in (("models", "id"), ("gpus", "name")):
        rows = api.get(f"/api/{kind}/").json()["data"]
        text = rows[-1][name][1:].upper()
        found = api.get(f"/api/{kind}/", {"text": text}).json()["data"]
        assert found == [row for row in rows if text in row[name].upper()]


def test_a_folder_of_another_portal_loses_its_path(api: APIClient) -> None:
    head, row = SHIPPED.read_text(encoding="utf-8").splitlines()[:2]
    import_history(text="\n".join([head, row]), now=timezone.now())
    Execution.objects.update(model_name="/home/grace/secret/llama")
    shown = api.get("/api/executions/").json()["data"][0]
    assert shown["model_name"] == "llama"


def test_an_export_tells_neither_paths_nor_ids_and_still_adds_nothing(admin_api: APIClient) -> None:
    folder = "/srv/models/team-of-grace/llama3.1-8b"
    own_runs([900.0])
    head, row = SHIPPED.read_text(encoding="utf-8").splitlines()[:2]
    moved = ",".join([folder, *row.split(",")[1:]])
    assert head.startswith("model_name,")
    import_history(text="\n".join([head, moved]), now=timezone.now())
    Execution.objects.filter(source="own").update(model_name=folder)
    text = csv_of(admin_api)
    assert "team-of-grace" not in text
    assert str(Execution.objects.get(source="own").attempt_id) not in text
    assert text.count("/llama3.1-8b,") == 2
    assert import_history(text=text, now=timezone.now()).added == 0
    assert csv_of(admin_api) == text
    Execution.objects.all().delete()
    report = import_history(text=text, now=timezone.now())
    assert (report.added, report.unknown_models) == (2, ("/llama3.1-8b",)), "a folder is no catalogue's model"


def test_evidence_tells_figures_and_not_whose_they_are(stranger: APIClient, person: User) -> None:
    node = world.fake_node()
    job = world.placed_job(node, owner=person, name="secret plan")
    node.end(node.take_up(), "succeeded", result())
    eve = User.objects.get(username="eve")
    body = {"model": "builtin/tiny-llama", "training_file": world.data_file(eve).pk}
    answer = stranger.post("/api/recommendations/", body, format="json")
    [near] = answer.json()["evidence"]
    assert near["tokens_per_second"] == 1000.0
    assert sorted(near) == [
        "config",
        "distance",
        "peak_memory_fraction",
        "source",
        "status",
        "tokens_per_second",
    ]
    theirs = Execution.objects.get(source="own")
    for word in (job.pk, str(theirs.attempt_id), "secret plan"):
        assert word not in answer.content.decode()
    mine = stranger.post("/api/jobs/", body, format="json").json()
    old = Job.objects.get(pk=mine["id"])
    of_mine = stranger.get(f"/api/jobs/{old.pk}/?include=evidence").json()["evidence"]
    assert of_mine == answer.json()["evidence"]
    old.evidence = [{"execution": str(theirs.pk), **near}]
    old.save(update_fields=["evidence"])
    assert stranger.get(f"/api/jobs/{old.pk}/?include=evidence").json()["evidence"] == [near]
