"""Workloads, inventories and executions that the tests of knowledge share."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from knowledge.core.domain.types import Config, GpuPool, Interval, Inventory, Option, Source, Workload
from knowledge.core.model import estimators, own_peaks, regressor
from tests.harness.environment import examples

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GIB = 2**30
CATALOGUE = shipped_catalogue()

CPU = GpuPool(gpu_model="cpu", node_sizes=(1,), memory_bytes=4 * GIB, peak_flops=5e10, bandwidth_bytes_s=1e10)
A100 = GpuPool(gpu_model="A100-SXM4-80GB", node_sizes=(8, 8), memory_bytes=80 * GIB, price_per_gpu_hour=2.0)
L40S = GpuPool(gpu_model="L40S", node_sizes=(4,), memory_bytes=45 * GIB, price_per_gpu_hour=1.0)
CLUSTER = Inventory(pools=(CPU, A100, L40S))
LAPTOP = Inventory(pools=(CPU,))
DATA = Workload(rows=400, lengths=((100, 50), (200, 150), (400, 150), (700, 50)), validation_rows=40)

TINY = Config(
    model_name="builtin/tiny-llama",
    tuning="lora",
    gpu_model="cpu",
    number_gpus=1,
    tokens_per_sample=704,
    per_device_batch_size=2,
    gradient_accumulation_steps=4,
    precision="float32",
    quantization="none",
    lora_r=16,
    lora_alpha=32,
    gradient_checkpointing=False,
    sharding="none",
    network="none",
)


def promised(value: float, low: float | None = None, high: float | None = None) -> Option:
    """A promise of this much of everything."""
    figure = Interval(value, low, high)
    return Option(
        config=TINY, p_valid=0.9, tokens_per_second=figure, peak_memory_bytes=figure, startup_s=1.0,
        duration_s=figure, cost=figure, source=Source.MODEL,
    )  # fmt: skip


@pytest.fixture(scope="package", autouse=True)
def _fewer_trees() -> Iterator[None]:
    """Give a predictor a third of its trees, or all with EXAMPLES=all: learning costs most here.

    It learns from the same rows and believes the same; benchmarks measure full forests.
    """
    all_of_them, quick = examples(estimators.TREES), examples(estimators.QUICK_TREES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(regressor, "TREES", all_of_them)
        patch.setattr(regressor, "QUICK_TREES", quick)
        patch.setattr(own_peaks, "QUICK_TREES", quick)
        patch.setattr(estimators, "classifiers", partial(estimators.classifiers, all_of_them))
        yield


@pytest.fixture
def data_dir(tmp_path: Path, settings: pytest.FixtureRequest) -> Path:
    """A DATA_DIR of its own: predictors are written there."""
    settings.DATA_DIR = tmp_path  # type: ignore[attr-defined]
    return tmp_path
