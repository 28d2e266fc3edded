"""Measurements that the training process reports of an attempt."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.core.measured import FIGURES, Measured
from tests.harness import world
from tests.portal.conftest import token_client

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
def test_rest_tells_the_address_beside_the_figures() -> None:
    job = world.placed_job(world.fake_node())
    job.attempts.update(measured={"train_s": 2.0}, rendezvous=ADDRESS)
    (attempt,) = token_client(job.owner).get(f"/api/jobs/{job.pk}/?fields=attempts").json()["attempts"]
    assert attempt["measured"] == {"train_s": 2.0, "rendezvous": ADDRESS}
