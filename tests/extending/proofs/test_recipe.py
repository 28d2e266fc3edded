"""An added recipe is asked for, checked, predicted and sent to the training.

It was added by its checklist.
"""

from __future__ import annotations

import pytest
from django.test import Client

from scheduler.errors import BadParameters
from scheduler.models import Attempt
from scheduler.selectors.run_specs import spec_of
from tests.harness import world
from tests.portal.conftest import token_client

pytestmark = pytest.mark.django_db


def test_people_choose_it_and_its_parameters() -> None:
    client = Client()
    client.force_login(world.user())
    page = client.get("/jobs/new/").content.decode()
    assert 'name="recipe"' in page
    assert ">Weighted fine-tuning</option>" in page
    assert 'name="params-loss_weight"' in page


def test_programs_choose_it_and_are_told_what_does_not_go_with_it() -> None:
    user = world.user()
    file = world.data_file(user)
    api = token_client(user)
    body = {"model": "builtin/tiny-llama", "training_file": file.pk, "params": {"loss_weight": 3.0}}
    refused = api.post("/api/jobs/", body, format="json").json()["error"]
    assert "is not a parameter" in refused["fields"]["params.loss_weight"]
    made = api.post("/api/jobs/", {**body, "recipe": "weighted"}, format="json").json()
    assert made["recipe"] == "weighted"
    assert made["params"]["loss_weight"]["value"] == 3.0
    file.format = "text"
    file.save()
    refused = api.post("/api/jobs/", {**body, "recipe": "weighted"}, format="json").json()["error"]
    assert "the recipe weighted learns from chat, prompt_completion" in refused["fields"]["training_file"]


def test_the_training_gets_it_with_the_default_of_its_parameter() -> None:
    made = world.placed_job(world.fake_node(slots=1), recipe="weighted")
    attempt = Attempt.objects.get(job=made)
    assert attempt.promised.config.recipe == "weighted"
    spec = spec_of(attempt.claims.get())
    assert (spec.recipe, spec.entry) == ("weighted", "trainer.train.entries.weighted")
    assert spec.params["loss_weight"] == 2.0
    with pytest.raises(BadParameters, match="loss_weight"):
        world.job(recipe="weighted", params={"loss_weight": 20.0})
