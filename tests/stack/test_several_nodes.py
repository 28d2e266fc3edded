"""One training over two nodes, each with an agent of its own.

gloo joins their processes.
"""

from __future__ import annotations

import pytest

from scheduler.models import Artifact, Checkpoint
from tests.harness.stack import Stack, until
from tests.stack.jobs import LONG, ended, outcomes

pytestmark = pytest.mark.stack
BOTH = {**LONG, "max_steps": 60, "number_nodes": 2, "per_device_batch_size": 1}


@pytest.mark.slow
def test_a_training_over_two_nodes_outlives_the_loss_of_one(judged: Stack) -> None:
    """A training over two nodes outlives the loss of one.

    Agent and training of beta are killed; once beta is back, both nodes go on from the checkpoint
    to the end.
    """
    judged.start_agent("beta")
    job_id = judged.submit(**BOTH)
    until(Checkpoint.objects.using(judged.alias).filter(job=job_id).exists, what="a checkpoint")
    judged.kill("beta")
    judged.kill_trainings("beta")
    judged["beta"].start()
    job = ended(judged, job_id)
    judged.supervisor.children.pop("beta").stop()

    first, second = outcomes(job)
    assert first in ("killed", "lost")
    assert second == "succeeded"
    attempts = job["attempts"]
    assert [[at["node"] for at in attempt["nodes"]] for attempt in attempts] == [["alpha", "beta"]] * 2
    assert attempts[1]["resume_step"] > 0
    assert attempts[1]["measured"]["final_loss"] < attempts[1]["measured"]["first_loss"]
    rows = Artifact.objects.using(judged.alias).filter(job=job_id)
    learnt = rows.filter(path__startswith="output/") | rows.filter(path__startswith="checkpoints/")
    assert set(learnt.values_list("claim__rank", flat=True)) == {0}, (
        "the first node alone tells what was learnt"
    )
