"""Where a node's GPUs sit, as the kernel or a file of its owner says."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from trainer.agent.errors import SetupError
from trainer.protocol import DeclaredSite, GpuFacts, ProtocolError
from trainer.protocol_parsing import parse_site

SYS = Path("/sys")
MOST_BYTES = 1_000_000  # of a declaration: a node has hundreds of GPUs at most


class Attachment(NamedTuple):
    """The NUMA node and the socket of a GPU; None where the kernel does not say."""

    numa: int | None = None
    socket: int | None = None


def attachment(bus_id: str) -> Attachment:
    """The NUMA node and socket that a PCI device is attached to.

    bus_id: as the driver writes it, e.g. `00000000:3B:00.0`; the kernel has four digits before the colon.
    """
    domain, _, rest = bus_id.lower().partition(":")
    numa = _whole(SYS / "bus/pci/devices" / f"{domain[-4:]}:{rest}" / "numa_node")
    if numa is None or numa < 0:  # the kernel's word for unknown is -1
        return Attachment()
    return Attachment(numa, _socket(numa))


def _socket(numa: int) -> int | None:
    """The socket of a NUMA node's first core; a node that is memory alone has none."""
    cores = _text(SYS / f"devices/system/node/node{numa}/cpulist").split(",")[0].split("-")[0]
    if not cores.isdigit():
        return None
    socket = _whole(SYS / f"devices/system/cpu/cpu{cores}/topology/physical_package_id")
    return socket if socket is not None and socket >= 0 else None


def _whole(path: Path) -> int | None:
    try:
        return int(_text(path))
    except ValueError:
        return None


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def declared(gpus: Sequence[GpuFacts], file: Path | None) -> tuple[GpuFacts, ...]:
    """The GPUs with the sites that a file of the node's owner declares.

    Without one, as they are. The file is a JSON list. An entry with a `uuid` is that GPU's, whether it is
    offered now or not; without any, the entries are those of the GPUs in their order. Raises SetupError.
    """
    if file is None:
        return tuple(gpus)
    entries = _entries(file)
    sites = [_site(entry, number, file) for number, entry in enumerate(entries)]
    named = [entry.get("uuid") for entry in entries]
    if any(named):
        by_uuid = dict(zip(named, sites, strict=True))
        if None in by_uuid or len(by_uuid) < len(sites):
            raise SetupError(f"--topology {file}: each entry must have a uuid of its own, or none has one")
        if missing := [gpu.index for gpu in gpus if gpu.uuid not in by_uuid]:
            raise SetupError(f"--topology {file} has no entry for GPU {missing[0]}, {gpus[missing[0]].uuid}")
        return tuple(replace(gpu, declared=by_uuid[gpu.uuid]) for gpu in gpus)
    if len(sites) != len(gpus):
        raise SetupError(
            f"--topology {file} must have one entry for each GPU or slot that is offered, {len(gpus)}; it has"
            f" {len(sites)}. Entries with a uuid may be more"
        )
    return tuple(replace(gpu, declared=site) for gpu, site in zip(gpus, sites, strict=True))


def _entries(file: Path) -> list[Mapping[str, Any]]:
    try:
        with file.open(encoding="utf-8") as opened:
            text = opened.read(MOST_BYTES + 1)
        entries = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise SetupError(f"--topology {file} cannot be read: {error}") from None
    if len(text) > MOST_BYTES or not isinstance(entries, list):
        raise SetupError(f"--topology {file} must be a JSON list with one entry for each GPU")
    return entries


def _site(entry: Any, number: int, file: Path) -> DeclaredSite:
    try:
        site = parse_site(entry, f"entry {number}")
    except ProtocolError as wrong:
        raise SetupError(f"--topology {file}: {wrong}") from None
    if not isinstance(entry.get("uuid", ""), str):
        raise SetupError(f"--topology {file}: entry {number}.uuid must be a text")
    return site
