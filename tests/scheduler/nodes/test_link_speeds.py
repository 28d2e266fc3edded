"""Link speeds that a node measured: kept by level, shown, and used for promises."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from scheduler.core.placement.levels import TopologyLevel
from scheduler.core.placement.link_speeds import LinkSpeed, speeds_by_level
from scheduler.core.types import GpuSite
from scheduler.models import Node
from scheduler.selectors.cluster.inventory import inventory
from tests.harness import world
from tests.harness.fake_node import FakeNode, facts
from trainer.protocol import ProtocolError
from trainer.protocol_parsing import parse_facts
from trainer.self_tests import LinkTest

pytestmark = pytest.mark.django_db

GB = 1e9


def reported(*links: tuple[int, int, float], **more: Any) -> dict[str, Any]:
    """Four GPUs on two sockets, and links as (first, second, GB/s)."""
    gpus = facts(slots=4, model="NVIDIA L40S")["gpus"]
    for gpu in gpus:
        socket = gpu["index"] // 2
        gpu["declared"] = {"socket": socket, "numa": socket, "switch": gpu["index"]}
    tests = [
        {"first": first, "second": second, "bytes_per_s": speed * GB, "latency_s": 2e-5}
        for first, second, speed in links
    ]
    return {"gpus": gpus, "link_tests": tests, **more}


def joined(*links: tuple[int, int, float], **more: Any) -> FakeNode:
    return world.fake_node(**reported(*links, **more))


def tell(node: FakeNode, *links: tuple[int, int, float], **more: Any) -> None:
    node.sync(facts=facts(**reported(*links, **more)))


def speeds(node: FakeNode) -> dict[str, float]:
    kept = Node.objects.get(pk=node.node_id).link_speeds
    return {link["level"]: link["bytes_per_s"] / GB for link in kept}


def test_a_level_is_as_fast_as_its_slowest_pair() -> None:
    sites = [GpuSite(0, 0, 0, 0), GpuSite(0, 0, 0, 0), GpuSite(0, 1, 1), GpuSite(1, 2, 2)]
    pairs = {(0, 1): 200, (0, 2): 12, (1, 2): 11, (0, 3): 9}
    tests = [
        LinkTest(first=first, second=second, bytes_per_s=speed, latency_s=0.1)
        for (first, second), speed in pairs.items()
    ]
    found = speeds_by_level(tests, ["A100"] * 4, sites)
    assert found == [
        LinkSpeed("A100", level.word, speed, 0.1)
        for level, speed in (
            (TopologyLevel.NVLINK, 200),
            (TopologyLevel.SOCKET, 11),
            (TopologyLevel.NODE, 9),
        )
    ]
    assert speeds_by_level(tests, ["A100"] * 4, []) == []


def test_what_a_node_says_last_holds() -> None:
    node = joined((0, 1, 14), (0, 2, 8))
    assert speeds(node) == {"numa": 14, "node": 8}
    tell(node, (0, 1, 13))
    assert speeds(node) == {"numa": 13}
    tell(node, link_problem="no peer access between these GPUs")
    assert speeds(node) == {}
    assert Node.objects.get(pk=node.node_id).link_problem == "no peer access between these GPUs"


def test_a_pool_is_as_fast_as_its_slowest_node() -> None:
    joined((0, 1, 14), (0, 2, 8))
    joined((0, 1, 11))
    joined()
    (pool,) = inventory().pools
    assert pool.links == {"numa": 11 * GB, "node": 8 * GB}


def test_jobs_are_promised_what_the_node_measured() -> None:
    node = joined((0, 1, 14), (0, 2, 8))
    rates = two_gpus()
    tell(node, (0, 1, 14), (0, 2, 1))
    slower = two_gpus()
    assert slower["node"] < rates["node"] < rates["numa"] == slower["numa"]


def two_gpus() -> dict[str, float]:
    job = world.job(model="smollm2-135m", params={"tuning": "full", "number_gpus": 2, "gpu_model": "L40S"})
    (option,) = {option["config"]["number_gpus"]: option for option in job.options}.values()
    found: dict[str, float] = option["by_level"]
    return found


def test_people_and_programs_see_them(admin_client: Client) -> None:
    node = joined((0, 1, 14), (0, 2, 8), link_problem="")
    page = admin_client.get(f"/nodes/{node.node_id}/").content.decode()
    assert "L40S in one NUMA node: <strong>13.0 GiB/s</strong>, latency 0.02 ms" in page
    assert "L40S in one machine: <strong>7.5 GiB/s</strong>" in page
    answer = admin_client.get(f"/api/nodes/{node.node_id}/").json()
    assert answer["link_problem"] == ""
    assert answer["link_speeds"][0] == {
        "gpu_model": "L40S", "level": "numa", "bytes_per_s": 14 * GB, "latency_s": 2e-5
    }  # fmt: skip
    tell(node, link_problem="<b>no peer access</b>")
    page = admin_client.get(f"/nodes/{node.node_id}/").content.decode()
    assert "Their speed could not be measured. &lt;b&gt;no peer access&lt;/b&gt;" in page


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"first": 0, "second": 0}, "second"),
        ({"first": 0, "second": 4}, "second"),
        ({"first": "a", "second": 1}, "first"),
        ({"first": 0, "second": 1, "bytes_per_s": 0}, "bytes_per_s"),
        ({"first": 0, "second": 1, "bytes_per_s": float("nan")}, "bytes_per_s"),
        ({"first": 0, "second": 1, "bytes_per_s": 1, "latency_s": -1}, "latency_s"),
    ],
)
def test_a_link_that_cannot_be_is_refused_by_name(wrong: dict[str, Any], field: str) -> None:
    with pytest.raises(ProtocolError, match=rf"link_tests\[0\]\.{field}"):
        parse_facts({**facts(slots=4), "link_tests": [wrong]})
