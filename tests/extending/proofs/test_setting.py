"""A setting that was added by its checklist is tried, explained, kept and sent to the training."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from knowledge.core.data.measurement import Measurement
from knowledge.core.data.sources import generic
from knowledge.core.domain import config_space
from knowledge.core.domain.types import Config
from knowledge.importing.service import import_history
from knowledge.models import Execution
from scheduler.errors import BadParameters
from scheduler.models import Attempt, Job
from scheduler.selectors.run_specs import params_of
from tests.generated_docs import TRAINING, with_parameters
from tests.harness import world
from tests.harness.fake_node import result, step

NAME = "fused_optimizer"
CONFIG = Config(
    model_name="builtin/tiny-llama", tuning="lora", gpu_model="cpu", number_gpus=1, tokens_per_sample=704,
    per_device_batch_size=2,
)  # fmt: skip


def ended(**params: Any) -> Job:
    node = world.fake_node()
    job = world.placed_job(node, params=params)
    node.end(node.take_up(), "succeeded", step(1), result())
    return job


@pytest.mark.django_db
@pytest.mark.parametrize(("params", "by"), [({}, "recommended"), ({NAME: False}, "user")])
def test_it_is_chosen_sent_and_kept(params: dict[str, Any], by: str) -> None:
    job = ended(**params)
    choice = job.chosen[NAME]
    assert (choice["value"], choice["by"]) == (not params, by)
    assert by == "user" or choice["reason"] == "It updates the weights in one pass."
    assert params_of(job, Attempt.objects.get())[NAME] is not bool(params)
    row = Execution.objects.get()
    assert (row.settings[NAME], row.config.fused_optimizer) == (not params, not params)  # type: ignore[attr-defined]
    client = Client()
    client.force_login(job.owner)
    assert client.get("/api/executions/").json()["data"][0][NAME] is not bool(params)
    assert f'name="params-{NAME}"' in client.get("/jobs/new/").content.decode()
    with pytest.raises(BadParameters, match=NAME):
        world.job(params={NAME: "yes"})


@pytest.mark.django_db
def test_histories_are_written_and_read_with_it() -> None:
    config = replace(CONFIG, **{NAME: False})
    text = generic.write([Measurement(config=config, status="ok", source="csv", effective_batch_size=2)])
    import_history(text=text, source="csv", now=timezone.now())
    assert Execution.objects.get().config == config


@pytest.mark.django_db
def test_physics_knows_it() -> None:
    world.fake_node()
    fused, plain = (world.job(params={NAME: value}).promised for value in (True, False))
    assert fused.tokens_per_second.value > plain.tokens_per_second.value


def test_runs_from_before_it_are_repeats_of_its_default() -> None:
    usual, plain = (replace(CONFIG, **{NAME: value}) for value in (True, False))
    hashes = [config_space.config_hash(config) for config in (CONFIG, usual, plain)]
    assert hashes[0] == hashes[1] != hashes[2]


def test_its_row_can_be_written_into_docs() -> None:
    assert "| `fused_optimizer` | dispatch | `true` |" in with_parameters(TRAINING.read_text())
