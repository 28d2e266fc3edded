"""The shipped table of GPUs.

It has one GPU per name, dense rates, and links whose speed is known.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

import knowledge
from knowledge.core.analytic import config_table, links
from knowledge.core.domain.catalogue import UnknownModel
from knowledge.core.domain.types import Config, GpuPool, Inventory
from tests.knowledge.conftest import CATALOGUE, GIB

TABLE = Path(knowledge.__file__).parent / "data" / "gpus.csv"
ROWS = {row["gpu_model"]: row for row in csv.DictReader(TABLE.read_text(encoding="utf-8").splitlines())}
GPUS = {name: row for name, row in ROWS.items() if name != "cpu"}


@pytest.mark.parametrize("name", ["unsloth/Llama-3.2-1B-Instruct", "random/unsloth/llama_3.2-1b"])
def test_a_model_is_known_under_the_names_of_its_mirrors(name: str) -> None:
    assert CATALOGUE.model(name).model_name == "meta-llama/Llama-3.2-1B"


@pytest.mark.parametrize(
    "name", ["/srv/gpt2", "acme/gpt2/last", "acme/", "/gpt2", "gpt2/acme", "acme/tiny-qwen"]
)
def test_a_folder_and_other_names_are_no_mirrors(name: str) -> None:
    with pytest.raises(UnknownModel):
        CATALOGUE.model(name)


def _figure(row: dict[str, str], column: str) -> float:
    return float(row[column] or "nan")


def test_a_name_leads_to_one_gpu_however_it_is_spelt() -> None:
    owners = defaultdict(set)
    for key, row in ROWS.items():
        for name in (key, *filter(None, row["aliases"].split("|"))):
            owners[CATALOGUE.gpu(name.upper().replace("-", " ")).gpu_model].add(key)
    assert {key: {key} for key in ROWS} == owners


@pytest.mark.parametrize(
    ("reported", "gpu_model"),
    [
        ("NVIDIA RTX A5000", "RTX-A5000"),
        ("NVIDIA RTX 5000 Ada Generation", "RTX-5000-Ada"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "RTX-PRO-6000-Blackwell"),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "RTX-PRO-6000-Blackwell-Max-Q"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX-PRO-6000-Blackwell-Server"),
        ("NVIDIA GeForce RTX 3080 Ti", "RTX-3080-Ti"),
        ("NVIDIA GeForce RTX 4070 Ti SUPER", "RTX-4070-Ti-SUPER"),
        ("NVIDIA GeForce RTX 5080", "RTX-5080"),
        ("Quadro RTX 6000", "Quadro-RTX-6000"),
        ("NVIDIA TITAN RTX", "TITAN-RTX"),
        ("Tesla V100S-PCIE-32GB", "V100S-PCIe-32GB"),
        ("NVIDIA A800-SXM4-80GB", "A800-SXM4-80GB"),
        ("NVIDIA A800 80GB PCIe", "A800-PCIe-80GB"),
        ("NVIDIA H800", "H800-SXM5-80GB"),
        ("NVIDIA H20", "H20-SXM5-96GB"),
        ("NVIDIA H100 80GB HBM2e", "H100-PCIe-80GB"),
        ("NVIDIA GH200 120GB", "GH200-96GB"),
        ("NVIDIA B300 SXM6 AC", "B300-SXM-288GB"),
        ("NVIDIA GB300", "GB300-288GB"),
        ("NVIDIA GB10", "GB10"),
        ("AMD Instinct MI355X", "MI355X"),
    ],
)
def test_gpus_are_known_by_the_name_that_their_driver_reports(reported: str, gpu_model: str) -> None:
    assert CATALOGUE.gpu(reported).gpu_model == gpu_model


@pytest.mark.parametrize("gpu_model", ROWS)
def test_every_gpu_has_the_figures_a_prediction_needs_and_says_where_from(gpu_model: str) -> None:
    row = ROWS[gpu_model]
    needed = ("memory_bandwidth_gb_s", "link_gb_s_per_direction_total")
    assert all(_figure(row, column) > 0 for column in needed)
    assert gpu_model == "cpu" or _figure(row, "memory_gib") > 0
    if row["usable_gib"]:
        assert 0.96 < _figure(row, "usable_gib") / _figure(row, "memory_gib") < 1
    assert CATALOGUE.gpu(gpu_model).peak_flops(None) > 1e9
    assert row["link"] in links.LINKS
    assert row["source"]


@pytest.mark.parametrize("gpu_model", GPUS.keys() - {"Gaudi3"})  # its fp16 and tf32 run at a quarter of bf16
def test_peak_rates_are_the_dense_ones(gpu_model: str) -> None:
    """A sparse figure in one column would be twice what the others say."""
    row = GPUS[gpu_model]
    bf16 = _figure(row, "bf16_tflops_dense")
    if row["fp16_tflops_dense"] and row["bf16_tflops_dense"]:
        assert _figure(row, "fp16_tflops_dense") == bf16
    if row["fp8_tflops_dense"]:
        assert _figure(row, "fp8_tflops_dense") == pytest.approx(2 * bf16, rel=0.02)
    if row["tf32_tflops_dense"]:
        assert _figure(row, "tf32_tflops_dense") == pytest.approx(bf16 / 2, rel=0.02)


@pytest.mark.parametrize(
    "gpu_model", [name for name in GPUS if name.startswith(("RTX-3", "RTX-40", "RTX-50"))]
)
def test_consumer_tensor_cores_run_at_half_the_rate_of_professional_ones(gpu_model: str) -> None:
    row = GPUS[gpu_model]
    times = 4 if gpu_model.endswith("-Ada") else 2
    assert _figure(row, "bf16_tflops_dense") == pytest.approx(times * _figure(row, "fp32_tflops"), rel=0.02)


@pytest.mark.parametrize(
    "gpu_model", [n for n in GPUS if n.startswith(("T4", "V100", "Quadro", "TITAN", "RTX-2"))]
)
def test_volta_and_turing_have_no_bfloat16(gpu_model: str) -> None:
    sheet = CATALOGUE.gpu(gpu_model)
    assert sheet.bf16_flops is None
    assert sheet.peak_flops("bfloat16") == sheet.fp16_flops


def test_a_link_that_was_cut_moves_less_than_its_class() -> None:
    config = Config(
        model_name="llama3.1-8b",
        tuning="full",
        gpu_model="H100-SXM5-80GB",
        number_gpus=8,
        tokens_per_sample=1024,
        per_device_batch_size=1,
    )
    whole, cut, bridge = (
        config_table.columns([replace(config, gpu_model=name)], CATALOGUE).link_bytes_s[0]
        for name in ("H100-SXM5-80GB", "H800-SXM5-80GB", "H100-NVL-94GB")
    )
    assert whole == pytest.approx(370e9, rel=0.01)
    assert cut == pytest.approx(whole * 200 / 450)
    assert bridge == pytest.approx(whole * 300 / 450)


def test_gpus_of_an_inventory_have_what_its_nodes_measured_and_the_least_memory() -> None:
    volta = GpuPool(gpu_model="V100-SXM2-32GB", node_sizes=(1,), memory_bytes=31 * GIB, peak_flops=5e13)
    small = GpuPool(gpu_model="V100-SXM2-32GB", node_sizes=(1,), memory_bytes=16 * GIB, peak_flops=5e13)
    odd = GpuPool(gpu_model="Exotic-9000", node_sizes=(1,), memory_bytes=64 * GIB)
    here = CATALOGUE.on(Inventory(pools=(small, volta, odd)))
    found, sheet = here.gpu("V100-SXM2-32GB"), CATALOGUE.gpu("V100-SXM2-32GB")
    assert (found.memory_bytes, found.bandwidth_bytes_s) == (16 * GIB, sheet.bandwidth_bytes_s)
    assert {found.peak_flops(precision) for precision in (None, "float16", "float32")} == {5e13}
    assert found.bf16_flops is None, "a measured peak brings no units that the GPU lacks"
    assert sheet.memory_bytes == 32 * GIB
    assert sheet.capacity_bytes == 31.73 * GIB
    assert found.capacity_bytes == 16 * GIB, "the driver's share is left out by the node"
    assert here.known_gpu("Exotic-9000") is None
    assert here.same_gpu("V100-SXM2-32GB", "Tesla V100-SXM2-32GB")
