"""A state machine plays users, nodes and time against the lifecycle; invariants must hold after each step.

`MODEL_EXAMPLES=500 pytest tests/scheduler/test_model.py` for a long run.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import pytest
from django.db import transaction
from django.db.models import Prefetch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)  # fmt: skip

from knowledge.models import Execution
from portal.clock import database_now
from scheduler.errors import SchedulerError
from scheduler.loop.refresh import refresh_options
from scheduler.loop.tick import tick
from scheduler.models import Allocation, Attempt, Checkpoint, Job, JobEvent, Node
from scheduler.services.jobs import cancel_job, pause_job, resume_job
from scheduler.services.node_states import drain_node, resume_node
from scheduler.states import LIVE, TERMINAL, TRANSITIONS, JobState, NodeState
from tests.harness import world
from tests.harness.fake_node import FakeNode, result, step
from trainer.protocol import ClaimOrder

EXAMPLES = int(os.environ.get("MODEL_EXAMPLES", "12"))
VERBS = {"cancel": cancel_job, "pause": pause_job, "resume": resume_job}
OUTCOMES = ["succeeded", "error", "oom", "stopped", "killed", "timeout", "declined"]


class Lifecycle(RuleBasedStateMachine):
    """Two nodes, one user; every message a node ever sent may come again."""

    jobs: Bundle[Job] = Bundle("jobs")

    def __init__(self) -> None:
        super().__init__()
        self.guard = transaction.atomic()
        self.guard.__enter__()
        self.sent: list[tuple[FakeNode, dict[str, Any]]] = []
        self.ends: dict[str, str] = {}
        self.drained: set[str] = set()

    def teardown(self) -> None:
        transaction.set_rollback(True)
        self.guard.__exit__(None, None, None)

    @initialize()
    def cluster(self) -> None:
        self.owner, self.admin = world.user(), world.admin()
        self.file = world.data_file(self.owner)
        self.nodes = [world.fake_node(slots=slots) for slots in (1, 2)]

    @rule(target=jobs, retries=st.integers(0, 1), gpus=st.sampled_from([None, 1, 2]))
    def submit(self, retries: int, gpus: int | None) -> Job:
        params = {"number_gpus": gpus} if gpus else {}
        return world.job(self.owner, training_file=self.file, retries=retries, params=params)

    @rule()
    def look(self) -> None:
        tick()

    @rule()
    def refresh(self) -> None:
        refresh_options()

    @rule(job=jobs, verb=st.sampled_from(sorted(VERBS)))
    def ask(self, job: Job, verb: str) -> None:
        try:
            VERBS[verb](job=job, actor=self.owner, now=database_now())
        except SchedulerError:
            return  # refused in this state: no effect

    @rule(which=st.integers(0, 1), action=st.sampled_from(["starting", "running", "checkpoint", *OUTCOMES]))
    def node_works(self, which: int, action: str) -> None:
        node = self.nodes[which]
        if live := [order for order in node.sync().claims if order.claim in node.orders]:
            self._say(node, node.orders[live[0].claim], action)

    def _say(self, node: FakeNode, order: ClaimOrder, action: str) -> None:
        number = node.seqs.get(order.claim, 0)
        start = order.spec.resume.step if order.spec and order.spec.resume else 0
        if action == "checkpoint":
            node.save_checkpoint(order, start + number + 1)
            return
        if action in ("starting", "running"):
            said = node.say(order, action, *([step(start + number)] if action == "running" else []))
        else:
            reports = [result()] if action == "succeeded" else []
            said = node.say(order, "ended", *reports, outcome=action, reason=f"It ended as {action}.")
        self.sent.append((node, said))
        node.sync(said)

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def an_old_message_comes_again(self, data: st.DataObject) -> None:
        """I7, I11"""
        node, said = data.draw(st.sampled_from(self.sent))
        node.sync(said)

    @rule(which=st.integers(0, 1), seconds=st.sampled_from([70, 1000]))
    def node_is_silent(self, which: int, seconds: float) -> None:
        world.silence(self.nodes[which], seconds)
        tick()

    @rule(job=jobs)
    def state_grows_old(self, job: Job) -> None:
        world.age_state(job, 10_000)
        tick()

    @rule(which=st.integers(0, 1), verb=st.sampled_from(["drain", "move", "resume"]))
    def admin_acts(self, which: int, verb: str) -> None:
        row = Node.objects.get(pk=self.nodes[which].node_id)
        about: dict[str, Any] = {"node": row, "actor": self.admin, "reason": "test", "now": database_now()}
        try:
            resume_node(**about) if verb == "resume" else drain_node(**about, move_jobs=verb == "move")
        except SchedulerError:
            return
        (self.drained.discard if verb == "resume" else self.drained.add)(row.pk)

    @invariant()
    def a_drained_node_gets_nothing_before_it_is_resumed(self) -> None:
        """I5: whatever happens to it meanwhile."""
        assert not Node.objects.filter(pk__in=self.drained, state=NodeState.READY).exists()

    @invariant()
    def final_states_are_final(self) -> None:
        """I2"""
        for job in Job.objects.filter(state__in=TERMINAL):
            assert self.ends.setdefault(job.pk, job.state) == job.state

    @invariant()
    def events_tell_the_row(self) -> None:
        """I3, I8"""
        told = Job.objects.prefetch_related(Prefetch("events", JobEvent.objects.order_by("number")))
        for job in told:
            events = list(job.events.all())
            assert [event.number for event in events] == list(range(1, job.version + 1))
            assert (events[-1].new, events[-1].stop_for, events[-1].fence) == (
                job.state, job.stop_for, job.fence,
            )  # fmt: skip
            for event in events[1:]:
                if event.kind == "state" and event.old != event.new:
                    assert event.new in TRANSITIONS[JobState(event.old)]

    @invariant()
    def attempts_match_states(self) -> None:
        """I4: live states have one live attempt, others none."""
        for job in Job.objects.prefetch_related("attempts"):
            live = sum(attempt.ended_at is None for attempt in job.attempts.all())
            assert live == (1 if job.state in LIVE else 0), job.state

    @invariant()
    def gpus_are_held_by_live_attempts_only(self) -> None:
        """I5, I6"""
        held = Allocation.objects.filter(released_at__isnull=True)
        assert not held.filter(claim__attempt__ended_at__isnull=False).exists()
        assert held.values("gpu").distinct().count() == held.count()
        assert not held.filter(claim__node__state=NodeState.LOST).exists()

    @invariant()
    def each_ended_attempt_that_ran_left_one_execution(self) -> None:
        """I9"""
        executions = Counter(Execution.objects.values_list("attempt_id", flat=True))
        for attempt in Attempt.objects.filter(ended_at__isnull=False).prefetch_related("claims"):
            ran = any(claim.started for claim in attempt.claims.all())
            assert executions[attempt.pk] == int(ran)

    @invariant()
    def progress_never_falls_below_a_checkpoint(self) -> None:
        """I14"""
        saved = list(Checkpoint.objects.values_list("job_id", "attempt__fence", "step"))
        for attempt in Attempt.objects.all():
            earlier = [step for job, fence, step in saved if job == attempt.job_id and fence < attempt.fence]
            assert attempt.resume_step == max(earlier, default=0)

    @invariant()
    def budgets_are_kept_and_infrastructure_uses_up_no_retries(self) -> None:
        """I20"""
        for job in Job.objects.prefetch_related("attempts"):
            errors = sum(attempt.outcome == "error" for attempt in job.attempts.all())
            assert job.errors_used <= min(job.retries, errors)
            assert job.infrastructure_used <= 5
            assert job.oom_used <= 1


@pytest.mark.django_db
def test_the_lifecycle_keeps_its_invariants() -> None:
    run_state_machine_as_test(
        Lifecycle,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
