"""Property: for any input, a parser answers with a value or its own error.

It does so soon and within bounded memory. A short run in the ordinary suite, always the same; a
long one, new each time, with `-m slow tests/fuzz`.
"""

from __future__ import annotations

import io
import json
import resource
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from knowledge.catalogue import hf_config_reading
from knowledge.catalogue.hf_config_reading import CannotAdd
from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from knowledge.core.data.sources import generic, registry
from knowledge.core.data.sources.table import BadTable
from knowledge.core.domain.hf_config import model_from_config
from portal.ops.backup.errors import BadArchive
from portal.ops.backup.reading import unpack
from scheduler.simulator.errors import ClusterError, TraceError
from scheduler.simulator.inputs.cluster import parse_cluster
from scheduler.simulator.inputs.importers.registry import IMPORTERS, load_trace
from tests.fuzz.mutations import mutated, mutated_bytes, mutated_json, mutated_table, odd_texts
from tests.harness.fake_node import facts
from tests.harness.hostile import JSON_KINDS, bounded, json_texts, peak_bytes
from trainer import formats, protocol_parsing, strict_json
from trainer.protocol import PROTOCOL, ProtocolError
from trainer.recipes import DEFAULT_RECIPE, ParamError

JSON_ERRORS = (strict_json.RefusedJson, json.JSONDecodeError)
SHORT, LONG = 40, 5_000
MEMORY_BYTES = 4_000_000_000
SPEED_RUN = {"params": {"tuning": "lora"}, "tokens_per_s": 1.0, "peak_memory_bytes": 1}
SPEED_TEST = {
    "test": "t",
    "gpu_model": "cpu",
    "model": "builtin/tiny-llama",
    "runs": [SPEED_RUN],
    "startup_s": 1.0,
    "busy_cores": 0.0,
}
LINK_TEST = {"first": 0, "second": 1, "bytes_per_s": 1e10, "latency_s": 1e-5}
FACTS = facts(speed_tests=[SPEED_TEST], link_tests=[LINK_TEST])
ENROL = {"protocol": PROTOCOL, "join_token": "fjoin-a", "name": "n", "facts": FACTS}
REPORT = {"seq": 1, "kind": "step", "body": {"step": 1, "total_steps": 2, "loss": 1.0}}
CLAIM = {"claim": "c", "fence": 1, "phase": "running", "reason": "", "exit_code": None, "reports": [REPORT]}
SYNC = {
    "protocol": PROTOCOL,
    "boot_id": "b",
    "facts": facts(),
    "claims": [CLAIM, {**CLAIM, "phase": "ended", "outcome": "succeeded", "exit_code": 0}],
    "gpus": [{"index": 0, "util": 0.5, "memory_used_bytes": 1}],
}
CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
TURNS = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "weight": 1}]
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALL], "reasoning_content": "c"}
ROWS = (
    {"prompt": "a", "completion": "b"},
    {"messages": TURNS},
    {"messages": [TURNS[0], CALLING, {"role": "tool", "content": "d"}, TURNS[1]], "tools": [TOOL]},
    {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}, TURNS[1]]},
    {"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}], "system": "c"},
    {"instruction": "a", "input": "b", "output": "c"},
    {"text": "a"},
    {"prompt": "a", "completion": "b", "label": True},
    {"prompt": "a", "chosen": "b", "rejected": "c"},
)
CONFIG = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "vocab_size": 1000,
    "model_type": "llama",
    "hidden_act": "silu",
    "num_key_value_heads": 2,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "tie_word_embeddings": True,
}
PARAMS = {
    "tuning": "lora",
    "lora_r": 8,
    "epochs": 1.0,
    "seed": 1,
    "number_gpus": 2,
    "sharding": "ddp",
    "effective_batch_size": 16,
    "per_device_batch_size": 2,
    "gradient_accumulation_steps": 4,
}
HISTORY = ("llama3.1-8b", "lora", "NVIDIA-A100-SXM4-80GB", "2", "512", "4", "ok")


@pytest.fixture(autouse=True)
def _memory() -> Iterator[None]:
    """Input that would fill the machine's memory fails here."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def read_rows(raw: bytes) -> None:
    formats.check(io.BytesIO(b'{"prompt": "a", "completion": "b"}\n' + raw))
    formats.check(io.BytesIO(raw))


def read_model(raw: bytes) -> None:
    text = raw.decode("utf-8", "replace")
    hf_config_reading.check_sizes(text)
    model_from_config(text, "a/b")  # what passes the check never fails here


def read_history(text: str) -> None:
    registry.parse(text, shipped_catalogue())


def read_trace(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "jobs.csv"
        path.write_text(text, encoding="utf-8", errors="surrogatepass", newline="")
        load_trace(path)


@cache
def archive() -> bytes:
    out = io.BytesIO()
    manifest = {"created_at": "", "vendor": "sqlite", "migrations": [], "members": {}, "format": 1}
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, content in {"database": b"x", "manifest.json": json.dumps(manifest).encode()}.items():
            about = tarfile.TarInfo(name)
            about.size = len(content)
            tar.addfile(about, io.BytesIO(content))
    return out.getvalue()


def read_archive(raw: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "a.tar").write_bytes(raw)
        unpack(Path(folder) / "a.tar", Path(folder) / "new")


traces = st.sampled_from(IMPORTERS).flatmap(
    lambda one: mutated_table(sorted(one.columns), ["1"] * len(one.columns))
)


@dataclass(frozen=True, slots=True)
class Parser:
    """How it is fed, what it does, and the errors that are its own."""

    given: st.SearchStrategy[Any]
    read: Callable[[Any], Any]
    errors: tuple[type[Exception], ...]


PARSERS = {
    "JSON": Parser(mutated_json([SYNC, *ROWS]), strict_json.loads, JSON_ERRORS),
    "enrolment": Parser(mutated([ENROL]), protocol_parsing.parse_enrol, (ProtocolError,)),
    "sync": Parser(mutated([SYNC]), protocol_parsing.parse_sync, (ProtocolError,)),
    "training file": Parser(mutated_json(ROWS), read_rows, (formats.FormatError,)),
    "parameters": Parser(mutated([PARAMS]), DEFAULT_RECIPE.clean, (ParamError,)),
    "config.json": Parser(mutated_json([CONFIG, {"text_config": CONFIG}]), read_model, (CannotAdd,)),
    "history": Parser(mutated_table(generic.REQUIRED, HISTORY), read_history, (BadTable,)),
    "trace": Parser(traces, read_trace, (TraceError,)),
    "cluster": Parser(odd_texts.map("a100:{}x8".format) | odd_texts, parse_cluster, (ClusterError,)),
    "archive": Parser(mutated_bytes(archive()), read_archive, (BadArchive,)),
}  # fmt: skip


def feed(parser: Parser, times: int, *, same: bool) -> None:
    @settings(
        max_examples=times, deadline=None, database=None, derandomize=same,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(parser.given)
    def holds(value: Any) -> None:
        with bounded(seconds=5), suppress(*parser.errors):
            parser.read(value)

    holds()


@pytest.mark.parametrize("name", PARSERS)
def test_a_parser_answers_with_its_own_error_or_none(name: str) -> None:
    feed(PARSERS[name], SHORT, same=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", PARSERS)
def test_a_parser_answers_so_for_long(name: str) -> None:
    feed(PARSERS[name], LONG, same=False)


LARGEST = {"JSON": 8_000_000, "training file": 1_000_000, "config.json": 1_000_000}


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGEST)
@pytest.mark.parametrize("kind", JSON_KINDS)
def test_the_largest_input_takes_bounded_time_and_memory(name: str, kind: str) -> None:
    parser = PARSERS[name]
    raw = json_texts(LARGEST[name] - 100)[kind].encode()

    def read() -> None:
        with suppress(*parser.errors):
            parser.read(raw)

    with bounded(seconds=5):
        read()
    assert peak_bytes(read) < 50 * len(raw)
