"""Tokens are the same at each resume, and are found again.

Several processes make them once: distributed/test_torch_processes.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.runs import CHATS, Run
from trainer import builtin, checkpoint

pytestmark = pytest.mark.torch

DATED = "{{ strftime_now('%d %b %Y %H:%M:%S.%f') }}\n" + builtin.CHAT_TEMPLATE


def dated_model(run: Run) -> str:
    """A model whose chat template prints the moment it is rendered."""
    folder = builtin.ensure("builtin/tiny-llama", run.models_dir)
    copy = run.models_dir / "team" / "dated"
    if not copy.exists():
        copy.parent.mkdir(exist_ok=True)
        copy.mkdir()
        for path in folder.iterdir():
            (copy / path.name).write_bytes(path.read_bytes())
        for path in copy.glob("*.jinja"):
            path.write_text(DATED)
    return "team/dated"


def another(run: Run, name: str, **changes: Any) -> Run:
    return Run(
        run.path.with_name(name), run.models_dir, **{"params": run.params, "model": run.model, **changes}
    )


def change_identity(folder: Path, **values: Any) -> None:
    """As if another version had written the checkpoint."""
    state = json.loads((folder / "state.json").read_text())
    identity = {**state["identity"], **values}
    state["identity"] = {name: value for name, value in identity.items() if value is not None}
    (folder / "state.json").write_text(json.dumps(state))
    files = [
        {"path": f.path, "sha256": f.sha256, "bytes": f.bytes}
        for f in checkpoint.describe(folder)
        if f.path != checkpoint.MANIFEST
    ]
    step = int(folder.name.removeprefix("step-"))
    (folder / checkpoint.MANIFEST).write_text(json.dumps({"step": step, "files": files}))


def test_a_template_that_prints_the_date_makes_the_same_tokens_at_each_resume(
    run: Run, capsys: pytest.CaptureFixture[str]
):
    run.model, run.checkpoint_every_s = dated_model(run), 0.0
    run.params["tokens_per_sample"] = 64
    first = run.write(CHATS).train()
    assert first["outcome"] == "succeeded", first["reason"]
    assert "fields of train.jsonl that are not used: id" in capsys.readouterr().out
    folder = run.path / "checkpoints" / "step-5"

    same = another(run, "same").write(CHATS, resume=folder)
    assert same.train()["outcome"] == "succeeded"
    assert same.losses[6] == run.losses[6]
    assert "from an earlier attempt" not in capsys.readouterr().out

    found = another(run, "found").write(CHATS, resume=folder, tokens=run.path / "tokens")
    assert found.train()["outcome"] == "succeeded"
    assert found.losses[6] == run.losses[6]
    assert "from an earlier attempt" in capsys.readouterr().out
    assert (found.path / "tokens" / "train.codes").samefile(run.path / "tokens" / "train.codes")

    (run.path / "tokens" / "train.codes").write_bytes(b"\0" * 4)  # a disk that lost some of them
    damaged = another(run, "damaged").write(CHATS, resume=folder, tokens=run.path / "tokens")
    assert damaged.train()["outcome"] == "succeeded"
    assert damaged.losses[6] == run.losses[6]

    change_identity(folder, tokens="0" * 64)
    refused = another(run, "refused").write(CHATS, resume=folder).train()
    assert "other tokens: the data, the tokenizer, its chat template" in refused["reason"]
    change_identity(folder, tokens=None)  # of one that says nothing of them
    silent = another(run, "silent").write(CHATS, resume=folder).train()
    assert "other tokens: the data, the tokenizer, its chat template" in silent["reason"]


def test_a_long_preparation_is_heard_of_and_obeys_a_stop(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    from trainer.train.data import preparation, tokenise

    class StopLater:
        """Asked for once rows were made ready three times."""

        @property
        def requested(self) -> bool:
            return len(run.events("prepare")) >= 3

    monkeypatch.setattr(tokenise, "ROWS", 1)
    monkeypatch.setattr(preparation, "SLICE_S", 0.0)
    monkeypatch.setattr(preparation, "REPORT_EVERY_S", 0.0)
    result = run.write(CHATS).train(StopLater())
    assert (result["outcome"], result["step"]) == ("stopped", 0)
    assert [event["rows"] for event in run.events("prepare")] == [1, 2, 3]
    assert "tokenising train.jsonl: 3 rows" in capsys.readouterr().out
    assert not (run.path / "tokens" / "train.json").exists()
