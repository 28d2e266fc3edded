"""Sites of the GPUs of simulated nodes, by how many share a socket or switch.

`/socket=4/numa=4/pcie=2`: of the GPUs of each node, in the order of their indices, four share a socket and a
NUMA node, two a PCIe switch. The names are the levels of REST and of traces.
"""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.core.types import GpuSite
from scheduler.simulator.errors import ClusterError

LEVELS = ("socket", "numa", "pcie", "nvlink")  # the loosest first
FEWEST_LINKED = 2


def parse_sites(text: str, gpus: int, where: str) -> tuple[GpuSite, ...]:
    """The site of each of so many GPUs; none where nothing is said.

    A part that is left out is as loose as may be: one socket, a NUMA node a socket, a switch a GPU, no
    NVLink. Raises ClusterError.
    """
    shares: dict[str, int] = {}
    for part in text.split("/")[1:]:
        name, _, number = part.partition("=")
        if name not in LEVELS or not (number.isascii() and number.isdecimal()) or name in shares:
            raise ClusterError(
                f"{where}: /{part} is none of /socket=4, /numa=4, /pcie=2 and /nvlink=8, each once"
            )
        if not (FEWEST_LINKED if name == "nvlink" else 1) <= (count := int(number)) <= gpus:
            raise ClusterError(f"{where}: /{part} does not suit nodes of {gpus} GPUs")
        shares[name] = count
    return _sites(shares, gpus, where) if shares else ()


def sites_text(sites: tuple[GpuSite, ...]) -> str:
    """The text from which `parse_sites` reads these; empty if there is none."""
    if not sites:
        return ""
    shares = {name: sum(_of(site, name) == _of(sites[0], name) for site in sites) for name in LEVELS}
    if sites[0].nvlink is None:
        del shares["nvlink"]
    text = "".join(f"/{name}={count}" for name, count in shares.items())
    return text if _sites(shares, len(sites), "") == sites else ""


def _sites(shares: Mapping[str, int], gpus: int, where: str) -> tuple[GpuSite, ...]:
    socket = shares.get("socket", gpus)
    numa = shares.get("numa", socket)
    switch = shares.get("pcie", 1)
    if socket % numa or numa % switch:
        raise ClusterError(
            f"{where}: a socket holds whole NUMA nodes, and these whole PCIe switches; here {socket}, {numa}"
            f" and {switch} GPUs share one"
        )
    linked = shares.get("nvlink")
    return tuple(
        GpuSite(index // socket, index // numa, index // switch, index // linked if linked else None)
        for index in range(gpus)
    )


def _of(site: GpuSite, name: str) -> int | None:
    return site.switch if name == "pcie" else getattr(site, name)
