"""Every policy that may run live does so on the real loop.

Only administrators choose one.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from portal.accounts.models import AuditEntry, User
from portal.clock import database_now
from scheduler.core.policies import LIVE, POLICIES
from scheduler.errors import BadParameters
from scheduler.loop.tick import tick
from scheduler.models import Allocation, Epoch, Job
from scheduler.selectors.policy import current_policy, live_policy
from scheduler.services.policy import choose_policy
from scheduler.states import JobState
from tests.harness import world
from tests.harness.fake_node import result, step
from tests.harness.histories.live import MECHANISMS
from tests.harness.sampling import mostly_on_demand

pytestmark = pytest.mark.django_db


def choose(name: str) -> None:
    choose_policy(name=name, actor=world.admin(), reason="test", now=database_now())


@pytest.mark.one_database  # policies see no database, and the loop is tested on both
@pytest.mark.parametrize("name", mostly_on_demand(LIVE, ["fifo", "lucid", "spot", "tiresias", "uwfq"]))
def test_every_live_policy_runs_all_jobs_to_their_end(name: str) -> None:
    choose(name)
    node, owner = world.fake_node(slots=2), world.user()
    file = world.data_file(owner)
    for gpus in (1, 2, 1, 1):
        world.job(owner, training_file=file, params={"number_gpus": gpus})
    for _ in range(6):
        Epoch.objects.update(round_at=None)  # the next round begins
        tick()
        assert Epoch.objects.get().ticks > 0
        assert Allocation.objects.filter(released_at__isnull=True).count() <= 2
        for order in [order for order in node.sync().claims if order.spec]:
            node.sync(node.say(order, "starting"))
            node.run(order, step(1))
        tick()  # with jobs running
        for claim in node.sync().claims:
            node.end(node.orders[claim.claim], "succeeded", result())
        if not Job.objects.exclude(state=JobState.SUCCEEDED).exists():
            break
    assert set(Job.objects.values_list("state", flat=True)) == {JobState.SUCCEEDED}


@pytest.mark.one_database
@pytest.mark.parametrize("after", mostly_on_demand(MECHANISMS, ["sia"]))
def test_another_policy_by_the_setting_does_not_stumble_over_the_memory_of_the_one_before(
    settings: Any, after: str
) -> None:
    for before in ("easy", "fair", "uwfq-whole"):
        settings.POLICY = before
        world.fake_node(slots=1)
        world.job()
        tick()
        settings.POLICY = after
        world.job()
        tick()
    assert set(Epoch.objects.get().memory) == {after, Epoch.ORDER}


@pytest.mark.parametrize("name", sorted(set(POLICIES) - set(LIVE)))
def test_a_policy_of_the_simulator_cannot_be_chosen(name: str) -> None:
    with pytest.raises(BadParameters, match="simulator only"):
        choose(name)
    assert current_policy() == "easy"


def change(asker: User, body: object) -> int:
    client = Client(enforce_csrf_checks=False)
    client.force_login(asker)
    return client.patch("/api/policy/", body, content_type="application/json").status_code


def test_choosing_over_rest_is_for_administrators_and_audited() -> None:
    assert change(world.user(), {"name": "sjf"}) == 403
    admin = world.admin()
    assert change(admin, {"name": "nonsense"}) == 400
    assert change(admin, {"name": "sjf", "reason": "short jobs first"}) == 200
    assert current_policy() == "sjf"
    assert AuditEntry.objects.get(action="policy chosen").target == "sjf"
    client = Client()
    client.force_login(admin)
    shown = client.get("/api/policy/").json()
    assert (shown["name"], shown["history"][0]["reason"]) == ("sjf", "short jobs first")


def test_parameters_are_chosen_with_the_policy_and_stand_in_the_audit_record() -> None:
    admin = world.admin()
    assert change(admin, {"name": "las", "parameters": {"min_run_s": 1e9}}) == 400
    assert change(admin, {"name": "las", "parameters": {"segment_s": 900}}) == 400
    assert change(admin, {"name": "las", "parameters": [1]}) == 400
    assert current_policy() == "easy"
    assert change(admin, {"name": "las", "parameters": {"min_run_s": 300}}) == 200
    held = {
        "round_s": 0.0, "min_run_s": 300.0, "cooldown_s": 60.0, "limit": 3, "hysteresis": 0.1,
        "spare_restarts": 0.0, "spare_share": 0.0,
    }  # fmt: skip
    assert AuditEntry.objects.get(action="policy chosen").data["parameters"] == held
    client = Client()
    client.force_login(admin)
    shown = client.get("/api/policy/").json()
    assert shown["parameters"] == held
    assert shown["history"][0]["parameters"] == {"min_run_s": 300.0}
    assert shown["defaults"]["las"] == {**held, "min_run_s": 60.0}
    assert getattr(live_policy().policy, "rules").min_run_s == 300.0  # noqa: B009 - not all policies have rules
