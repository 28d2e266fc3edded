"""Measurements that the training process reports of an attempt.

An address once stood beside them.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from django.apps import apps

from scheduler.core.measured import FIGURES, Measured
from scheduler.models import Attempt
from tests.harness import world
from tests.portal.conftest import token_client

migration = import_module("scheduler.migrations.0016_rendezvous")
ADDRESS = "node-a:29500"


def test_what_was_told_comes_back() -> None:
    reported = Measured(**dict.fromkeys(FIGURES, 2.5), software={"torch": "2.13"})
    assert Measured.from_json(reported.as_json()) == reported
    assert Measured.from_json({}) == Measured()
    assert Measured().as_json() == {}


def test_names_of_other_releases_are_left_out() -> None:
    raw: dict[str, Any] = {"rendezvous": ADDRESS, "tokens_per_s": 1000, "train_s": None, "novel": [1]}
    assert Measured.from_json(raw) == Measured(tokens_per_s=1000.0)


def test_a_figure_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="fast"):
        Measured.from_json({"tokens_per_s": "fast"})


@pytest.mark.django_db
def test_the_address_of_old_rows_moves_to_its_column_and_back() -> None:
    world.placed_job(world.fake_node())
    other = world.placed_job(world.fake_node()).attempts.get()
    attempt = Attempt.objects.exclude(pk=other.pk).get()
    for row, reported in ((attempt, {"rendezvous": ADDRESS, "train_s": 2.0}), (other, {"train_s": 3.0})):
        Attempt.objects.filter(pk=row.pk).update(measured=reported)
    migration.to_the_column(apps, None)
    rows = dict(Attempt.objects.values_list("rendezvous", "measured"))
    assert rows == {ADDRESS: {"train_s": 2.0}, "": {"train_s": 3.0}}
    migration.beside_the_figures(apps, None)
    attempt.refresh_from_db()
    assert attempt.measured == {"rendezvous": ADDRESS, "train_s": 2.0}


@pytest.mark.django_db
def test_rest_tells_the_address_beside_the_figures() -> None:
    job = world.placed_job(world.fake_node())
    job.attempts.update(measured={"train_s": 2.0}, rendezvous=ADDRESS)
    (attempt,) = token_client(job.owner).get(f"/api/jobs/{job.pk}/").json()["attempts"]
    assert attempt["measured"] == {"train_s": 2.0, "rendezvous": ADDRESS}
