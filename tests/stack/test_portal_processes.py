"""F1, F2, F5, F6, F17: what happens to the portal's own processes."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from client.foretune._errors import Unreachable
from portal.events.models import Event
from portal.ops.launch import preflight
from portal.ops.launch.processes import worker
from portal.ops.launch.supervisor import Process
from scheduler.models import Epoch, Job
from tests.harness.stack import Stack, until
from tests.stack.jobs import NOWHERE, caught_with_a_checkpoint, ended, outcomes

pytestmark = pytest.mark.stack


def test_f1_a_request_cut_off_by_a_dying_web_server_makes_one_job_or_none(judged: Stack) -> None:
    keys = [f"web-killed-{number}" for number in range(20)]
    known: list[str] = []
    unknown: list[str] = []

    def submit_all() -> None:
        for key in keys:
            try:
                known.append(judged.submit(key=key, **NOWHERE))
            except Unreachable:
                unknown.append(key)

    client = threading.Thread(target=submit_all)
    client.start()
    until(lambda: known, every_s=0.001, what="the first of the jobs")
    judged.kill("web")
    client.join()
    judged["web"].start()
    preflight.wait_until_served(judged.url)
    assert unknown, "the server died too late for this test"
    ids = [judged.submit(key=key, **NOWHERE) for key in keys]
    assert len(set(ids)) == len(keys)
    assert Job.objects.using(judged.alias).filter(id__in=ids).count() == len(keys)
    waiting = Job.objects.using(judged.alias).filter(fixed__gpu_model__isnull=False, ended_at__isnull=True)
    assert waiting.count() == len(keys), "a job was made twice"
    for job_id in ids:
        judged.client.post(f"jobs/{job_id}/cancel/")


@pytest.mark.slow  # the chaos run takes web servers away, too
def test_f12_a_web_server_away_for_longer_than_a_lease_loses_no_node_and_restarts_no_training(
    judged: Stack,
) -> None:
    judged.start_agent("beta")
    job_id = caught_with_a_checkpoint(judged)
    lost = Event.objects.using(judged.alias).filter(type="node.lost")
    before = lost.count()
    judged.kill("web")
    time.sleep(1.5 * float(judged.leases["NODE_LOST_S"]))
    judged["web"].start()
    preflight.wait_until_served(judged.url)
    assert outcomes(ended(judged, job_id)) == ["succeeded"]
    assert lost.count() == before
    judged.supervisor.children.pop("beta").stop()
    until(lambda: lost.count() > before, what="who stays away is lost")


def mid_tick(stack: Stack) -> bool:
    return Epoch.objects.using(stack.alias).filter(busy=True).exists()


def ticks(stack: Stack) -> int:
    return Epoch.objects.using(stack.alias).get().ticks


@pytest.mark.slow  # the chaos run kills schedulers, too
def test_f2_a_scheduler_killed_in_mid_tick_is_followed_by_another(judged: Stack) -> None:
    job_id = judged.submit()
    until(lambda: mid_tick(judged), every_s=0.001, what="a tick in progress")
    judged.kill("worker-control")
    judged["worker-control"].start()
    before, began = ticks(judged), time.monotonic()
    until(lambda: ticks(judged) > before + 1, what="ticks go on")
    assert time.monotonic() - began < 15
    ended(judged, job_id)


@pytest.mark.slow  # the chaos run kills the broker, too
def test_f5_f6_a_killed_broker_costs_time_only(judged: Stack) -> None:
    judged.pause("worker-control")  # so that messages are queued
    first = judged.submit()
    judged.kill("broker")
    began = time.monotonic()
    second = judged.submit()
    assert time.monotonic() - began < 3, "a request waited for the broker"
    judged.signal_group("worker-control", signal.SIGCONT)
    judged.start_broker()
    for job_id in (first, second):
        ended(judged, job_id)


def test_f17_two_schedulers_one_of_them_paused_in_mid_tick_never_place_twice(judged: Stack) -> None:
    second = worker("control")
    command = tuple("second@%h" if word == "control@%h" else word for word in second.command)
    jobs = [judged.submit() for _ in range(2)]
    judged.pause("worker-control", when=lambda: mid_tick(judged))
    try:
        judged.supervisor.start(Process(name="second", command=command))
        before = ticks(judged)
        until(lambda: ticks(judged) > before + 2, what="the other scheduler goes on")
        judged.signal_group("worker-control", signal.SIGCONT)
        for job_id in jobs:
            ended(judged, job_id)
    finally:
        judged.signal_group("worker-control", signal.SIGCONT)
        judged.supervisor.children.pop("second").stop()
