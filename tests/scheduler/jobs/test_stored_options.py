"""Rows keep options and promises for years.

Every release reads the rows that earlier ones wrote.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from knowledge.core.domain import option_json
from knowledge.core.domain.option_json import read_option
from scheduler.loop.options.option_cache import options_of
from scheduler.models import Attempt, Job
from scheduler.selectors.analysis import track_record
from tests.harness import world
from tests.knowledge.conftest import promised
from tests.portal.conftest import token_client

FIRST = Path(__file__).parents[2] / "data" / "options_of_version_1.json"
BOUNDS = [(figure, bound) for figure in track_record.TARGETS for bound in ("value", "low", "high")]
QUERIED = [("source",), ("config", "number_nodes"), *BOUNDS]
OPTION = promised(100.0, 80.0, 125.0)
# Fields of configurations since.
UNSTATED = dict.fromkeys(("target_modules", "unquantized_float32", "recipe"))


def rows_of_version_1() -> dict[str, Any]:
    """As the last release without versions wrote them for one job that ran."""
    rows: dict[str, Any] = json.loads(FIRST.read_text())
    return rows


def test_an_option_comes_back_with_the_version_of_its_layout() -> None:
    assert option_json.option_json(OPTION) == {"version": option_json.VERSION, **OPTION.as_json()}
    stored = json.loads(json.dumps(option_json.option_json(OPTION)))
    assert stored["version"] == option_json.VERSION
    assert read_option(stored) == OPTION
    assert "version" not in OPTION.as_json()


@pytest.mark.parametrize("name", [name for name in rows_of_version_1() if name != "job_options"])
def test_rows_without_a_version_are_read(name: str) -> None:
    raw = rows_of_version_1()[name]
    option = read_option(raw)
    assert option.config.model_name == "builtin/tiny-llama"
    since = {"price_per_gpu_hour": None, "gpu_memory_bytes": None, "by_level": {}}  # any node will do
    config = raw["config"] | UNSTATED
    assert json.loads(json.dumps(option.as_json())) == raw | since | {"config": config}


def test_a_field_that_was_renamed_since_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A field is found after it was renamed.

    Today's layout is treated as the second one; in the first, rates had another name.
    """

    def upgrade(layout: dict[str, Any]) -> dict[str, Any]:
        return {("tokens_per_second" if name == "rate" else name): value for name, value in layout.items()}

    monkeypatch.setattr(option_json, "VERSION", 2)
    monkeypatch.setattr(option_json, "UPGRADES", {1: upgrade})
    stored = option_json.option_json(OPTION)
    old = {("rate" if name == "tokens_per_second" else name): value for name, value in stored.items()}
    assert read_option({**old, "version": 1}) == read_option(stored) == OPTION
    del old["version"]
    assert read_option(old) == OPTION


def test_the_layout_of_a_later_release_is_refused() -> None:
    with pytest.raises(ValueError, match="upgrade the portal"):
        read_option({**option_json.option_json(OPTION), "version": option_json.VERSION + 1})


def test_every_version_has_a_way_to_the_next() -> None:
    assert set(option_json.UPGRADES) == set(range(1, option_json.VERSION))


@pytest.mark.parametrize("path", QUERIED, ids=".".join)
def test_what_queries_look_into_is_where_they_look(path: tuple[str, ...]) -> None:
    value: Any = option_json.option_json(OPTION)
    for name in path:
        value = value[name]
    assert value is not None


@pytest.mark.django_db
def test_a_job_of_version_1_is_shown_and_decided_about(client: Client) -> None:
    rows, person = rows_of_version_1(), world.user("ada")
    job = world.placed_job(world.fake_node(), owner=person)
    client.force_login(person)
    Job.objects.filter(pk=job.pk).update(
        options=rows["job_options"], promise=rows["job_promise"], binding=rows["job_binding"]
    )
    Attempt.objects.update(option=rows["attempt_option"], prediction=rows["attempt_prediction"])
    job.refresh_from_db()
    assert options_of([job])[job.pk].options[0] == read_option(rows["job_binding"])
    shown = token_client(person).get(f"/api/jobs/{job.pk}/?include=attempts").json()
    assert shown["promise"]["duration_s"] == rows["job_promise"]["duration_s"]
    assert shown["attempts"][0]["config"] == rows["attempt_option"]["config"] | UNSTATED
    assert shown["attempts"][0]["promise"].keys() == shown["promise"].keys()
    page = client.get(f"/jobs/{job.pk}/").content.decode()
    assert "1 × cpu" in page
    assert "New prediction" in page
    assert "1 × cpu" in client.get(f"/jobs/{job.pk}/tabs/attempts/").content.decode()
