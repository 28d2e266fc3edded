"""`manage.py calibrate` against a node that speaks the real protocol."""

from __future__ import annotations

import io
from argparse import ArgumentTypeError
from collections.abc import Callable

import pytest
from django.core.management import CommandError, call_command
from django.db.models import F

from knowledge.models import Execution
from scheduler.management.commands import calibrate
from scheduler.management.commands.calibrate import seconds
from scheduler.models import Calibration, Gpu, Job, Node
from scheduler.states import JobState
from tests.harness.fake_node import FakeNode
from tests.scheduler.nodes.calibrating import Worker

pytestmark = pytest.mark.django_db


def run(
    node: FakeNode, meanwhile: Callable[[], None], monkeypatch: pytest.MonkeyPatch, **options: object
) -> str:
    """The output of the command; `meanwhile` happens each time that it waits."""
    monkeypatch.setattr(calibrate.time, "sleep", lambda _: meanwhile())
    out = io.StringIO()
    name = Node.objects.get(pk=node.node_id).name
    given = {"model": ["builtin/tiny-llama"], "budget": 60.0, **options}
    call_command("calibrate", name, stdout=out, **given)
    return out.getvalue()


@pytest.mark.slow
def test_every_run_is_recorded_those_out_of_memory_too(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = run(node, Worker(node), monkeypatch, runs=8)
    recorded = list(Execution.objects.filter(attempt_id__isnull=False))
    assert {row.status for row in recorded} == {"ok", "oom"}
    assert {row.source for row in recorded} == {"own"}
    assert f"8 jobs, {len(recorded)} executions recorded." in said
    assert "each predicted from dissimilar ones only" in said
    assert Job.objects.count() == 8


def test_random_weights_count_for_the_real_architecture(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def meanwhile() -> None:
        Worker(node)()
        seen.extend(order.spec for order in node.orders.values() if order.spec)

    run(node, meanwhile, monkeypatch, runs=1, budget=3600.0, model=["random/smollm2-135m"])
    row = Execution.objects.get(attempt_id__isnull=False)
    assert row.model_name == "HuggingFaceTB/SmolLM2-135M"
    assert row.startup_s is None
    assert seen[0].shape["hidden_size"] == 576
    assert seen[0].shape["model_type"] == "llama"


def test_a_budget_too_small_for_any_run_is_refused(node: FakeNode) -> None:
    name = Node.objects.get(pk=node.node_id).name
    with pytest.raises(CommandError, match=r"--budget: no run .* more time or a smaller model"):
        call_command("calibrate", name, budget=1.0, model=["random/smollm2-135m"])


def test_when_the_budget_is_over_what_has_not_ended_is_cancelled(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    def time_passes() -> None:
        Calibration.objects.update(until=F("requested_at"), turn=F("turn") + 1)

    assert "Time ran out; 4 of 4 runs were unfinished." in run(node, time_passes, monkeypatch, runs=4)
    assert Job.objects.exists()
    assert set(Job.objects.values_list("state", flat=True)) == {JobState.CANCELLED}


def test_an_interrupt_cancels_what_was_started(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    assert "Interrupted" in run(node, interrupt, monkeypatch, runs=4)
    assert Job.objects.exists()
    assert set(Job.objects.values_list("state", flat=True)) == {JobState.CANCELLED}


def test_an_unknown_node_is_named_with_those_that_are_known(node: FakeNode) -> None:
    known = Node.objects.get(pk=node.node_id).name
    with pytest.raises(CommandError, match=f"'nowhere'; registered are: .*{known}"):
        call_command("calibrate", "nowhere")


def test_a_node_without_a_gpu_or_slot_cannot_be_calibrated(node: FakeNode) -> None:
    Gpu.objects.filter(node_id=node.node_id).delete()
    with pytest.raises(CommandError, match="offers no GPU and no slot"):
        call_command("calibrate", Node.objects.get(pk=node.node_id).name)


@pytest.mark.parametrize(
    ("model", "words"),
    [("tiny-lama", "not in the catalogue"), ("random/granite-4.0-h-tiny", "choose another model")],
)
def test_a_model_that_cannot_be_trained_is_named(node: FakeNode, model: str, words: str) -> None:
    with pytest.raises(CommandError, match=words):
        call_command("calibrate", Node.objects.get(pk=node.node_id).name, model=[model])
    assert not Job.objects.exists()


def test_nobody_to_run_it_for_is_said() -> None:
    with pytest.raises(CommandError, match="create an administrator first"):
        call_command("calibrate", "any")


@pytest.mark.parametrize(("text", "value"), [("90s", 90), ("20m", 1200), ("2h", 7200)])
def test_a_budget_is_a_number_with_a_unit(text: str, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["", "20", "0m", "-5m", "1.5h", "20 m", "an hour"])
def test_what_is_no_budget_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="write 90s, 20m or 2h"):
        seconds(text)
