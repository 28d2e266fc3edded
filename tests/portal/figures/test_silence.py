"""Nothing live is told of what is not heard of, on no page and in no answer."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from portal import clock
from portal.accounts.models import User
from scheduler.loop.tick import tick
from scheduler.models import Claim, Gpu, Job, Node
from scheduler.services.jobs.verbs import cancel_job, pause_job
from scheduler.services.nodes.state import drain_node
from scheduler.services.web_beat import note_web_beat
from tests.harness import world
from tests.harness.fake_node import FakeNode, step
from tests.portal.figures.pages import facts, plain

pytestmark = pytest.mark.django_db
FRAGMENT = {"HX-Request": "true"}


class Served:
    """Time in which the portal serves, by a clock of the test's own; only some nodes are heard."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = clock.read().replace(microsecond=0)
        monkeypatch.setattr(clock, "read", lambda: self.now)
        monkeypatch.setattr(timezone, "now", lambda: self.now)

    def passes(self, seconds: int, *heard: FakeNode, ticks: bool = True, serves: bool = True) -> None:
        for _ in range(seconds // 10):
            self.now += timedelta(seconds=10)
            if serves:
                note_web_beat(now=self.now)
            Node.objects.filter(pk__in=[node.node_id for node in heard]).update(last_seen_at=self.now)
            if ticks:
                tick()


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Served:
    time = Served(monkeypatch)
    note_web_beat(now=time.now)
    return time


def body(client: Client, path: str) -> str:
    return client.get(path).content.decode()


def job_page(client: Client, job: Job) -> str:
    return body(client, f"/jobs/{job.pk}/")


def training(node: FakeNode, owner: User, *, checkpoint: int = 0) -> Job:
    """A job that trains there and came to step 4."""
    job = world.placed_job(node, owner=owner, name="silent one", params={"number_gpus": 1})
    order = node.take_up()
    node.run(order, {"kind": "start", "body": {"steps_total": 40}}, step(1), step(4, rate=1234.0))
    if checkpoint:
        node.save_checkpoint(order, checkpoint)
    Gpu.objects.update(util=0.875, memory_used_bytes=123 << 20)
    return job


def sentence(html: str) -> str:
    assert 'id="silence"' in html
    said = plain(html[html.index('id="silence"') :].split("</div>")[0].split(">", 1)[1])
    return said.replace(" .", ".").replace(" ,", ",")


def hour(moment: datetime) -> str:
    return f"{moment:%H:%M}"


def test_a_silent_job_has_no_live_figure_anywhere(
    served: Served, browser: Client, api: Any, person: User
) -> None:
    node, other = world.fake_node(name="helios", slots=1), world.fake_node(name="other", slots=1)
    User.objects.filter(pk=person.pk).update(is_staff=True)
    job, last = training(node, person, checkpoint=3), served.now
    assert {"Speed": "1,234 tokens/s"}.items() <= facts(job_page(browser, job)).items()
    served.passes(70, other)

    shown = job_page(browser, job)
    assert sentence(shown) == (
        f"helios has not reported since {hour(last)}. Last known step 4; the portal waits until"
        f" {hour(last + timedelta(seconds=90))}, then restarts it from the checkpoint of step 3."
    )
    told = facts(shown)
    assert {"Last known step": "4 of 40", "Speed": "–", "Time left": "–"}.items() <= told.items()
    assert "End" not in told
    assert "1,234" not in shown
    assert "New prediction" not in shown
    for path in (f"/jobs/{job.pk}/live/", "/jobs/", "/", "/queue/"):
        part = client_part(browser, path)
        assert "1,234" not in part, path
        assert "Next to finish" not in part, path
        assert "silent" in part or "not reported" in part, path

    for answer in (
        api.get(f"/api/jobs/{job.pk}/").json(), api.get("/api/jobs/").json()["data"][0]
    ):  # fmt: skip
        progress = answer["progress"]
        assert (progress["tokens_per_second"], progress["eta_s"], progress["end"]) == (None, None, None)
        assert (progress["step"], datetime.fromisoformat(progress["silent_since"])) == (4, last)
    silence = api.get(f"/api/jobs/{job.pk}/").json()["silence"]
    assert (silence["nodes"], silence["then"], silence["resumes_from_step"]) == (["helios"], "queued", 3)
    assert datetime.fromisoformat(silence["until"]) == last + timedelta(seconds=90)

    asked = api.get(f"/api/jobs/{job.pk}/questions/", {"q": "When does it end?"}).json()["text"]
    assert "should end" not in asked
    of_node = api.get(f"/api/nodes/{node.node_id}/").json()
    assert (of_node["state"], of_node["internal_state"]) == ("silent", "ready")
    assert [(gpu["util"], gpu["memory_used_bytes"]) for gpu in of_node["gpus"]] == [(None, None)]
    for path in ("/nodes/?q=helios", f"/nodes/{node.node_id}/"):
        shown = body(browser, path)
        assert "Utilisation of GPU" not in shown
        assert "123 MiB" not in shown
        assert "allocated, 88%" not in shown
    assert 'foretune_nodes{state="silent"} 1.0' in browser.get("/metrics").content.decode()

    node.run(node.orders[next(iter(node.orders))], step(6, rate=1235.0))
    back = job_page(browser, job)
    assert 'id="silence"' not in back
    assert facts(back)["Speed"] == "1,235 tokens/s"


def client_part(client: Client, path: str) -> str:
    return client.get(path, headers=FRAGMENT).content.decode()


@pytest.mark.slow
def test_the_lanes_of_a_silent_node_end_at_its_last_report(
    served: Served, browser: Client, person: User
) -> None:
    node, other = world.fake_node(name="helios", slots=1), world.fake_node(name="other", slots=1)
    training(node, person)
    served.passes(10, node, other)
    last = served.now
    assert ", expected" in client_part(browser, "/queue/?lanes=now")
    served.passes(80, other)
    shown = client_part(browser, "/queue/?lanes=now")
    assert "expected to be free" not in shown
    assert "Nothing is heard of 1 of them" in shown
    assert "jobs you may see, not heard of" in shown
    assert '"shape": "/"' in shown
    assert ", expected" not in shown
    assert f"its node has not reported since {last:%Y-%m-%d %H:%M:%S}" in shown


@pytest.mark.slow
def test_of_a_gang_one_silent_node_is_enough(
    served: Served, browser: Client, person: User, settings: Any
) -> None:
    settings.MAX_NODES_PER_JOB = 2
    nodes = {name: world.fake_node(name=name) for name in ("left", "right")}
    job = world.job(person, params={"number_nodes": 2})
    assert tick().started == 1
    for node in nodes.values():
        order = node.take_up()
        rank = Claim.objects.get(node=node.node_id).rank
        node.run(order, *([step(4, rate=1234.0)] if rank == 0 else []))
    served.passes(70, nodes["left"])
    assert sentence(job_page(browser, job)).startswith("right has not reported since")
    assert facts(job_page(browser, job))["Speed"] == "–"
    assert "1,234" not in client_part(browser, "/jobs/")


def starting(job: Job, node: FakeNode, now: datetime) -> None:
    node.take_up()


def running(job: Job, node: FakeNode, now: datetime) -> None:
    node.run(node.take_up(), step(4))


def pausing(job: Job, now: datetime) -> None:
    pause_job(job=job, actor=job.owner, now=now)


def cancelling(job: Job, now: datetime) -> None:
    cancel_job(job=job, actor=job.owner, now=now)


def nothing(job: Job, now: datetime) -> None:
    """Nobody asks anything of it."""


def draining(job: Job, node: FakeNode, now: datetime) -> None:
    running(job, node, now)
    row = Node.objects.get(pk=node.node_id)
    drain_node(node=row, actor=world.admin(), now=now, reason="new disk", move_jobs=False)


def without_tries(job: Job, node: FakeNode, now: datetime) -> None:
    running(job, node, now)
    Job.objects.filter(pk=job.pk).update(infrastructure_used=1000)


BEGINNING = "starts it again from the beginning, as it has no checkpoint."


@pytest.mark.parametrize(
    ("before", "meanwhile", "known", "then", "state"),
    [
        (starting, nothing, "The job had not begun to train", "starts it again.", "queued"),
        (running, nothing, "Last known step 4", BEGINNING, "queued"),
        (running, pausing, "Last known step 4", "counts the job as paused.", "paused"),
        (running, cancelling, "Last known step 4", "counts the job as cancelled.", "cancelled"),
        pytest.param(draining, nothing, "Last known step 4", BEGINNING, "queued", marks=pytest.mark.slow),
        (without_tries, nothing, "Last known step 4", "counts the job as failed.", "failed"),
    ],
)
def test_what_is_told_to_follow_is_what_follows(
    before: Callable[[Job, FakeNode, datetime], None],
    meanwhile: Callable[[Job, datetime], None],
    known: str,
    then: str,
    state: str,
    served: Served,
    browser: Client,
    person: User,
) -> None:
    node, other = world.fake_node(slots=1), world.fake_node(slots=1)
    Node.objects.filter(pk=other.node_id).update(state="blocked", until=None)
    job = world.placed_job(node, owner=person, params={"number_gpus": 1})
    before(job, node, served.now)
    last = served.now
    served.passes(50, other)
    job.refresh_from_db()
    meanwhile(job, served.now)
    served.passes(20, other)
    said = sentence(job_page(browser, job))
    assert known in said
    assert then in said
    assert f"waits until {hour(last + timedelta(seconds=90))}" in said
    served.passes(30, other)
    assert Node.objects.get(pk=node.node_id).state == "lost"
    assert world.state_of(job) == state


def test_the_portals_own_absence_counts_as_nobodys_silence(
    served: Served, browser: Client, person: User
) -> None:
    """The moment up to which it waits begins anew once it serves again."""
    node = world.fake_node(name="helios", slots=1)
    job, last = training(node, person), served.now
    served.passes(10, node)
    served.passes(600, ticks=False, serves=False)
    note_web_beat(now=served.now)
    tick()
    said = sentence(job_page(browser, job))
    assert f"not reported since {hour(last + timedelta(seconds=10))}" in said
    assert f"waits until {hour(served.now + timedelta(seconds=90))}" in said
    served.passes(80)
    assert world.state_of(job) == "running"
    served.passes(20)
    assert world.state_of(job) == "queued"
    assert 'id="silence"' not in job_page(browser, job)


@pytest.mark.slow
def test_all_nodes_silent_is_told_where_people_wait(served: Served, browser: Client, person: User) -> None:
    for name in ("one", "two"):
        world.fake_node(name=name, slots=1)
    away = Node.objects.get(name="two")
    drain_node(node=away, actor=world.admin(), now=served.now, reason="memory is replaced", move_jobs=False)
    tick()
    assert 'id="availability"' not in client_part(browser, "/queue/")
    last = served.now
    served.passes(200)
    words = (
        f"Nothing can start: 1 of 2 nodes silent since {hour(last)} ( one ), 1 drained (memory is replaced)."
    )
    assert words in plain(client_part(browser, "/queue/"))
    assert 'id="availability"' not in client_part(browser, "/")  # of administrators' news
    User.objects.filter(pk=person.pk).update(is_staff=True)
    assert words in plain(client_part(browser, "/"))
    listed = body(browser, "/nodes/")
    links = plain(listed.split('aria-label="Filter by state"')[1].split("</nav>")[0])
    assert "all 2 ready 0 silent 1 draining 0 drained 1 lost 0 blocked 0" in links
    headings = {
        state: re.findall(r"<h2[^>]*><a[^>]*>([^<]*)<", client_part(browser, f"/nodes/?state={state}"))
        for state in ("silent", "drained", "ready")
    }
    assert headings == {"silent": ["one"], "drained": ["two"], "ready": []}
