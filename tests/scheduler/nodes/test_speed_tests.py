"""Speed tests that a node made by itself.

It is learnt from once, before the first job, and is nobody's job.
"""

from __future__ import annotations

import io
import json
import re
from typing import Any

import pytest

from knowledge import selectors
from knowledge.core.domain.types import Source
from knowledge.models import Execution
from portal.clock import database_now
from scheduler.models import Job, Node, NodeSpeedTest
from scheduler.services.files.uploads import store_file
from scheduler.states import NodeState
from tests.harness import world
from tests.harness.fake_node import FakeNode, facts
from trainer.protocol import PROTOCOL

pytestmark = pytest.mark.django_db

PARAMS = {
    "tuning": "lora",
    "quantization": "none",
    "precision": "float32",
    "tokens_per_sample": 512,
    "effective_batch_size": 8,
    "per_device_batch_size": 4,
    "gradient_accumulation_steps": 2,
    "lora_r": 16,
    "lora_alpha": 32,
    "gradient_checkpointing": False,
    "sharding": "none",
    "max_steps": 500,
}


def speed_test(test: str = "first", rate: float = 1200.0, **more: Any) -> dict[str, Any]:
    run = {"params": PARAMS, "tokens_per_s": rate, "peak_memory_bytes": 5 * 10**8}
    of_run = {name: more.pop(name) for name in tuple(more) if name in run}
    return {
        "test": test,
        "gpu_model": "cpu",
        "model": "builtin/tiny-llama",
        "startup_s": 5.0,
        "busy_cores": 0.2,
        "runs": [{**run, **of_run}],
        **more,
    }


def joined(*tests: dict[str, Any]) -> FakeNode:
    return world.fake_node(speed_tests=list(tests))


def tell(node: FakeNode, *tests: dict[str, Any]) -> NodeSpeedTest:
    node.sync(facts=facts(speed_tests=list(tests)))
    return NodeSpeedTest.objects.get()


def test_each_training_of_a_test_is_learnt_from_and_the_start_up_once() -> None:
    test = speed_test()
    test["runs"] = [test["runs"][0], {**test["runs"][0], "params": {**PARAMS, "tokens_per_sample": 64}}]
    joined(test)
    rows = NodeSpeedTest.objects.get().executions.order_by("pk")
    assert [(row.tokens_per_sample, row.startup_s) for row in rows] == [(512, 6.0), (64, None)]


def learnt() -> list[float | None]:
    return [row.tokens_per_second for row in selectors.own_measurements()]


def test_the_first_job_is_promised_from_it() -> None:
    world.fake_node()
    before = first_job().promised
    assert before.source is Source.PRIOR
    Node.objects.update(removed_at=database_now(), state=NodeState.DRAINED)
    rate = before.tokens_per_second.value / 2
    joined(speed_test(rate=rate))
    after = first_job().promised
    assert after.source is Source.OWN
    assert after.tokens_per_second.value == pytest.approx(rate, rel=0.3)
    assert width(after.tokens_per_second) < width(before.tokens_per_second) / 1.5
    assert after.startup_s == pytest.approx(6.0), "the test's, and a sync"


def first_job() -> Job:
    owner = world.user()
    lines = "\n".join(json.dumps({"prompt": "a", "completion": "b" * 700}) for _ in range(20)).encode()
    file = store_file(owner=owner, stream=io.BytesIO(lines), filename="a.jsonl", now=database_now())
    return world.job(owner, training_file=file, params={"tokens_per_sample": 512, "number_gpus": 1})


def width(interval: Any) -> float:
    return float(interval.high / interval.low)


def test_a_test_is_learnt_from_once_however_often_it_is_told() -> None:
    node = joined(speed_test())
    first = NodeSpeedTest.objects.get()
    assert tell(node, speed_test()) == first
    assert NodeSpeedTest.objects.get().at == first.at
    assert learnt() == [1200.0]


def test_a_newer_test_takes_the_place_of_the_last_one() -> None:
    node = joined(speed_test())
    row = tell(node, speed_test("second", 900.0))
    assert row.executions.get().tokens_per_second == 900.0
    assert learnt() == [900.0]
    assert Execution.objects.get(tokens_per_second=1200.0).flag_reason


def test_a_failed_test_says_why_and_leaves_what_was_measured() -> None:
    node = joined(speed_test())
    row = tell(node, {"test": "second", "gpu_model": "cpu", "problem": "GPU in use"})
    assert row.problem == "GPU in use"
    assert learnt() == [1200.0]
    assert not tell(node, speed_test("third", 1100.0)).problem


def test_the_same_machine_under_another_identity_counts_once() -> None:
    joined(speed_test())
    joined(speed_test())
    assert NodeSpeedTest.objects.count() == 2
    assert learnt() == [1200.0]


@pytest.mark.parametrize(
    "wrong",
    [{"model": "llama3.1-8b"}, {"params": {**PARAMS, "tuning": "guess"}}, {"params": {"tuning": "lora"}}],
)
def test_a_test_that_this_portal_does_not_know_is_told_and_not_learnt_from(wrong: dict[str, Any]) -> None:
    joined(speed_test(**wrong))
    assert "does not know" in NodeSpeedTest.objects.get().problem
    assert learnt() == []


def test_figures_above_the_hardware_are_not_learnt_from() -> None:
    joined(speed_test(rate=1e12))
    assert learnt() == []


def test_a_gpu_that_the_node_lacks_is_left_out() -> None:
    joined(speed_test(gpu_model="Tesla T4"))
    assert not NodeSpeedTest.objects.exists()


@pytest.mark.parametrize(
    "wrong",
    [
        {"tokens_per_s": 0},
        {"tokens_per_s": None},
        {"startup_s": -1},
        {"test": "../x"},
        {"params": []},
        {"runs": 1},
    ],
)
def test_a_test_that_is_no_message_is_refused_by_its_field(wrong: dict[str, Any]) -> None:
    node = joined()
    body = {"protocol": PROTOCOL, "boot_id": "boot-1", "facts": facts(speed_tests=[speed_test(**wrong)])}
    answer = node.post_sync(body)
    assert answer.status_code == 400
    assert re.search(rf"speed_tests\[0\](.runs\[0\])?.{next(iter(wrong))}", answer.content.decode())


def test_it_is_nobodys_job_and_no_promise() -> None:
    joined(speed_test())
    assert not Job.objects.exists()
    assert selectors.promises(limit=10) == []
    assert selectors.rate_errors(limit=10) == []
    assert [row.origin for row in selectors.own_measurements()] == ["speed test"]


def test_its_node_shows_it(admin_client: Any) -> None:
    node = joined(speed_test(), {"test": "t4", "gpu_model": "Tesla T4", "problem": "unseen"})
    page = admin_client.get(f"/nodes/{node.node_id}/").content.decode()
    assert "1,200 tokens/s" in page
    assert "start-up 6.0 s" in page
    answer = admin_client.get(f"/api/nodes/{node.node_id}/").json()["speed_tests"]
    assert [(one["gpu_model"], one["startup_s"], one["problem"]) for one in answer] == [("cpu", 6.0, "")]
    assert [run["tokens_per_second"] for run in answer[0]["runs"]] == [1200.0]
    tell(node, {"test": "second", "gpu_model": "cpu", "problem": "The disk is full."})
    assert "The disk is full." in admin_client.get(f"/nodes/{node.node_id}/").content.decode()
