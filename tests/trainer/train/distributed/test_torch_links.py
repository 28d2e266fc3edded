"""All-reduces between real processes over gloo, as an agent runs them, and their arithmetic."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.trainer.agent.measured.idle_nodes import node_folder, process_executor, workshop
from tests.trainer.agent.measured.test_link_test import FACTS
from trainer.agent.link_test import with_links
from trainer.train.distributed.links import speed


def test_an_agent_measures_its_slots(tmp_path: Path) -> None:
    two = replace(FACTS, gpus=FACTS.gpus[:2])
    facts = with_links(two, workshop(folder := node_folder(tmp_path), two), process_executor(folder))
    assert facts.link_problem == ""
    (test,) = facts.link_tests
    assert (test.first, test.second) == (0, 1)
    assert 1e6 < test.bytes_per_s < 1e13
    assert 0 <= test.latency_s < 10


def test_latency_is_what_does_not_grow_with_the_tensor() -> None:
    sizes = (64 * 2**20, 512 * 2**20)
    found = speed(sizes, [size / 20e9 + 30e-6 for size in sizes])
    assert found["bytes_per_s"] == pytest.approx(20e9)
    assert found["latency_s"] == pytest.approx(30e-6)


@pytest.mark.parametrize("seconds", [(0.02, 0.02), (0.03, 0.02), (0.001, 0.02)])
def test_figures_that_tell_nothing_apart_are_all_transfer(seconds: tuple[float, float]) -> None:
    assert speed((10, 20), seconds) == {"bytes_per_s": 20 / seconds[1], "latency_s": 0.0}
