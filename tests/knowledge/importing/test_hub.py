"""Importing straight from a hub.

The tests cover the choice of the file, the stored provenance, and the possible failures.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from knowledge.models import Execution
from portal.accounts.models import AuditEntry
from tests.harness.hub import COMMIT, Hub, serving

pytestmark = pytest.mark.django_db
DATASET = "some-lab/Bench"
# The shape of the complete LLMFineTuningBench: floats everywhere, protocol and settings inside identifiers.
RAN = {
    "identifier": "model_name.llama3.1-8b-number_gpus.2-batch_size.8-gradient_accumulation_steps.4",
    "experiment_id": "SFTTrainer.finetune_full-fms_hf_tuning_version.3.0.0-auto_stop_method.WARMUP_60S",
    "method": "full",
    "model_name": "llama3.1-8b",
    "number_nodes": "1.0",
    "gpu_model": "NVIDIA-A100-SXM4-80GB",
    "number_gpus": "2.0",
    "tokens_per_sample": "1024.0",
    "batch_size": "8.0",
    "enable_roce": "0.0",
    "fast_moe": "0.0",
    "fast_kernels": "['True', 'True', 'True']",
    "fms_hf_tuning_version": "3",
    "gpu_memory_utilization_peak": "71.5",
    "is_valid": "1.0",
    "train_runtime": "180.5",
    "torch_dtype": "bfloat16",
    "dataset_tokens_per_second": "5123.25",
}
FAILED = {
    **RAN,
    "experiment_id": "SFTTrainer.finetune_full-fms_hf_tuning_version.2.8.2-stop_after_seconds.600",
    "identifier": "model_name.llama3.1-8b",
    "batch_size": "128.0",
    "fast_kernels": "",
    "is_valid": "0.0",
    "gpu_memory_utilization_peak": "",
    "train_runtime": "",
    "dataset_tokens_per_second": "",
}
REFUSED = {**FAILED, "batch_size": "3.0"}


def table(*rows: dict[str, str]) -> bytes:
    out = io.StringIO()
    writer = csv.DictWriter(out, RAN, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


@pytest.fixture
def hub(settings: Any) -> Iterator[Hub]:
    """A hub with one data set of two tables, named by HF_ENDPOINT."""
    files = {
        "README.md": b"# Bench",
        "small.csv": table(RAN),
        "bench-v1-0-0.csv": table(RAN, FAILED, REFUSED),
    }
    with serving(Hub(DATASET, files)) as running:
        settings.HF_ENDPOINT = running.address
        yield running


def load(place: str = DATASET) -> str:
    out = io.StringIO()
    call_command("import_history", f"hub:{place}", stdout=out)
    return out.getvalue()


def test_the_largest_table_is_read_and_its_origin_remembered(hub: Hub) -> None:
    said = load()
    assert "3 rows read, 3 added; breaking a launch rule: 1" in said
    assert f"bench-v1-0-0.csv at {COMMIT}, licence apache-2.0" in said
    entry = AuditEntry.objects.get(action="history imported")
    assert entry.target == DATASET
    assert entry.data["revision"] == COMMIT
    assert entry.data["licence"] == "apache-2.0"
    assert len(entry.data["sha256"]) == 64


def test_what_the_complete_data_set_says_in_identifiers_is_understood(hub: Hub) -> None:
    load()
    ran = Execution.objects.get(status="ok")
    assert (ran.number_gpus, ran.gradient_accumulation_steps, ran.software) == (2, 4, "3.0.0")
    assert (ran.run_protocol, ran.fast_kernels, ran.runtime_s) == ("auto_stop", True, None)
    failed = Execution.objects.get(status="failed")
    assert (failed.run_protocol, failed.software, failed.fast_kernels) == ("stop_after_600s", "2.8.2", False)
    assert Execution.objects.filter(learn_validity=True).count() == 3


def test_the_table_that_the_card_names_goes_first(hub: Hub) -> None:
    hub.card["configs"] = [{"config_name": "default", "data_files": "small.csv"}]
    assert "1 row read" in load()


def test_a_table_can_be_named(hub: Hub) -> None:
    assert "1 row read" in load(f"{DATASET}/small.csv")


def test_the_same_data_set_again_adds_nothing(hub: Hub) -> None:
    load()
    assert "3 rows read, 0 added" in load()


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("some-lab/Other", "answered 404"),
        (f"{DATASET}/none.csv", "answered 404"),
        ("just-a-name", "write hub:OWNER/NAME"),
        (f"{DATASET}/../secret.csv", "write hub:OWNER/NAME"),
        (f"{DATASET}/README.md", "write hub:OWNER/NAME"),
    ],
)
def test_a_place_that_is_none_is_named_and_imports_nothing(hub: Hub, place: str, words: str) -> None:
    with pytest.raises(CommandError, match=words):
        load(place)
    assert not Execution.objects.exists()
    assert not AuditEntry.objects.filter(action="history imported").exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"<!DOCTYPE html><html><body>Please sign in</body></html>", "arrived as a web page"),
        (b"\xff\xfe\x00bad", "not UTF-8"),
        (table(RAN, {**RAN, "number_gpus": "many"}), "line 3, number_gpus"),
    ],
)
def test_bad_content_imports_nothing(hub: Hub, content: bytes, words: str) -> None:
    hub.files = {"bench.csv": content}
    with pytest.raises(CommandError, match=words):
        load()
    assert not Execution.objects.exists()


def test_a_damaged_file_is_refused(hub: Hub) -> None:
    hub.stated["bench-v1-0-0.csv"] = "0" * 64
    with pytest.raises(CommandError, match="arrived damaged"):
        load()


def test_a_data_set_without_a_table_says_what_it_has(hub: Hub) -> None:
    hub.files = {"data.parquet": b"PAR1"}
    with pytest.raises(CommandError, match=r"no CSV file; it has data\.parquet"):
        load()


def test_more_than_the_bound_is_not_read(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("knowledge.importing.hub.LARGEST", 100)
    with pytest.raises(CommandError, match="larger than the 100 bytes"):
        load()


def test_without_internet_the_remedy_is_named(settings: Any) -> None:
    settings.HF_ENDPOINT = "http://127.0.0.1:9"
    with pytest.raises(CommandError, match="Without internet, download the file"):
        load()


def test_what_is_no_hub_is_told_apart(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "info", lambda: {"error": "what?"})
    with pytest.raises(CommandError, match="does not answer like a hub"):
        load()
