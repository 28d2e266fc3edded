"""An added parameter is asked for, checked, kept and sent to the training.

It was added by its checklist.
"""

from __future__ import annotations

import pytest
from django.test import Client

from scheduler.errors import BadParameters
from scheduler.models import Attempt
from scheduler.selectors.run_specs import params_of
from tests.harness import world

pytestmark = pytest.mark.django_db


def test_people_and_programs_may_set_it() -> None:
    client = Client()
    client.force_login(world.user())
    assert 'name="params-lora_dropout"' in client.get("/jobs/new/").content.decode()
    with pytest.raises(BadParameters, match="lora_dropout"):
        world.job(params={"lora_dropout": 0.9})


@pytest.mark.parametrize(
    ("params", "value", "by"), [({"lora_dropout": 0.1}, 0.1, "user"), ({}, 0.0, "default")]
)
def test_the_training_gets_what_was_set_or_its_default(
    params: dict[str, float], value: float, by: str
) -> None:
    made = world.placed_job(world.fake_node(slots=1), params=params)
    assert params_of(made, Attempt.objects.get(job=made))["lora_dropout"] == value
    assert (made.chosen["lora_dropout"]["value"], made.chosen["lora_dropout"]["by"]) == (value, by)
