"""Trainings as the agent starts them: signals, kills, memory limits, several processes."""

from __future__ import annotations

import os
import signal
import socket

import psutil
import pytest

from tests.trainer.runs import CHATS, PATIENCE_S, Run
from trainer.checkpoint import newest

pytestmark = pytest.mark.torch

LIMITED = (
    "import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_DATA, (600 * 2**20, 600 * 2**20));"
    "sys.argv = ['trainer.run', sys.argv[1]]; runpy.run_module('trainer.run', run_name='__main__')"
)


def resumed(run: Run) -> Run:
    """Another attempt at the same training, in this process, from the run's newest checkpoint."""
    found = newest(run.path / "checkpoints")
    assert found is not None
    again = Run(run.path.with_name("resumed"), run.models_dir, params=run.params)
    again.write(resume=found.folder).train()
    return again


def uninterrupted(run: Run) -> Run:
    whole = Run(run.path.with_name("whole"), run.models_dir, params=run.params)
    whole.write().train()
    return whole


def cpu_of_children_s() -> float:
    """Of those that have ended. Unlike the clock it does not tell how busy the machine was."""
    times = os.times()
    return times.children_user + times.children_system


@pytest.mark.slow  # the live stack kills a training, too
def test_after_a_kill_the_last_checkpoint_leads_to_the_same_final_loss(run: Run):
    run.params["max_steps"] = 40
    run.checkpoint_every_s = 0.0
    process = run.write().start()
    run.await_event("checkpoint", 5)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    process.communicate()
    assert not (run.path / "result.json").exists()
    again = resumed(run)
    assert again.result["attempt_tokens"] < again.result["tokens"]
    assert again.result["final_loss"] == uninterrupted(run).result["final_loss"]


@pytest.mark.slow
def test_term_saves_a_checkpoint_and_exits_75(run: Run):
    run.params["max_steps"] = 400
    before = cpu_of_children_s()
    process = run.write().start()
    run.await_event("step", 3)
    until_asked_s = sum(psutil.Process(process.pid).cpu_times()[:2])
    process.terminate()
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 75
    assert cpu_of_children_s() - before - until_asked_s < 5
    result = run.events("result")[0]
    assert (result["outcome"], result["step"]) == ("stopped", run.events("checkpoint")[-1]["step"])
    found = newest(run.path / "checkpoints")
    assert found is not None
    assert found.step == result["step"]


def test_running_out_of_memory_is_told_from_other_errors(run: Run):
    run.params.update(tuning="full", tokens_per_sample=2048, per_device_batch_size=64)
    rows = [{"prompt": "x" * 200, "completion": "y" * 1500}]
    assert run.write(rows=rows).finish("-c", LIMITED) == 76
    assert run.result["outcome"] == "oom"
    assert "A smaller per_device_batch_size" in run.result["reason"]
    assert 100_000_000 < run.result["peak_memory_bytes"] < 1_500_000_000


@pytest.mark.slow  # test_torch_sharding.py compares shared training, test_torch_resize.py copies and resuming
@pytest.mark.parametrize("sharding", ["ddp", "fsdp"])
def test_two_slots_learn_what_one_learns(run: Run, sharding: str):
    import torch
    from safetensors.torch import load_file

    run.params.update(sharding=sharding, per_device_batch_size=2)
    run.slots, run.checkpoint_every_s = 2, 0.0
    assert run.write(CHATS, CHATS[:3]).finish() == 0, run.result["reason"]
    alone = Run(
        run.path.with_name("alone"),
        run.models_dir,
        params={**run.params, "gradient_accumulation_steps": 2},
        checkpoint_every_s=0.0,
    )
    alone.write(CHATS, CHATS[:3]).train()
    assert run.losses == pytest.approx(alone.losses, rel=1e-4)
    norms = [[step["gradient_norm"] for step in one.events("step")] for one in (run, alone)]
    assert norms[0] == pytest.approx(norms[1], rel=1e-3)
    assert run.result["tokens"] == alone.result["tokens"]
    adapters = [load_file(one.path / "output" / "adapter_model.safetensors") for one in (run, alone)]
    assert adapters[0].keys() == adapters[1].keys()
    assert all(torch.allclose(adapters[0][name], adapters[1][name], atol=1e-4) for name in adapters[0])
    # another number of processes may go on from the checkpoint
    again = Run(run.path.with_name("again"), run.models_dir, params=alone.params)
    again.write(CHATS, CHATS[:3], resume=run.path / "checkpoints" / "step-5").train()
    assert again.result["final_loss"] == pytest.approx(alone.result["final_loss"], rel=1e-4)
    # both made the tokens of one
    assert run.identity(5)["tokens"] == alone.identity(5)["tokens"]
    assert sorted(path.name for path in (run.path / "tokens").iterdir()) == [
        f"{name}.{end}" for name in ("train", "validation") for end in ("codes", "json", "rows")
    ]


@pytest.mark.slow
def test_a_killed_process_ends_the_other(run: Run):
    """A stop that reaches both of them: test_torch_resize.py."""
    run.params.update(max_steps=5000, per_device_batch_size=2)
    run.slots = 2
    process = run.write().start()
    run.await_event("step", 3)
    ranks = psutil.Process(process.pid).children()
    assert len(ranks) == 2
    os.kill(ranks[1].pid, signal.SIGKILL)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == -signal.SIGKILL
    assert not any(rank.is_running() and rank.status() != psutil.STATUS_ZOMBIE for rank in ranks)


def two_nodes(run: Run) -> list[Run]:
    """One gang of two processes, each on a node of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    run.params.update(max_steps=5000, per_device_batch_size=2)
    return [
        Run(
            run.path / str(rank),
            run.path / "models",  # made by both at once
            run.params,
            node={"nodes": 2, "rank": rank, "rendezvous": address},
        )
        for rank in range(2)
    ]


@pytest.mark.slow  # the live stack loses a node of two
def test_a_node_whose_peer_is_lost_says_so_and_blames_nobody(run: Run):
    nodes = two_nodes(run)
    processes = [node.write().start() for node in nodes]
    nodes[0].await_event("step", 3)
    for process in psutil.Process(processes[1].pid).children():
        process.kill()
    for process in processes:
        process.communicate(timeout=PATIENCE_S)
    assert processes[1].returncode == -signal.SIGKILL
    assert nodes[0].result["outcome"] == "lost", nodes[0].result["reason"]
    assert "connection to the other training processes broke" in nodes[0].result["reason"]


@pytest.mark.slow  # the live stack trains over two nodes
def test_two_nodes_meet_and_a_stop_of_one_stops_both_after_the_same_step(run: Run):
    nodes = two_nodes(run)
    processes = [node.write().start() for node in nodes]
    nodes[0].await_event("step", 3)
    processes[1].terminate()
    for process in processes:
        process.communicate(timeout=PATIENCE_S)
    assert [process.returncode for process in processes] == [75, 75]
    assert nodes[0].result["step"] == nodes[1].result["step"] >= 3
    assert newest(nodes[0].path / "checkpoints") is not None
    assert nodes[1].events("start"), "its agent must hear that it trains"
    assert not nodes[1].events("step")
