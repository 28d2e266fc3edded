"""Recommendations on the GPUs of the shipped catalogue before any run is known."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.core.management import call_command

from tests.knowledge.conftest import CATALOGUE

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]
GPUS = [gpu.gpu_model for gpu in CATALOGUE.shipped_gpus if gpu.gpu_model != "cpu"]


def recommend(gpu_model: str, model: str = "qwen2.5-7b", **params: Any) -> dict[str, Any]:
    """Return the recommendation for a node with one such GPU.

    It is read from the output of `manage.py recommend`.
    """
    pool = {"gpu_model": gpu_model, "node_sizes": [1]}
    out = io.StringIO()
    request = {"model": model, "params": params, "inventory": [pool]}
    call_command("recommend", json=json.dumps(request), stdout=out)
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def speed(gpu_model: str, **params: Any) -> float:
    """Tokens per second of the best option."""
    return float(recommend(gpu_model, **params)["options"][0]["tokens_per_second"]["value"])


@pytest.mark.parametrize("gpu_model", GPUS)
def test_a_small_model_can_be_trained_on_every_gpu(gpu_model: str) -> None:
    found = recommend(gpu_model, "qwen2.5-0.5b", tuning="lora")
    best = found["options"][0]
    assert best["config"]["gpu_model"] == gpu_model
    assert 100 < best["tokens_per_second"]["value"] < 1e6
    has_bf16 = CATALOGUE.gpu(gpu_model).bf16_flops is not None
    assert found["bound"]["precision"] == ("bfloat16" if has_bf16 else "float16")


@pytest.mark.parametrize(
    ("slower", "faster"),
    [
        ("A2", "T4"),
        ("T4", "RTX-A4000"),
        ("RTX-A4000", "RTX-A5000"),
        ("RTX-A5000", "RTX-A6000"),
        ("RTX-3090", "RTX-A5000"),
        ("RTX-3090", "RTX-3090-Ti"),
        ("RTX-3090-Ti", "RTX-4090-D"),
        ("RTX-4080", "RTX-4090"),
        ("RTX-5080", "RTX-5090"),
        ("V100-PCIe-32GB", "V100S-PCIe-32GB"),
        ("RTX-A6000", "A100-PCIe-40GB"),
        ("RTX-4500-Ada", "RTX-5000-Ada"),
        ("RTX-6000-Ada", "RTX-PRO-6000-Blackwell"),
        ("GB10", "RTX-PRO-6000-Blackwell-Max-Q"),
        ("H20-SXM5-96GB", "A100-SXM4-80GB"),
        ("RTX-PRO-6000-Blackwell", "H800-PCIe-80GB"),
        ("H800-SXM5-80GB", "B300-SXM-288GB"),
        ("MI325X", "MI350X"),
    ],
)
def test_a_7b_model_in_4_bits_is_faster_on_the_better_gpu(slower: str, faster: str) -> None:
    assert speed(slower, tuning="qlora") < speed(faster, tuning="qlora")


def test_nvlink_cut_for_export_slows_sharded_training_down() -> None:
    def eight(gpu_model: str) -> float:
        pool = {"gpu_model": gpu_model, "node_sizes": [8]}
        out = io.StringIO()
        request = {"model": "qwen2.5-7b", "params": {"tuning": "full", "number_gpus": 8}, "inventory": [pool]}
        call_command("recommend", json=json.dumps(request), stdout=out)
        return float(json.loads(out.getvalue())["options"][0]["tokens_per_second"]["value"])

    assert eight("A800-PCIe-80GB") < eight("A800-SXM4-80GB") < eight("A100-SXM4-80GB")
