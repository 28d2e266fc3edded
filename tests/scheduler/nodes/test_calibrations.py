"""A calibration that is moved on by workers.

It is requested, run and cancelled, and survives dying workers.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction

from knowledge.models import Execution
from knowledge.recommendations.recommender import RecommendationFailed, Recommender
from portal.accounts.models import AuditEntry, User
from portal.clock import database_now
from scheduler.errors import BadParameters, Conflict, IllegalTransition, NotFound
from scheduler.models import Calibration, Job, Node
from scheduler.selectors.cluster.calibrations import calibrations, get_calibration
from scheduler.services.calibration import advance
from scheduler.services.calibration.advance import AT_ONCE, CalibrationReplaced, advance_all
from scheduler.services.calibration.request import CalibrationRequest, cancel_calibration, request_calibration
from scheduler.states import CALIBRATION_TRANSITIONS, CalibrationState, JobState
from tests.harness import world
from tests.harness.fake_node import FakeNode
from tests.scheduler.nodes.calibrating import Worker

pytestmark = pytest.mark.django_db


def ask(node: FakeNode, *, runs: int = 8, **wanted: object) -> Calibration:
    given = {"budget_s": 60.0, "models": ["builtin/tiny-llama"], "runs": runs, **wanted}
    return request_calibration(
        node=Node.objects.get(pk=node.node_id),
        wanted=CalibrationRequest(**given),
        actor=world.admin(),
        now=database_now(),
    )  # type: ignore[arg-type]


def work() -> None:
    """The work of a worker when it is asked."""
    advance_all(now=database_now)


def test_a_calibration_moves_as_its_table_says_and_ends_in_its_outcome(node: FakeNode) -> None:
    made = ask(node)
    for old, following in CALIBRATION_TRANSITIONS.items():
        for to in set(CalibrationState) - following:
            made.state = old
            with pytest.raises(IllegalTransition, match=f"is {old} cannot become {to}"):
                advance.move(made, to)
    row = Calibration.objects.filter(pk=made.pk)
    stopping = {"state": CalibrationState.STOPPING, "outcome": CalibrationState.DONE}
    for wrong in (
        {"outcome": "done"}, {"state": "stopping"}, {"state": "done", "outcome": "done"},
        {"ended_at": database_now()}, {**stopping, "state": "failed", "ended_at": database_now()},
    ):  # fmt: skip
        with pytest.raises(IntegrityError), transaction.atomic():
            row.update(**wrong)
    assert row.update(**stopping) == 1


def now_of(calibration: Calibration) -> Calibration:
    return calibrations(calibration.node).get(pk=calibration.pk)


def test_workers_run_all_of_the_plan_a_few_at_a_time_and_compare_the_errors(node: FakeNode) -> None:
    made, train = ask(node), Worker(node)
    assert (made.state, len(made.plan)) == ("running", 8)
    assert AuditEntry.objects.get(action="calibration requested").target == made.pk
    for _ in range(20):
        work()
        assert Job.objects.exclude(state__in=("succeeded", "failed")).count() <= AT_ONCE
        train()
    done = now_of(made)
    assert (done.state, done.reason, done.submitted, done.ended) == ("done", "", 8, 8)
    assert done.ended_at
    assert done.judged_runs == 6, "all that ran"
    assert done.error_before is not None
    assert done.error_after is not None
    assert {row.status for row in Execution.objects.filter(attempt_id__isnull=False)} == {"ok", "oom"}
    names = set(Job.objects.values_list("name", flat=True))
    assert len(names) > 1, "their rows can be told apart"
    assert all(name.startswith("calibration: tiny-llama, ") for name in names)
    work()
    assert Job.objects.count() == 8, "an ended one is left alone"


def test_of_two_workers_that_see_the_same_state_one_submits_nothing(node: FakeNode) -> None:
    made = ask(node)
    twin = Calibration.objects.select_related("requested_by", "file", "node").get(pk=made.pk)
    advance.advance(made, now=database_now())
    before = Job.objects.count()
    with pytest.raises(CalibrationReplaced):
        advance.submit_next(twin, [advance.Config(**twin.plan[0])], database_now())
    assert Job.objects.count() == before == AT_ONCE


def test_a_worker_that_dies_between_two_runs_is_followed_by_another(node: FakeNode) -> None:
    made, train = ask(node, runs=3), Worker(node)
    work()
    train()
    for _ in range(6):  # the next one knows nothing but the rows
        work()
        train()
    assert now_of(made).state == "done"
    assert Job.objects.count() == 3


def test_when_the_time_is_over_what_has_not_ended_is_cancelled_and_the_rest_judged(node: FakeNode) -> None:
    made = ask(node, runs=4)
    work()
    advance_all(now=lambda: made.until + timedelta(seconds=1))
    over = now_of(made)
    assert (over.state, over.reason) == ("done", "Time ran out; 4 of 4 runs were unfinished.")
    assert (over.error_before, over.judged_runs) == (None, 0)
    assert set(Job.objects.values_list("state", flat=True)) == {JobState.CANCELLED}


def test_a_cancelled_one_stops_until_its_node_has_confirmed_it(node: FakeNode) -> None:
    made = ask(node, runs=4)
    work()
    trainer = Worker(node)
    trainer.start_one()
    cancelled = cancel_calibration(calibration=made, actor=made.requested_by, now=database_now())
    assert cancelled.state == "stopping"
    work()
    assert now_of(made).state == "stopping", "a training still runs"
    trainer.stop_all()
    work()
    ended = now_of(made)
    assert (ended.state, ended.reason) == ("cancelled", f"Cancelled by {made.requested_by}.")
    assert set(Job.objects.values_list("state", flat=True)) == {JobState.CANCELLED}
    again = cancel_calibration(calibration=ended, actor=made.requested_by, now=database_now())
    assert again.state == "cancelled"
    assert AuditEntry.objects.filter(action="calibration cancelled").count() == 1


def test_what_ended_by_itself_is_not_cancelled(node: FakeNode) -> None:
    made = ask(node, runs=1)
    advance_all(now=lambda: made.until)
    with pytest.raises(IllegalTransition, match="is done; there is nothing to cancel"):
        cancel_calibration(calibration=made, actor=made.requested_by, now=database_now())


def test_a_node_has_one_calibration_at_a_time(node: FakeNode) -> None:
    first = ask(node)
    with pytest.raises(Conflict, match="is still going on"):
        ask(node)
    with pytest.raises(IntegrityError):
        Calibration.objects.create(
            node=first.node, requested_by=first.requested_by, requested_at=first.requested_at,
            until=first.until, plan=[], file=first.file,
        )  # fmt: skip


def test_a_node_that_gets_no_work_is_not_calibrated(node: FakeNode) -> None:
    Node.objects.update(state="drained")
    with pytest.raises(Conflict, match="The node is drained; only a ready node"):
        ask(node)


@pytest.mark.parametrize("state", ["draining", "drained", "lost", "blocked"])
def test_a_node_that_gets_no_more_work_ends_its_calibration(node: FakeNode, state: str) -> None:
    made = ask(node)
    work()
    Node.objects.update(state=state)
    work()
    ended = now_of(made)
    assert (ended.state, ended.reason) == ("cancelled", f"The node was {state} before the end.")
    assert set(Job.objects.values_list("state", flat=True)) == {JobState.CANCELLED}


def test_nothing_is_submitted_for_somebody_who_left(node: FakeNode) -> None:
    made = ask(node)
    User.objects.filter(pk=made.requested_by.pk).update(is_active=False)
    work()
    assert (now_of(made).state, Job.objects.count()) == ("cancelled", 0)
    assert now_of(made).reason == f"{made.requested_by} is no longer active."


def test_a_plan_that_cannot_be_made_is_refused_in_words(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise RecommendationFailed("the predictor is damaged")

    monkeypatch.setattr(Recommender, "informative", fails)
    with pytest.raises(Conflict, match="cannot be planned now"):
        ask(node)


def test_a_run_that_cannot_be_submitted_ends_it_with_the_reason(node: FakeNode) -> None:
    made = ask(node)
    lost = [made.plan[0] | {"model_name": "gone"}]
    Calibration.objects.filter(pk=made.pk).update(plan=lost)
    work()
    failed = now_of(made)
    assert (failed.state, failed.submitted) == ("failed", 0)
    assert failed.reason.startswith("A run could not be submitted: model: The model 'gone'")


def test_errors_that_cannot_be_computed_do_not_keep_it_open(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise RecommendationFailed("no predictor")

    monkeypatch.setattr(advance, "errors_of", fails)
    made = ask(node, runs=1)
    advance_all(now=lambda: made.until)
    assert (now_of(made).state, now_of(made).error_before) == ("done", None)


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("wanted", "field", "says"),
    [
        ({"budget_s": 0.0}, "budget_s", "above 0"),
        ({"budget_s": float("nan")}, "budget_s", "above 0"),
        ({"budget_s": 1e6}, "budget_s", "at most"),
        ({"budget_s": 1e-3}, "budget_s", "allow more time or a smaller model"),
        ({"runs": 0}, "runs", "between 1 and"),
        ({"models": ["tiny-lama"]}, "models", "Did you mean"),
        ({"models": ["random/granite-4.0-h-tiny"]}, "models", "choose another model"),
        ({"models": ["builtin/tiny-llama"] * 21}, "models", "at most 20 models"),
    ],
)
def test_a_bad_wish_is_refused_by_field(
    node: FakeNode, wanted: dict[str, object], field: str, says: str
) -> None:
    with pytest.raises(BadParameters) as refused:
        ask(node, **wanted)  # type: ignore[arg-type]
    assert list(refused.value.fields) == [field]
    assert says in refused.value.fields[field]
    assert not Calibration.objects.exists()


def test_another_nodes_calibration_is_not_found(node: FakeNode) -> None:
    made, other = ask(node), Node.objects.get(pk=world.fake_node().node_id)
    with pytest.raises(NotFound):
        get_calibration(other, made.pk)
