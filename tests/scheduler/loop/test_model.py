"""A state machine plays users, nodes and time against the lifecycle.

Invariants must hold after each step. For a long run:

`LOG_LEVEL=ERROR MODEL_EXAMPLES=10000 pytest -p no:logging tests/scheduler/loop/test_model.py`
"""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)  # fmt: skip

from portal.accounts.models import Team
from portal.clock import database_now
from scheduler.errors import SchedulerError
from scheduler.loop import jobs_seen
from scheduler.loop.options.option_refresh import refresh_options
from scheduler.loop.snapshot import take_snapshot
from scheduler.models import Decision, Epoch, Job, JobDependency, Node, PendingStart
from scheduler.selectors.decisions import replay_decision
from scheduler.selectors.dependencies import MET
from scheduler.services.jobs.dependencies import After
from scheduler.services.jobs.priorities import hold_job, release_job
from scheduler.services.jobs.verbs import cancel_job, pause_job, resume_job
from scheduler.services.nodes.state import drain_node, resume_node
from scheduler.services.policy import choose_policy
from scheduler.services.quotas import LimitValues, QuotaValues, put_quota, remove_quota, set_limit
from scheduler.states import LIVE, TERMINAL, DependencyKind, JobState, NodeState, PriorityClass
from tests.harness import world
from tests.harness.environment import examples
from tests.harness.fake_node import FakeNode, result, step
from tests.harness.invariants import assert_sound
from tests.scheduler.quotas.watched import watched_tick
from trainer.protocol import ClaimOrder

EXAMPLES = int(os.environ.get("MODEL_EXAMPLES", examples(6)))
VERBS = {"cancel": cancel_job, "pause": pause_job, "resume": resume_job}
OUTCOMES = ["succeeded", "error", "oom", "stopped", "killed", "timeout", "declined"]
CLOSE: list[dict[str, Any]] = [
    {}, {}, {"topology": "guaranteed", "topology_level": 3}, {"topology": "best_effort", "topology_level": 3},
]  # fmt: skip
FEW = st.sampled_from([None, None, 0, 1, 2])


class Lifecycle(RuleBasedStateMachine):
    """Two nodes, two users with teams; every message a node ever sent may come again."""

    jobs: Bundle[Job] = Bundle("jobs")

    def __init__(self) -> None:
        super().__init__()
        self.guard = transaction.atomic()
        self.guard.__enter__()
        self.sent: list[tuple[FakeNode, dict[str, Any]]] = []
        self.ends: dict[str, str] = {}
        self.drained: set[str] = set()
        self.replayed = 0

    def teardown(self) -> None:
        transaction.set_rollback(True)
        self.guard.__exit__(None, None, None)

    @initialize()
    def cluster(self) -> None:
        self.admin, self.owners = world.admin(), [world.user(), world.user()]
        self.files = [world.data_file(owner) for owner in self.owners]
        self.teams = [Team.objects.create(name=name) for name in ("speech", "vision")]
        self.nodes = [world.fake_node(slots=slots) for slots in (1, 3)]
        world.declare_sites(self.nodes[1], 3)  # the third slot is in a NUMA node of its own
        self.another_policy("las")
        for which in range(2):
            self.limits_change(which, None, None)

    @rule(
        target=jobs,
        retries=st.integers(0, 1),
        gpus=st.sampled_from([None, 1, 2]),
        priority=st.sampled_from([0, 0, *PriorityClass]),
        whose=st.integers(0, 1),
        close=st.sampled_from(CLOSE),
    )
    def submit(self, retries: int, gpus: int | None, priority: int, whose: int, close: dict[str, Any]) -> Job:
        params = {"max_steps": 100_000, **({"number_gpus": gpus} if gpus else {})}
        return world.job(
            self.owners[whose], team=self.teams[whose], training_file=self.files[whose], retries=retries,
            params=params, priority=priority, **close,
        )  # fmt: skip

    @rule(whose=st.integers(0, 1), running_jobs=st.sampled_from([None, None, 0, 1]), gpus=FEW)
    def limits_change(self, whose: int, running_jobs: int | None, gpus: int | None) -> None:
        values = LimitValues(running_jobs=running_jobs, gpus=gpus, max_class=PriorityClass.URGENT)
        set_limit(user=self.owners[whose], values=values, actor=self.admin, now=database_now())

    @rule(
        whose=st.integers(0, 1),
        model=st.sampled_from(["cpu", ""]),
        guaranteed=st.integers(0, 3),
        borrow=FEW,
        lending=st.sampled_from([None, None, 0]),
    )
    def quota_changes(
        self, whose: int, model: str, guaranteed: int, borrow: int | None, lending: int | None
    ) -> None:
        limits = {"borrow_limit": borrow, "lending_limit": lending}
        values = QuotaValues(gpu_model=model, guaranteed=guaranteed, **limits)
        put_quota(team=self.teams[whose], values=values, actor=self.admin, now=database_now())

    @rule(whose=st.integers(0, 1), model=st.sampled_from(["cpu", ""]))
    def quota_ends(self, whose: int, model: str) -> None:
        remove_quota(team=self.teams[whose], gpu_model=model, actor=self.admin, now=database_now())

    @rule(whose=st.integers(0, 1), of_team=st.booleans(), most=st.integers(0, 2))
    def more_are_submitted_than_may_run(self, whose: int, of_team: bool, most: int) -> None:
        if of_team:
            self.quota_changes(whose, "cpu", 0, most, None)
        else:
            self.limits_change(whose, None, most)
        for _ in range(3):
            self.submit(0, 1, 0, whose, {})
        watched_tick()

    @rule(whose=st.integers(0, 1), guaranteed=st.integers(1, 3))
    def an_owner_wants_its_gpus_back(self, whose: int, guaranteed: int) -> None:
        """Others that borrow them are stopped, if the policy stops jobs."""
        self.quota_changes(whose, "cpu", guaranteed, None, None)
        self.jobs_run_for_long()
        self.submit(0, 1, 0, whose, {})
        watched_tick()

    @rule(job=jobs, holds=st.booleans())
    def hold_or_release(self, job: Job, holds: bool) -> None:
        try:
            (hold_job if holds else release_job)(job=job, actor=self.admin, now=database_now())
        except SchedulerError:
            return

    @rule(target=jobs, job=jobs, kind=st.sampled_from(DependencyKind))
    def submit_after(self, job: Job, kind: DependencyKind) -> Job:
        job.refresh_from_db()
        if job.state in (JobState.FAILED, JobState.CANCELLED):
            kind = DependencyKind.ENDED
        after, data = [After(job, kind)], job.training_file
        return world.job(job.owner, team=job.team, training_file=data, after=after)

    @rule()
    def look(self) -> None:
        watched_tick()

    @rule()
    def one_more_waits_for_jobs_that_run(self) -> None:
        """A job that received less may stop them."""
        self.jobs_run_for_long()
        self.submit(0, 1, 0, 0, {})
        watched_tick()

    @rule(name=st.sampled_from(["fifo", "las", "tiresias", "srtf", "sia", "gavel", "topology"]))
    def another_policy(self, name: str) -> None:
        choose_policy(name=name, actor=self.admin, reason="test", now=database_now())

    @rule()
    def jobs_run_for_long(self) -> None:
        """Long enough to be stopped for others."""
        for node in self.nodes:
            for order in node.sync().claims:
                if order.want == "run" and order.claim in node.orders:
                    self._say(node, node.orders[order.claim], "running")
        world.age_starts(1000)
        watched_tick()

    @rule()
    def the_next_round_begins(self) -> None:
        Epoch.objects.update(round_at=None)
        watched_tick()

    @rule()
    def what_is_kept_expires(self) -> None:
        PendingStart.objects.update(expires_at=database_now())
        watched_tick()

    @rule()
    def refresh(self) -> None:
        refresh_options()

    @rule(job=jobs, verb=st.sampled_from(sorted(VERBS)))
    def ask(self, job: Job, verb: str) -> None:
        try:
            VERBS[verb](job=job, actor=job.owner, now=database_now())
        except SchedulerError:
            return  # refused in this state: no effect

    @rule(
        which=st.integers(0, 1),
        action=st.sampled_from(["queued", "starting", "running", "checkpoint", *OUTCOMES]),
    )
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
        if action in ("queued", "starting", "running"):
            said = node.say(order, action, *([step(start + number)] if action == "running" else []))
        else:
            reports = [result()] if action == "succeeded" else []
            said = node.say(order, "ended", *reports, outcome=action, reason=f"It ended as {action}.")
        self.sent.append((node, said))
        node.sync(said)

    @rule(which=st.integers(0, 99))
    def an_old_message_comes_again(self, which: int) -> None:
        """I7, I11; the choice knows no state, since equal choices need not lead to equal ids and times"""
        if self.sent:
            node, said = self.sent[which % len(self.sent)]
            node.sync(said)

    @rule(which=st.integers(0, 1), seconds=st.sampled_from([70, 1000]))
    def node_is_silent(self, which: int, seconds: float) -> None:
        world.silence(self.nodes[which], seconds)
        watched_tick()

    @rule(job=jobs)
    def state_grows_old(self, job: Job) -> None:
        world.age_state(job, 10_000)
        watched_tick()

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
    def jobs_are_seen_as_if_none_was_known_before(self) -> None:
        now = database_now()
        seen = take_snapshot({}, now)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(jobs_seen, "_known", {})
            assert take_snapshot({}, now) == seen

    @invariant()
    def final_states_are_final(self) -> None:
        """I2"""
        for job in Job.objects.filter(state__in=TERMINAL):
            assert self.ends.setdefault(job.pk, job.state) == job.state

    @invariant()
    def the_newest_decision_is_made_again_from_what_is_kept(self) -> None:
        """The job ends, however the cluster has changed since."""
        newest = Decision.objects.first()
        if newest and newest.pk != self.replayed:
            self.replayed = newest.pk
            assert replay_decision(newest).differences == []

    @invariant()
    def nothing_starts_before_what_it_comes_after(self) -> None:
        rows = JobDependency.objects.filter(job__state__in=LIVE).exclude(MET)
        assert not rows.exists()

    @invariant()
    def the_rows_are_sound(self) -> None:
        """I2 to I9, I11, I12, I14, I15, I20"""
        assert_sound()


@pytest.mark.django_db
@pytest.mark.postgresql
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


@pytest.mark.django_db
@pytest.mark.parametrize("whose", [0, 1])
def test_a_round_within_limits_is_made_again_from_what_is_kept(whose: int) -> None:
    """`sia` is asked several times in one decision, and solves each time."""
    lifecycle = Lifecycle()
    try:
        for step_taken in (
            lifecycle.cluster,
            lifecycle.jobs_run_for_long,
            lifecycle.one_more_waits_for_jobs_that_run,
            lifecycle.jobs_run_for_long,
            partial(lifecycle.another_policy, "gavel"),
            lifecycle.what_is_kept_expires,
            lifecycle.jobs_run_for_long,
            partial(lifecycle.limits_change, 0, None, 2),
            partial(lifecycle.an_owner_wants_its_gpus_back, 0, 2),
            lifecycle.what_is_kept_expires,
            partial(lifecycle.an_owner_wants_its_gpus_back, 1, 3),
            lifecycle.one_more_waits_for_jobs_that_run,
            partial(lifecycle.an_owner_wants_its_gpus_back, whose, 1),
            partial(lifecycle.another_policy, "sia"),
            lifecycle.one_more_waits_for_jobs_that_run,
        ):
            step_taken()
            lifecycle.the_newest_decision_is_made_again_from_what_is_kept()
    finally:
        lifecycle.teardown()
