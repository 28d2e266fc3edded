"""A stand-in for NVIDIA's management library.

It shows a machine with the GPUs of the file FAKE_GPUS. The agent imports it as `pynvml`: the
fixture `machine` writes a module of that name. Values that the library would refuse raise its
error, with the library's own texts.
"""

# ruff: noqa: N802 - the names are the library's
from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

MIB = 2**20
NVML_DEVICE_MIG_ENABLE = 1
nvmlMemory_v2 = 0x02000028  # noqa: N816 - as above
NVML_P2P_CAPS_INDEX_NVLINK, NVML_P2P_STATUS_OK = 2, 0


class NVMLError(Exception):
    """As pynvml's."""


def _machine() -> dict[str, Any]:
    machine: dict[str, Any] = json.loads(Path(os.environ["FAKE_GPUS"]).read_text())
    return machine


def nvmlInit() -> None:
    if error := _machine().get("error"):
        raise NVMLError(error)


def nvmlDeviceGetCount() -> int:
    return len(_machine()["gpus"])


def nvmlDeviceGetHandleByIndex(index: int) -> dict[str, Any]:
    gpu: dict[str, Any] = _machine()["gpus"][index]
    if gpu.get("lost"):
        raise NVMLError("GPU is lost")
    return gpu


def nvmlDeviceGetHandleByUUID(uuid: str) -> dict[str, Any]:
    return next(gpu for gpu in _machine()["gpus"] if gpu["uuid"] == uuid)


def nvmlDeviceGetUUID(gpu: dict[str, Any]) -> str:
    return str(gpu["uuid"])


def nvmlDeviceGetName(gpu: dict[str, Any]) -> str:
    return str(gpu["name"])


def nvmlDeviceGetMemoryInfo(gpu: dict[str, Any], version: int | None = None) -> SimpleNamespace:
    if "mib" not in gpu:
        raise NVMLError("Not Supported")
    used, reserved = gpu.get("used_mib", 500) * MIB, gpu.get("reserved_mib", 0) * MIB
    if version is None:
        return SimpleNamespace(total=gpu["mib"] * MIB, used=used + reserved)
    if version != nvmlMemory_v2 or gpu.get("old_driver"):
        raise NVMLError("Function Not Found")
    return SimpleNamespace(total=gpu["mib"] * MIB, used=used, reserved=reserved)


def nvmlDeviceGetMigMode(gpu: dict[str, Any]) -> tuple[int, int]:
    if "mig" not in gpu:
        raise NVMLError("Not Supported")
    return gpu["mig"], gpu["mig"]


def nvmlDeviceGetUtilizationRates(gpu: dict[str, Any]) -> SimpleNamespace:
    return SimpleNamespace(gpu=gpu.get("percent", 0), memory=0)


def nvmlDeviceGetP2PStatus(one: dict[str, Any], other: dict[str, Any], _kind: int) -> int:
    return NVML_P2P_STATUS_OK if one.get("nvlink") and other.get("nvlink") else 5


def nvmlDeviceGetTopologyCommonAncestor(one: dict[str, Any], other: dict[str, Any]) -> int:
    return 10 if one.get("switch") == other.get("switch", "none") else 40


def nvmlDeviceGetPciInfo(gpu: dict[str, Any]) -> SimpleNamespace:
    if "bus" not in gpu:
        raise NVMLError("Not Supported")
    return SimpleNamespace(busId=gpu["bus"].encode())


def nvmlSystemGetCudaDriverVersion() -> int:
    return 13000


def nvmlSystemGetDriverVersion() -> str:
    return "580.159.04"
