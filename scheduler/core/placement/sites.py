"""Where the GPUs of a node sit, as its driver or its owner says.

Sockets and NUMA nodes are as reported, else parts that the bus connects. PCIe switches are parts that share
one. NVLink groups are GPUs of which each is linked to each other: in a cube mesh all GPUs are connected, but
not all pairs are linked.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from scheduler.core.types import GpuSite
from trainer.protocol import DeclaredSite, GpuFacts

# Relations on the bus, the closest first, as `nvidia-smi topo -m` names them.
RELATIONS = ("same-board", "pix", "pxb", "phb", "node", "sys")
ONE_SWITCH = frozenset({"same-board", "pix", "pxb"})
ONE_NUMA_NODE = ONE_SWITCH | {"phb", "node"}
MOST_GROUPS = 1024
WORDS = {"socket": "socket", "numa": "NUMA node", "switch": "PCIe switch", "nvlink": "NVLink group"}


class NodeTopology(NamedTuple):
    """The site of each GPU, by index.

    There are none where nothing is known, or where what is said cannot be. declared: by the node's owner.
    warning: what is wrong with it, and the remedy.
    """

    sites: tuple[GpuSite, ...] = ()
    declared: bool = False
    warning: str = ""


def topology_of(gpus: Sequence[GpuFacts]) -> NodeTopology:
    """Where each GPU of a node sits; a declaration goes before the driver."""
    found = _declared(gpus) if any(gpu.declared for gpu in gpus) else _found(gpus)
    if found.sites and (problem := _contradiction(found.sites)):
        remedy = "correct the file of --topology" if found.declared else "declare where they sit (--topology)"
        return NodeTopology(declared=found.declared, warning=f"{problem}, which cannot be; {remedy}.")
    return found


def _declared(gpus: Sequence[GpuFacts]) -> NodeTopology:
    sites = tuple(_site(gpu.declared) for gpu in gpus if gpu.declared)
    if len(sites) < len(gpus):
        missing = next(gpu.index for gpu in gpus if gpu.declared is None)
        return NodeTopology((), True, f"No site is declared for GPU {missing}; declare one for each.")
    driver = _found(gpus).sites
    return NodeTopology(sites, True, _difference(sites, driver) if driver else "")


def _site(declared: DeclaredSite) -> GpuSite:
    return GpuSite(declared.socket, declared.numa, declared.switch, declared.nvlink)


def _found(gpus: Sequence[GpuFacts]) -> NodeTopology:
    if not any(gpu.links or gpu.pci or gpu.numa is not None for gpu in gpus):
        return NodeTopology()
    for gpu in gpus:
        for name, number in (("NUMA node", gpu.numa), ("socket", gpu.socket)):
            if number is not None and number >= MOST_GROUPS:
                impossible = f"GPU {gpu.index} reports the {name} {number}, which cannot be"
                return NodeTopology(warning=f"{impossible}; declare where the GPUs sit (--topology).")
    switches = _connected(gpus, ONE_SWITCH)
    numa = _reported([gpu.numa for gpu in gpus]) or _connected(gpus, ONE_NUMA_NODE)
    sockets = _reported([gpu.socket for gpu in gpus]) or numa
    places = zip(sockets, numa, switches, _islands(gpus), strict=True)
    return NodeTopology(tuple(GpuSite(*place) for place in places))


def _reported(numbers: Sequence[int | None]) -> list[int]:
    """The numbers, if each GPU has one."""
    known = [number for number in numbers if number is not None]
    return known if len(known) == len(numbers) else []


def _relation(one: GpuFacts, other: GpuFacts) -> str:
    """How two GPUs relate on the bus: the looser of what each says.

    The loosest, if it is unknown. Agents from before `pci` tell it among the links, where NVLink hides it.
    """
    words = (_said(one, other), _said(other, one))
    return max((word if word in RELATIONS else RELATIONS[-1] for word in words), key=RELATIONS.index)


def _said(one: GpuFacts, other: GpuFacts) -> str:
    return (one.pci or one.links).get(str(other.index), RELATIONS[-1])


def _linked(one: GpuFacts, other: GpuFacts) -> bool:
    """Are two GPUs linked by NVLink, as both say?"""
    return one.links.get(str(other.index)) == other.links.get(str(one.index)) == "nvlink"


def _connected(gpus: Sequence[GpuFacts], relations: frozenset[str]) -> list[int]:
    """The part of each GPU, where these relations connect; in order of GPUs."""
    part = list(range(len(gpus)))
    for one, other in combinations(range(len(gpus)), 2):
        if part[one] != part[other] and _relation(gpus[one], gpus[other]) in relations:
            low, high = sorted((part[one], part[other]))
            part = [low if number == high else number for number in part]
    names = {number: name for name, number in enumerate(dict.fromkeys(part))}
    return [names[number] for number in part]


def _islands(gpus: Sequence[GpuFacts]) -> list[int | None]:
    """The NVLink group of each GPU; None for one that would be alone."""
    islands: list[list[int]] = []
    for number, gpu in enumerate(gpus):
        for island in islands:
            if all(_linked(gpu, gpus[member]) for member in island):
                island.append(number)
                break
        else:
            islands.append([number])
    groups = [island for island in islands if len(island) > 1]
    return [
        next((n for n, group in enumerate(groups) if number in group), None) for number in range(len(gpus))
    ]


def _contradiction(sites: Sequence[GpuSite]) -> str:
    """Two GPUs that share something closer, and not what holds it; or nothing."""
    for inner, outer in (("switch", "numa"), ("switch", "socket"), ("numa", "socket")):
        for one, other in combinations(range(len(sites)), 2):
            if _share(sites[one], sites[other], inner) and not _share(sites[one], sites[other], outer):
                return f"GPUs {one} and {other} share a {WORDS[inner]} and sit in different {WORDS[outer]}s"
    return ""


def _difference(sites: Sequence[GpuSite], driver: Sequence[GpuSite]) -> str:
    """Where a declaration says otherwise than the driver."""
    for name, word in WORDS.items():
        for one, other in combinations(range(len(sites)), 2):
            said = _share(sites[one], sites[other], name)
            if said != _share(driver[one], driver[other], name):
                verbs = ("share", "do not") if said else ("do not share", "do")
                return (
                    f"It is declared that GPUs {one} and {other} {verbs[0]} a {word}; the driver says that"
                    f" they {verbs[1]}. The declaration holds: correct the file of --topology if it is wrong."
                )
    return ""


def _share(one: GpuSite, other: GpuSite, name: str) -> bool:
    group = getattr(one, name)
    return group is not None and group == getattr(other, name)
