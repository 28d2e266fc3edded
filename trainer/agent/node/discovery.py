"""Facts of this node: its GPUs, or the CPU slots it offers where there are none."""

from __future__ import annotations

import json
import logging
import os
import platform
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

import psutil

from trainer import __version__
from trainer.agent.errors import SetupError
from trainer.agent.node.environment import IMPORT_FOLDER
from trainer.agent.node.gpus import driver_facts, find_gpus
from trainer.agent.node.measured import link_tests, speed_tests
from trainer.agent.node.topology import declared
from trainer.agent.storage.folder import NodeFolder, read_json, write_json
from trainer.architectures import KERNELS
from trainer.protocol import GpuFacts, NodeFacts

log = logging.getLogger(__name__)

GIB = 2**30
NO_GPU = "4-bit training needs a GPU"
NO_BITSANDBYTES = "bitsandbytes is missing, install requirements/gpu.lock on it"
_REPORTED_PACKAGES = (
    *("torch", "transformers", "peft", "accelerate", "bitsandbytes", "psutil", "httpx"),
    *KERNELS.values(),
)


def discover(
    folder: NodeFolder,
    slots: int | None = None,
    topology: Path | None = None,
) -> NodeFacts:
    """Return what is found on this machine.

    slots: how many CPU slots to offer where there is no GPU; cores - 1 unless given.
    topology: a file that says where the GPUs sit, instead of the driver.
    Raises SetupError where there are GPUs, or were, and none can be offered.
    """
    cores, memory = usable_cores(), usable_memory_bytes()
    gpus = find_gpus(memory)
    _remember(gpus, folder)
    software = _software()
    gpus = declared(gpus or cpu_slots(slots or max(1, cores - 1), memory, folder), topology)
    has_gpus = gpus[0].model != "cpu"
    links = link_tests.known(folder, gpus, software)
    return NodeFacts(
        hostname=socket.gethostname()[:255],
        cores=cores,
        memory_bytes=memory,
        gpus=gpus,
        software=software,
        cannot_train=cannot_train(software, has_gpus=has_gpus),
        speed_tests=speed_tests.known(folder, gpus),
        link_tests=links.tests,
        link_problem=links.problem,
        # Whole GiB, so that facts do not change with every log line.
        disk_free_bytes=shutil.disk_usage(folder.root).free // GIB * GIB,
    )


def cannot_train(software: Mapping[str, str], *, has_gpus: bool) -> dict[str, str]:
    """Return the tunings that trainings here would fail with, and why.

    software: versions by package.
    """
    if not has_gpus:
        return {"qlora": NO_GPU}
    return {} if "bitsandbytes" in software else {"qlora": NO_BITSANDBYTES}


def _remember(gpus: tuple[GpuFacts, ...], folder: NodeFolder) -> None:
    """Raise SetupError if a node that offered GPUs shows none.

    A driver that comes up late or never must not turn it into a node of CPU slots.
    """
    known = read_json(folder.facts_file) or {}
    before = known.get("gpus")
    if before and not gpus:
        raise SetupError(
            f"this node offered {before} GPUs, and the driver shows none now; see nvidia-smi. To offer CPU "
            f"slots instead, delete {folder.root} and enrol anew"
        )
    if before != len(gpus) and gpus:
        write_json(folder.facts_file, {**known, "gpus": len(gpus)})


def cpu_slots(slots: int, memory_bytes: int, folder: NodeFolder) -> tuple[GpuFacts, ...]:
    """Return CPU slots, each one core with an equal share of the memory.

    A slot is offered as a GPU of the model `cpu`.
    """
    measured = _measured(folder)
    return tuple(
        GpuFacts(
            index=index,
            model="cpu",
            memory_bytes=memory_bytes // slots,
            peak_flops=measured.get("peak_flops"),
            bandwidth_bytes_s=measured.get("bandwidth_bytes_s"),
        )
        for index in range(slots)
    )


def usable_cores() -> int:
    """Cores this process may run on; a container's CPU quota counts."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _first_line("/sys/fs/cgroup/cpu.max").split()
    if len(quota) == 2 and quota[0].isdigit():
        cores = min(cores, max(1, int(quota[0]) // int(quota[1])))
    return cores


def usable_memory_bytes() -> int:
    """RAM, or a container's limit where that is less."""
    limits = [
        int(text)
        for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
        if (text := _first_line(path)).isdigit()
    ]
    return min([psutil.virtual_memory().total, *limits])


def _first_line(path: str) -> str:
    try:
        return Path(path).read_text().partition("\n")[0].strip()
    except OSError:
        return ""


def processor_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _software() -> dict[str, str]:
    found = {
        "foretune": __version__,
        "python": platform.python_version(),
        "system": platform.platform(terse=True),
        "cpu": processor_name(),
    }
    for name in _REPORTED_PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found | driver_facts()


def _measured(folder: NodeFolder) -> dict[str, float]:
    """Speed of one slot: measured once for a processor, then read from the folder."""
    known = read_json(folder.facts_file)
    processor = processor_name()
    if known and known.get("processor") == processor:
        return {key: float(known[key]) for key in ("peak_flops", "bandwidth_bytes_s") if key in known}
    measured = _measure()
    if measured:
        write_json(folder.facts_file, {"processor": processor, **measured})
    return measured


def _measure() -> dict[str, float]:
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "PYTHONPATH": IMPORT_FOLDER,
        "OMP_NUM_THREADS": "1",
        "OMP_WAIT_POLICY": "PASSIVE",
    }
    try:
        done = subprocess.run(
            [sys.executable, "-m", "trainer.agent.node.cpu_benchmark"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        return {key: float(value) for key, value in json.loads(done.stdout).items()}
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        said = str(getattr(error, "stderr", None) or error).strip()
        last = said.rpartition("\n")[2]  # of a traceback, the line that names the error
        log.warning("the speed of a CPU slot could not be measured", extra={"error": last[:200]})
        return {}
