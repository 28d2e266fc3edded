"""Parsing of what a node is: its GPUs, where they sit, and what it measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainer.message_reader import Reader, storable
from trainer.protocol import NODE_KINDS, DeclaredSite, GpuFacts, NodeFacts, ProtocolError
from trainer.self_tests import LinkTest, SpeedRun, SpeedTest

LEAST = 1e-9  # of figures above 0
MOST_MODELS = 1024  # that lie on a node
MOST_GPUS = 64  # of a machine, slices of GPUs included; CPU slots go by its cores
MOST_CORES = 4096
MOST_GPU_BYTES, MOST_MEMORY_BYTES = 2**42, 2**47
_NO_UUID = frozenset({"", "n/a", "[n/a]", "none", "null", "unknown", "unknown error", "[unknown error]"})
MOST_GROUPS = 1024  # of GPUs in a node: sockets, NUMA nodes and so on are numbered below it


def _gpu_facts(reader: Reader) -> GpuFacts:
    optional: dict[str, Any] = {
        name: reader.number(name)
        for name in ("peak_flops", "bandwidth_bytes_s")
        if reader.raw.get(name) is not None
    }
    optional |= {name: _group(reader, name) for name in ("numa", "socket")}
    if reader.raw.get("declared") is not None:
        optional["declared"] = parse_site(reader.raw["declared"], f"{reader.path}.declared")
    return GpuFacts(
        index=reader.whole("index", high=1023),
        model=reader.text("model", limit=100),
        memory_bytes=reader.whole("memory_bytes", low=1, high=MOST_GPU_BYTES),
        uuid=reader.text("uuid", "", limit=100),
        links=reader.texts("links", 100),
        pci=reader.texts("pci", 100),
        **optional,
    )


def parse_site(raw: Any, path: str) -> DeclaredSite:
    """A `DeclaredSite`, as messages and files of an agent's owner hold it."""
    reader = Reader(raw, path)
    groups = {name: reader.whole(name, high=MOST_GROUPS - 1) for name in ("socket", "numa", "switch")}
    nvlink = reader.raw.get("nvlink")
    return DeclaredSite(
        **groups, nvlink=None if nvlink is None else reader.whole("nvlink", high=MOST_GROUPS - 1)
    )


def _group(reader: Reader, name: str) -> int | None:
    return None if reader.raw.get(name) is None else reader.whole(name)


def parse_facts(raw: Any, path: str = "facts") -> NodeFacts:
    """The `NodeFacts` of an enrolment or a sync; GPU indices must be 0, 1, 2 ..."""
    reader = Reader(raw, path)
    gpus = tuple(_gpu_facts(entry) for entry in reader.items("gpus", 1024))
    if not gpus or [gpu.index for gpu in gpus] != list(range(len(gpus))):
        raise ProtocolError(
            f"{path}.gpus", "must list at least one GPU or slot, indices 0, 1, 2 ... in order"
        )
    _refuse_twins(gpus, path)
    cores, memory_bytes = reader.whole("cores", low=1, high=MOST_CORES), reader.whole("memory_bytes", low=1)
    _refuse_crowd(gpus, cores, memory_bytes, path)
    return NodeFacts(
        hostname=reader.text("hostname", limit=255),
        cores=cores,
        memory_bytes=memory_bytes,
        gpus=gpus,
        software=reader.texts("software", 100),
        disk_free_bytes=reader.whole("disk_free_bytes", 0),
        # Agents from before it say nothing: they get every tuning, as they always did.
        cannot_train=reader.texts("cannot_train", 300),
        speed_tests=tuple(_speed_test(entry) for entry in reader.items("speed_tests", 64)),
        link_tests=tuple(_link_test(entry, len(gpus)) for entry in reader.items("link_tests", 64)),
        link_problem=storable(reader.text("link_problem", "", limit=500)),
        kind=_kind(reader),
        market=storable(reader.text("market", "", limit=100)),
        held_models=_held_models(reader),
    )


def device_of(uuid: str) -> str | None:
    """Return what tells a GPU from all others; None where its driver does not say.

    CPU slots have no UUID, and drivers of some virtual GPUs name none, or zeros. Slices of a GPU (MIG) have
    UUIDs of their own.
    """
    name = uuid.strip().lower()
    digits = name.removeprefix("mig-").removeprefix("gpu-")
    return None if name in _NO_UUID or not digits.strip("0-") else name


def _refuse_crowd(gpus: Sequence[GpuFacts], cores: int, memory_bytes: int, path: str) -> None:
    """Refuse more than one machine can have.

    There is a core for each slot, and the memory that they share.
    """
    slots = [gpu for gpu in gpus if gpu.model == "cpu"]
    if len(gpus) - len(slots) > MOST_GPUS:
        raise ProtocolError(f"{path}.gpus", f"lists {len(gpus)} GPUs, and a node has {MOST_GPUS} at most")
    if len(slots) > cores:
        raise ProtocolError(f"{path}.gpus", f"lists {len(slots)} CPU slots, one core each, on {cores} cores")
    if memory_bytes > MOST_MEMORY_BYTES:
        raise ProtocolError(f"{path}.memory_bytes", f"must be at most {MOST_MEMORY_BYTES}")


def _refuse_twins(gpus: Sequence[GpuFacts], path: str) -> None:
    numbers: dict[str, int] = {}
    for gpu in gpus:
        device = device_of(gpu.uuid)
        if device and numbers.setdefault(device, gpu.index) != gpu.index:
            raise ProtocolError(f"{path}.gpus[{gpu.index}].uuid", f"is that of GPU {numbers[device]}, too")


def _held_models(reader: Reader) -> tuple[str, ...] | None:
    """The models that the node holds; None where any model goes.

    That is so of nodes that download what they lack, and of agents that say nothing.
    """
    if reader.raw.get("held_models") is None:
        return None
    return tuple(reader.names("held_models", MOST_MODELS, 300))


def _kind(reader: Reader) -> str:
    kind = reader.text("kind", "")
    if kind not in {"", *NODE_KINDS}:
        raise ProtocolError(f"{reader.path}.kind", f"must be one of {', '.join(NODE_KINDS)}")
    return kind


def parse_speed_test(raw: Any) -> SpeedTest:
    """A speed test as an agent keeps it."""
    return _speed_test(Reader(raw, "speed_test"))


def _speed_test(reader: Reader) -> SpeedTest:
    problem = storable(reader.text("problem", "", limit=500))
    figures: dict[str, Any] = {}
    if not problem:
        figures = {
            "model": reader.text("model", limit=300),
            "runs": tuple(_speed_run(entry) for entry in reader.items("runs", 16)),
            "startup_s": reader.number("startup_s", low=LEAST),
            "busy_cores": reader.number("busy_cores", 0.0),
        }
    return SpeedTest(
        test=reader.ident("test"), gpu_model=reader.text("gpu_model", limit=100), problem=problem, **figures
    )


def parse_link_tests(raw: Any, gpus: int) -> tuple[LinkTest, ...]:
    """Link tests as an agent keeps them, of a node with so many GPUs."""
    reader = Reader({"link_tests": raw}, "kept")
    return tuple(_link_test(entry, gpus) for entry in reader.items("link_tests", 64))


def _link_test(reader: Reader, gpus: int) -> LinkTest:
    first = reader.whole("first", high=gpus - 1)
    second = reader.whole("second", high=gpus - 1)
    if first == second:
        raise ProtocolError(f"{reader.path}.second", "must be another GPU than first")
    return LinkTest(
        first=first,
        second=second,
        bytes_per_s=reader.number("bytes_per_s", low=LEAST),
        latency_s=reader.number("latency_s"),
    )


def _speed_run(reader: Reader) -> SpeedRun:
    return SpeedRun(
        params=reader.table("params"),
        tokens_per_s=reader.number("tokens_per_s", low=LEAST),
        peak_memory_bytes=reader.whole("peak_memory_bytes", low=1),
    )
