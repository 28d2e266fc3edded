"""The main job through every real part.

These are REST, the Celery loop, the node agent, the trainer and the history.
"""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest

from knowledge.models import Execution
from portal.ops.launch.processes import TRAINING_PYTHON
from tests.harness.stack import Stack, until
from tests.stack.jobs import ended, outcomes

pytestmark = pytest.mark.stack
ANSWER = """
import sys, torch
from peft import PeftModel
from transformers import AutoModelForCausalLM
from pathlib import Path
from trainer.builtin import ensure
base = ensure("builtin/tiny-llama", Path(sys.argv[2]))
model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base), sys.argv[1])
logits = model(torch.tensor([[1, 65, 66]])).logits
assert torch.isfinite(logits).all()
"""


def test_two_values_are_enough_for_an_adapter_and_a_lesson(judged: Stack, tmp_path: Path) -> None:
    before = Execution.objects.using(judged.alias).count()
    file = judged.training_file
    job_id = judged.client.submit(model="builtin/tiny-llama", training_file=file)["id"]
    question = judged.client.post(
        "recommendations/start/", {"model": "builtin/tiny-llama", "training_file": file}
    )
    for _ in range(20):  # requests: each of them waits, so that few are enough
        if judged.client.get(f"jobs/{job_id}/", wait_s=25, until="ended")["ended_at"]:
            break
    else:
        raise AssertionError("twenty waits did not see the end")
    job = ended(judged, job_id)
    address = f"recommendations/start/{question['id']}/"
    until(lambda: judged.client.get(address)["stage"] == "answered", every_s=0.5, what="a start")
    forecast = judged.client.get(address)["expected"]
    assert forecast["made_at"] <= forecast["start_high"] < forecast["end_high"]
    attempt = job["attempts"][0]
    assert outcomes(job) == ["succeeded"]
    assert attempt["measured"]["final_loss"] < attempt["measured"]["first_loss"]
    assert all(choice["reason"] for choice in job["params"].values())
    for promised in ("duration_s", "tokens_per_second", "peak_memory_bytes"):
        assert attempt["promise"][promised]["low"] <= attempt["promise"][promised]["value"]
    assert attempt["measured"]["tokens_per_s"] > 0
    assert attempt["peak_memory_bytes"] > 0
    lines = judged.client.get(f"jobs/{job_id}/metrics/")["data"]
    assert all(line["gradient_norm"] > 0 and line["learning_rate"] > 0 for line in lines if line["loss"])
    assert Execution.objects.using(judged.alias).count() == before + 1
    adapter_loads(judged, job_id, tmp_path)


def adapter_loads(stack: Stack, job_id: str, folder: Path) -> None:
    """Every artifact is what its digest says, alone and in the archive, and peft takes the adapter."""
    archive = stack.client.http.get(f"/api/jobs/{job_id}/artifacts.tar", params={"all": "true"}).content
    subprocess.run(["tar", "-xf", "-", "-C", str(folder)], input=archive, check=True)
    for artifact in stack.client.get(f"jobs/{job_id}/artifacts/")["data"]:
        content = stack.client.http.get(f"/api/jobs/{job_id}/artifacts/{artifact['path']}").content
        assert hashlib.sha256(content).hexdigest() == artifact["sha256"]
        assert (folder / artifact["path"]).read_bytes() == content
    command = [str(TRAINING_PYTHON), "-c", ANSWER, str(folder / "output"), str(folder / "base")]
    subprocess.run(command, check=True)
