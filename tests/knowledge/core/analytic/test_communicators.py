"""Memory of NCCL's communicators."""

from __future__ import annotations

from dataclasses import replace

import pytest

from knowledge.core.analytic import cost_model
from knowledge.core.analytic.config_table import columns
from knowledge.core.domain.types import Config
from tests.knowledge.conftest import CATALOGUE
from tests.knowledge.core.analytic.test_gathered import LLAMA

MIXTURE = replace(LLAMA, model_name="ibm-granite/granite-3.1-3b-a800m-instruct")
NODES = replace(LLAMA, number_gpus=16, number_nodes=2)
CPUS = replace(LLAMA, gpu_model="cpu", sharding="ddp")


@pytest.mark.parametrize(
    ("config", "groups", "peers"),
    [
        (replace(LLAMA, number_gpus=1), 0, 0),
        (LLAMA, 1, 0),
        (replace(LLAMA, sharding="ddp"), 1, 0),
        (NODES, 1, 0),
        (replace(NODES, sharding="hybrid"), 3, 0),
        (MIXTURE, 1, 0),
        (replace(MIXTURE, expert_parallel=8), 1, 7),
        (replace(MIXTURE, expert_parallel=2), 3, 1),
        (CPUS, 0, 0),
    ],
)
def test_each_group_takes_a_context_and_each_gpu_that_tokens_go_to_its_channels(
    config: Config, groups: int, peers: int
) -> None:
    stated = cost_model.memory(columns([config], CATALOGUE))
    assert stated.communicators[0] == pytest.approx(groups * stated.context[0] + peers * 308e6, rel=0.001)
