"""A base model that only the hub could know is looked up there, or said to be unchecked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from django.core.cache import cache

from knowledge.catalogue import remote
from knowledge.catalogue.hub_models import OnHub, is_hub_id, on_hub
from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from scheduler.errors import BadParameters
from tests.harness import world

THERE, MISSING = "someone/has-this", "nonsense/model-xyz"


@pytest.fixture
def hub(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A hub with one model; the addresses that were asked for."""
    requests: list[str] = []

    def status(address: str, *, within_s: float, token: str = "") -> int:
        requests.append(address)
        return 200 if address.endswith(f"/api/models/{THERE}") else 401

    monkeypatch.setattr(remote, "status", status)
    settings.HF_HUB_OFFLINE, settings.HF_ENDPOINT = False, "http://hub.test"
    cache.clear()
    yield requests
    cache.clear()


@pytest.fixture
def no_hub(hub: list[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    def status(address: str, **_: object) -> int:
        hub.append(address)
        raise httpx.ConnectError("no route")

    monkeypatch.setattr(remote, "status", status)
    return hub


def test_only_names_that_the_hub_alone_could_know_are_looked_up() -> None:
    names = [THERE, "builtin/tiny-llama", "random/llama3.1-8b", "llama3.1-8b", "/models/x", "a/b/c"]
    assert [name for name in names if is_hub_id(name, shipped_catalogue())] == [THERE]


def test_what_the_hub_said_is_remembered(hub: list[str]) -> None:
    assert [on_hub(name) for name in (THERE, MISSING) * 2] == [OnHub.THERE, OnHub.MISSING] * 2
    assert len(hub) == 2


def test_a_hub_that_is_away_is_not_asked_again_at_once(no_hub: list[str]) -> None:
    assert {on_hub(name) for name in (THERE, MISSING)} == {OnHub.UNCHECKED}
    assert len(no_hub) == 1


@pytest.mark.django_db
def test_a_model_that_the_hub_does_not_have_is_refused_at_its_field(hub: list[str]) -> None:
    with pytest.raises(BadParameters, match="check the spelling") as refused:
        world.job(model=MISSING)
    assert list(refused.value.fields) == ["model"]
    assert not any("Unchecked" in note for note in world.job(model=THERE).notes)


@pytest.mark.django_db
def test_without_the_hub_a_model_is_taken_and_said_to_be_unchecked(no_hub: list[str]) -> None:
    world.fake_node()
    notes = world.job(model=MISSING).notes
    assert any(note.startswith("Unchecked:") and MISSING in note for note in notes)
