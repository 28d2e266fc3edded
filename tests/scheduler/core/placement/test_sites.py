"""Where GPUs sit, from what agents and owners of nodes say: worked examples and bad reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import pytest

from scheduler.core.placement.sites import NodeTopology, topology_of
from scheduler.core.types import GpuSite
from trainer.protocol import DeclaredSite, GpuFacts

Relation = Callable[[int, int], str]


def gpus(
    count: int,
    relation: Relation,
    linked: Callable[[int, int], bool] = lambda _one, _other: False,
    numa: list[int] | None = None,
    sockets: list[int] | None = None,
) -> list[GpuFacts]:
    """GPUs whose pairs relate as the functions say, for the smaller index first."""
    found = []
    for index in range(count):
        pci = {str(o): relation(*sorted((index, o))) for o in range(count) if o != index}
        links = pci | {str(o): "nvlink" for o in range(count) if o != index and linked(*sorted((index, o)))}
        found.append(
            GpuFacts(
                index=index, model="NVIDIA", memory_bytes=1, links=links, pci=pci,
                numa=numa[index] if numa else None, socket=sockets[index] if sockets else None,
            )
        )  # fmt: skip
    return found


def sites(*found: tuple[int, int, int, int | None]) -> tuple[GpuSite, ...]:
    return tuple(GpuSite(*site) for site in found)


def pairs(near: str, far: str) -> Relation:
    return lambda one, other: near if one // 2 == other // 2 else far


def quads(one: int, other: int) -> str:
    return "pix" if one // 2 == other // 2 else "phb" if one // 4 == other // 4 else "sys"


def cube(one: int, other: int) -> bool:
    return one // 4 == other // 4 or other - one == 4


SWITCHED = gpus(
    8, pairs("pxb", "sys"), lambda _one, _other: True, [0, 0, 1, 1, 2, 2, 3, 3], [0, 0, 0, 0, 1, 1, 1, 1]
)


def test_a_machine_with_nvswitch() -> None:
    assert topology_of(SWITCHED) == NodeTopology(
        sites(
            (0, 0, 0, 0), (0, 0, 0, 0), (0, 1, 1, 0), (0, 1, 1, 0),
            (1, 2, 2, 0), (1, 2, 2, 0), (1, 3, 3, 0), (1, 3, 3, 0),
        )
    )  # fmt: skip


def test_without_links_and_numa_nodes_the_bus_tells_them() -> None:
    found = topology_of(gpus(4, pairs("node", "sys")))
    assert found == NodeTopology(sites((0, 0, 0, None), (0, 0, 1, None), (1, 1, 2, None), (1, 1, 3, None)))


def test_a_cube_mesh_has_two_groups_of_which_all_pairs_are_linked() -> None:
    found = topology_of(gpus(8, quads, cube)).sites
    assert [site.nvlink for site in found] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert [site.switch for site in found] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert [site.numa for site in found] == [site.socket for site in found] == [0, 0, 0, 0, 1, 1, 1, 1]


def test_bridged_pairs_and_a_gpu_alone() -> None:
    bridged = gpus(5, lambda _one, _other: "node", lambda one, other: one // 2 == other // 2)
    assert [site.nvlink for site in topology_of(bridged).sites] == [0, 0, 1, 1, None]


@pytest.mark.parametrize("count", range(2, 9))
def test_in_every_group_each_gpu_is_linked_to_each_other(count: int) -> None:
    def links(one: int, other: int) -> bool:
        return (one * 7 + other * 3) % 4 != 0

    found = topology_of(gpus(count, lambda _one, _other: "sys", links)).sites
    for one, other in combinations(range(count), 2):
        if found[one].nvlink is not None and found[one].nvlink == found[other].nvlink:
            assert links(one, other)


def test_agents_from_before_tell_the_bus_where_no_link_hides_it() -> None:
    old = [replace(gpu, pci={}) for gpu in gpus(4, pairs("pix", "sys"))]
    assert [site.switch for site in topology_of(old).sites] == [0, 0, 1, 1]
    hidden = [replace(gpu, pci={}) for gpu in SWITCHED]
    assert {site.nvlink for site in topology_of(hidden).sites} == {0}


def test_slots_of_which_nothing_is_known_have_no_sites() -> None:
    slots = [GpuFacts(index=index, model="cpu", memory_bytes=1) for index in range(4)]
    assert topology_of(slots) == NodeTopology()


def test_both_must_agree_on_a_link_and_on_the_bus() -> None:
    one, other = gpus(2, lambda _one, _other: "pix", lambda _one, _other: True)
    found = topology_of([one, replace(other, links={"0": "pix"}, pci={"0": "node"})])
    assert found.sites == sites((0, 0, 0, None), (0, 0, 1, None))


def test_links_to_itself_and_unknown_relations_join_nothing() -> None:
    odd = [
        replace(gpu, links={**gpu.links, str(gpu.index): "nvlink"}, pci={**gpu.pci, str(gpu.index): "pix"})
        for gpu in gpus(2, lambda _one, _other: "telepathy")
    ]
    assert topology_of(odd).sites == sites((0, 0, 0, None), (1, 1, 1, None))


def test_a_switch_over_two_sockets_cannot_be() -> None:
    found = topology_of(gpus(2, lambda _one, _other: "pix", numa=[0, 0], sockets=[0, 1]))
    assert found.sites == ()
    assert "GPUs 0 and 1 share a PCIe switch and sit in different sockets" in found.warning
    assert "--topology" in found.warning


def test_a_numa_node_of_a_million_cannot_be() -> None:
    found = topology_of(gpus(2, lambda _one, _other: "sys", numa=[0, 1_000_000]))
    assert found.sites == ()
    assert "GPU 1 reports the NUMA node 1000000" in found.warning


def declaring(facts: list[GpuFacts], *places: tuple[int, int, int, int | None]) -> list[GpuFacts]:
    return [
        replace(gpu, declared=DeclaredSite(**GpuSite(*place)._asdict()))
        for gpu, place in zip(facts, places, strict=False)
    ]


def test_what_is_declared_goes_before_what_the_driver_says() -> None:
    slots = [GpuFacts(index=index, model="cpu", memory_bytes=1) for index in range(2)]
    found = topology_of(declaring(slots, (0, 0, 0, None), (1, 1, 1, None)))
    assert found == NodeTopology(sites((0, 0, 0, None), (1, 1, 1, None)), declared=True)
    linked = gpus(2, lambda _one, _other: "sys", numa=[0, 1])
    found = topology_of(declaring(linked, (0, 0, 0, 0), (0, 0, 1, 0)))
    assert [site.nvlink for site in found.sites] == [0, 0]
    assert "declared that GPUs 0 and 1 share a socket; the driver says that they do not" in found.warning


def test_a_declaration_that_cannot_be_or_lacks_a_gpu_gives_no_sites() -> None:
    facts = gpus(2, lambda _one, _other: "sys")
    found = topology_of(declaring(facts, (0, 0, 0, None), (1, 1, 0, None)))
    assert (found.sites, found.declared) == ((), True)
    assert "correct the file" in found.warning
    assert topology_of([declaring(facts, (0, 0, 0, None))[0], facts[1]]).warning.startswith("No site is")
