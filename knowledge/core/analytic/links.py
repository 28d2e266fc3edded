"""How fast GPUs exchange: within a node, between nodes, and through one switch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Link:
    """How GPUs of a node are joined. bytes_s: of one GPU, each way, on the data sheet.

    usable: the share of it that a ring's bus bandwidth reaches.
    """

    bytes_s: float
    usable: float


LINKS = {
    "nvlink2": Link(150e9, 0.767),
    "nvlink3": Link(300e9, 0.767),
    "nvlink4": Link(450e9, 0.822),
    "nvlink5": Link(900e9, 0.822),
    "nvlink5-rack": Link(900e9, 0.822),
    "xgmi": Link(448e9, 0.513),
    "roce": Link(300e9, 0.5),
    "pcie3": Link(15.75e9, 0.508),
    "pcie4": Link(31.5e9, 0.508),
    "pcie5": Link(63e9, 0.444),
    "memory": Link(1e9, 1.0),  # processes of one CPU node, gloo over loopback
}
RACKS = {"nvlink5-rack": 72}  # GPUs of several nodes that one switch joins (NVL72)
# Between nodes: 100 Gb/s Ethernet and 200 Gb/s links of the shipped history; an unknown network is TCP.
NETWORK_BYTES_S = {"none": 1e9, "tcp": 8e9, "roce": 35e9, "infiniband": 35e9}
