"""A claim from its order to its end, with real processes and a real HTTP server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.trainer.agent.conftest import StartAgent
from tests.trainer.agent.fakes.fake_portal import FakePortal, file_of, until
from tests.trainer.agent.fakes.seen import steps
from trainer.protocol import File, Outcome, Resume


def test_a_claim_is_trained_reported_and_its_files_are_uploaded(
    portal: FakePortal, node_dir: Path, start_agent: StartAgent
) -> None:
    given = portal.give("c1", "normal")
    start_agent()
    end = until(lambda: given.end)
    assert (end.outcome, end.exit_code) == (Outcome.SUCCEEDED, 0)
    assert given.kinds()[0] == "start"
    assert [body["step"] for body in given.bodies("step")] == [1, 2, 3, 4, 5]
    assert given.bodies("step")[0]["loss"] is None, "NaN is no JSON"
    assert given.bodies("checkpoint")[0]["stored"] == "portal"
    assert given.artifacts["output/adapter.bin"] == b"learnt\n" * 1000
    assert given.artifacts["checkpoints/step-3/weights.bin"] == b"weights of step 3"
    assert b"all is well" in given.artifacts["log.txt"]
    assert "all is well" in "".join(body["text"] for body in given.bodies("log"))
    assert given.bodies("result")[0]["outcome"] == "succeeded"
    until(lambda: not (node_dir / "runs" / "c1").exists() and not (node_dir / "spool" / "c1").exists())


def test_a_node_enrols_once_and_keeps_its_token_to_itself(
    portal: FakePortal, node_dir: Path, start_agent: StartAgent
) -> None:
    start_agent().stop()
    start_agent(join_token="").stop()
    assert len(portal.enrolments) == 1
    slots = portal.enrolments[0].gpus
    assert [(slot.model, slot.peak_flops) for slot in slots] == [("cpu", 1e11), ("cpu", 1e11)]
    assert (node_dir / "token.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("mode", "outcome", "code", "reason"),
    [
        ("oom", Outcome.OOM, 76, "the batch needs 3 GiB more than there is"),
        ("error", Outcome.ERROR, 1, "line 7 of train.jsonl has no completion"),
        ("crash", Outcome.ERROR, 1, "RuntimeError: weights do not fit together"),
        ("lying", Outcome.ERROR, 0, "outputs could not be kept"),
    ],
)
def test_a_bad_end_is_told_with_its_reason(
    portal: FakePortal, start_agent: StartAgent, mode: str, outcome: Outcome, code: int, reason: str
) -> None:
    given = portal.give("c1", mode)
    start_agent()
    end = until(lambda: given.end)
    assert (end.outcome, end.exit_code) == (outcome, code)
    assert reason in end.reason


def test_a_training_without_a_sign_of_life_is_ended_as_a_timeout(
    portal: FakePortal, start_agent: StartAgent
) -> None:
    given = portal.give("c1", "silent", hang_after_s=0.7)
    start_agent()
    assert until(lambda: given.end).outcome == Outcome.TIMEOUT


def test_inputs_with_a_wrong_digest_start_nothing(portal: FakePortal, start_agent: StartAgent) -> None:
    announced = (file_of("train.jsonl", b"something else of equal length"),)
    given = portal.give(
        "c1", "normal", inputs={"train.jsonl": b"something that is as long too!"}, announced=announced
    )
    start_agent()
    end = until(lambda: given.end)
    assert end.outcome == Outcome.DATA
    assert "train.jsonl" in end.reason
    assert given.kinds() == []


def test_a_claim_whose_spec_is_not_understood_is_declined_alone(
    portal: FakePortal, start_agent: StartAgent
) -> None:
    odd = portal.give("c1", "normal", announced=(File(path="../train.jsonl", sha256="0" * 64, bytes=1),))
    good = portal.give("c2", "normal")
    start_agent()
    assert "spec" in until(lambda: odd.end).reason
    assert odd.end is not None
    assert odd.end.outcome == Outcome.DECLINED
    assert until(lambda: good.end).outcome == Outcome.SUCCEEDED


def test_a_claim_that_the_node_does_not_know_is_reported_lost(
    portal: FakePortal, start_agent: StartAgent
) -> None:
    given = portal.give("c1", "normal", with_spec=False)
    start_agent()
    assert until(lambda: given.end).outcome == Outcome.LOST


def test_a_flood_of_log_lines_is_cut_with_a_mark(portal: FakePortal, start_agent: StartAgent) -> None:
    given = portal.give("c1", "flood")
    start_agent()
    assert until(lambda: given.end).outcome == Outcome.SUCCEEDED
    text = "".join(body["text"] for body in given.bodies("log"))
    assert "bytes left out here" in text
    assert text.endswith("line 19999 of many that nobody reads\n")
    assert len(text) < 200_000
    assert given.artifacts["log.txt"].count(b"\n") == 20_000


def test_a_training_starts_in_a_clean_environment(
    portal: FakePortal, node_dir: Path, start_agent: StartAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary")
    given = portal.give("c1", "environment")
    portal.uses.clear()
    start_agent()
    path = node_dir / "runs" / "c1" / "environment.json"
    found = json.loads(until(lambda: path.exists() and path.read_text()))
    assert "canary" not in str(found)
    assert (found["OMP_NUM_THREADS"], found["HF_HUB_OFFLINE"], found["CUDA_VISIBLE_DEVICES"]) == (
        "1",
        "1",
        "",
    )
    assert until(lambda: given.end).outcome == Outcome.SUCCEEDED


@pytest.mark.parametrize("stored", ["portal", "node"])
def test_a_training_goes_on_from_a_checkpoint(
    portal: FakePortal, node_dir: Path, start_agent: StartAgent, stored: str
) -> None:
    limit = 2_000_000 if stored == "portal" else 1
    first = portal.give("c1", "tokenised", upload_limit_bytes=limit)
    start_agent()
    until(lambda: steps(first))
    first.want, first.stop_for = "stop", "preempt"
    until(lambda: first.end)
    reported = first.bodies("checkpoint")[0]
    assert reported["stored"] == stored
    files = tuple(File(**entry) for entry in reported["files"])
    assert [file.path for file in files] == ["weights.bin", "manifest.json"]
    folder = f"checkpoints/step-{reported['step']}"
    kept = {f"resume/{file.path}": first.artifacts.get(f"{folder}/{file.path}", b"") for file in files}
    inputs = {"train.jsonl": b"x", **(kept if stored == "portal" else {})}
    resume = Resume(step=reported["step"], stored=stored, claim="c1", files=files)
    until(lambda: not (node_dir / "spool" / "c1").exists())
    second = portal.give("c2", "resumed", fence=2, inputs=inputs, resume=resume)
    assert until(lambda: second.end).outcome == Outcome.SUCCEEDED
    log = second.artifacts["log.txt"].decode()
    assert f"resumed from weights of step {reported['step']}\nwith tokens" in log


def test_a_checkpoint_that_is_not_here_any_more_is_told_as_gone(
    portal: FakePortal, start_agent: StartAgent
) -> None:
    """So that the job goes on from an earlier one."""
    given = portal.give("c2", "resumed", resume=Resume(step=3, stored="node", claim="c1"))
    start_agent()
    assert until(lambda: given.end).outcome == Outcome.CHECKPOINT
    assert given.bodies("checkpoint") == [{"step": 3, "stored": "gone"}]


RESUMED = Resume(step=3, stored="portal", claim="c1", files=(file_of("weights.bin", b"weights"),))
DATA = b"rows"


@pytest.mark.parametrize(
    ("inputs", "outcome", "what"),
    [
        ({"train.jsonl": DATA, "resume/weights.bin": b"weightZ"}, Outcome.CHECKPOINT, "resume/weights.bin"),
        ({"train.jsonl": DATA, "resume/weights.bin": b"we"}, Outcome.CHECKPOINT, "resume/weights.bin"),
        ({"train.jsonl": DATA}, Outcome.CHECKPOINT, "resume/weights.bin"),
        ({"train.jsonl": b"roWs", "resume/weights.bin": b"weights"}, Outcome.DATA, "train.jsonl"),
        ({"resume/weights.bin": b"weights"}, Outcome.DATA, "train.jsonl"),
    ],
    ids=["a byte changed", "cut short", "missing", "data changed", "data missing"],
)
def test_what_the_portal_lost_is_told_as_such_and_is_no_decline_of_the_node(
    portal: FakePortal, start_agent: StartAgent, inputs: dict[str, bytes], outcome: Outcome, what: str
) -> None:
    portal.lost = 410
    announced = (file_of("train.jsonl", DATA),)
    given = portal.give("c2", "resumed", inputs=inputs, announced=announced, resume=RESUMED)
    start_agent()
    end = until(lambda: given.end)
    assert (end.outcome, end.exit_code) == (outcome, None)
    assert end.reason.startswith(f"the portal has lost {what}: ")


def test_an_address_that_something_else_answers_with_404_is_a_matter_of_the_node(
    portal: FakePortal, start_agent: StartAgent
) -> None:
    """A proxy that is set up wrongly must not cost a job its checkpoints."""
    announced = (file_of("train.jsonl", DATA),)
    given = portal.give("c2", "resumed", inputs={"train.jsonl": DATA}, announced=announced, resume=RESUMED)
    start_agent()
    assert until(lambda: given.end).outcome == Outcome.DECLINED


def test_a_file_that_is_damaged_once_on_its_way_is_fetched_again(
    portal: FakePortal, start_agent: StartAgent
) -> None:
    portal.damaged_once = {"train.jsonl"}
    given = portal.give("c1", "normal")
    start_agent()
    assert until(lambda: given.end).outcome == Outcome.SUCCEEDED
    assert not portal.damaged_once
