"""The scheduling policy on its page and in Django's admin."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from portal.accounts.models import AuditEntry, User
from portal.clock import database_now
from scheduler.core.policies import LIVE, POLICIES
from scheduler.loop import leadership
from scheduler.models import Epoch, PolicyChoice, Simulation
from scheduler.selectors.policy import current_choice, current_policy
from scheduler.services.policy import choose_policy
from scheduler.services.simulations.request import MAX_POLICIES
from scheduler.simulator.baselines import BASELINES
from tests.harness import world

ADD = "/admin/scheduler/policychoice/add/"
MARKUP = "<script>alert(1)</script>"


def test_every_policy_is_said_in_one_sentence() -> None:
    summaries = [policy.description.summary for policy in POLICIES.values()]
    assert all(text.endswith(".") and text.count(". ") == 0 for text in summaries)


def test_six_policies_stand_first_and_the_others_under_all(browser: Client, admin: User) -> None:
    """Opened only where the present one is among them; the simulator's baselines are nowhere."""
    shown = browser.get("/policy/").content.decode()
    first, _, others = shown.partition("<summary>All</summary>")
    choices = re.compile(r'type="radio" name="name" id="[\w-]+" value="([\w-]+)"')
    assert choices.findall(first) == ["easy", "fifo", "fair", "srtf", "las", "sia"]
    assert set(choices.findall(others)) == set(LIVE) - set(choices.findall(first))
    assert "<details><summary>All" in shown
    assert [name for name in BASELINES if name in shown] == []
    refused = browser.post("/policy/", {"name": "fifo-strict", "reason": "x", "seen": "0"})
    assert refused.status_code == 400
    answer = browser.get("/api/policy/").json()
    assert not {*answer["live"], *answer["simulated"], *answer["summaries"]} & BASELINES.keys()
    browser.post("/policy/", {"name": "sjf", "reason": "x", "seen": str(current_choice())})
    assert "<details open><summary>All" in browser.get("/policy/").content.decode()


def test_everybody_sees_who_chose_what_and_why_and_administrators_choose(
    browser: Client, person: User
) -> None:
    shown = browser.get("/policy/").content.decode()
    assert "never changed here" in shown
    assert all(POLICIES[name].description.summary in shown.replace("&#x27;", "'") for name in LIVE)
    assert '<form method="post" class' not in shown
    assert browser.post("/policy/", {"name": "sjf", "reason": "x", "seen": "0"}).status_code == 403
    User.objects.filter(pk=person.pk).update(is_staff=True)
    browser.post("/policy/", {"name": "sjf", "reason": "short jobs first", "seen": "0"})
    shown = browser.get("/policy/").content.decode()
    assert current_policy() == "sjf"
    assert "by ada" in shown
    assert "short jobs first" in shown
    assert AuditEntry.objects.get(action="policy chosen").actor_name == "ada"
    assert b'href="/policy/">Policy: sjf' in browser.get("/queue/").content


@pytest.mark.parametrize("address", ["/policy/", ADD])
def test_of_two_administrators_who_saw_the_same_choice_the_second_meets_a_conflict(
    address: str, browser: Client, admin: User
) -> None:
    seen = str(current_choice())
    browser.post(address, {"name": "easy", "reason": "mine", "seen": seen})
    late = browser.post(address, {"name": "fair", "reason": "theirs", "seen": seen}, follow=True)
    assert b"Someone else has changed the policy" in late.content
    assert PolicyChoice.objects.get().name == "easy"
    browser.post(address, {"name": "fair", "reason": "theirs", "seen": str(current_choice())})
    assert current_policy() == "fair"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "pollux"),
        ("las.min_run_s", "NaN"),
        ("las.min_run_s", "-1"),
        ("tiresias.limits_gpu_s", "ten"),
        ("name", "a\x00b"),
        ("reason", ""),
        ("reason", "x" * 501),
        ("seen", "NaN"),
        ("seen", "9" * 400),
        ("seen", "-1"),
    ],
)
def test_a_choice_that_cannot_be_made_is_told_at_its_field(
    browser: Client, admin: User, field: str, value: str
) -> None:
    name = field.partition(".")[0] if "." in field else "easy"
    answer = browser.post("/policy/", {"name": name, "reason": "why", "seen": "0", field: value})
    assert answer.status_code == 400
    assert list(answer.context["form"].errors) == [field]
    assert not PolicyChoice.objects.exists()


def test_parameters_of_other_policies_hold_nobody_up(browser: Client, admin: User) -> None:
    """Their fields are folded away, so that what is wrong there would not be seen."""
    sent = {"name": "tiresias", "reason": "why", "seen": "0", "las.min_run_s": "NaN", "sia.power": "9"}
    assert browser.post("/policy/", sent).status_code == 302
    assert PolicyChoice.objects.get().name == "tiresias"


def test_a_reason_is_shown_as_plain_text(browser: Client, admin: User) -> None:
    browser.post("/policy/", {"name": "easy", "reason": MARKUP, "seen": "0"})
    assert MARKUP not in browser.get("/policy/").content.decode()


def test_the_admin_adds_choices_and_changes_none(browser: Client, admin: User) -> None:
    assert b"shortest predicted duration" in browser.get(ADD).content
    answer = browser.post(ADD, {"name": "sjf", "reason": "short first", "seen": "0"})
    assert answer.status_code == 302
    made = PolicyChoice.objects.get()
    assert (made.name, made.reason, made.chosen_by) == ("sjf", "short first", admin)
    assert AuditEntry.objects.filter(action="policy chosen").count() == 1
    path = f"/admin/scheduler/policychoice/{made.pk}/"
    assert b"short first" in browser.get(path + "change/").content
    assert browser.post(path + "change/", {"name": "fifo"}).status_code == 403
    assert browser.post(path + "delete/", {"post": "yes"}).status_code == 403
    User.objects.update(is_staff=False)
    assert browser.get(ADD).status_code == 302


@pytest.mark.django_db
def test_a_tick_under_way_does_not_bring_the_old_policys_memory_back() -> None:
    epoch = leadership.acquire()
    assert epoch is not None
    choose_policy(name="fair", actor=world.admin(), reason="", now=database_now())
    epoch.memory = {"of": "the policy before"}
    leadership.release(epoch)
    assert Epoch.objects.get().memory == {}
    assert leadership.acquire() is not None


def test_over_rest_a_choice_that_was_not_seen_is_409(browser: Client, admin: User) -> None:
    def post(**values: object) -> int:
        return browser.patch("/api/policy/", values, content_type="application/json").status_code

    seen = browser.get("/api/policy/").json()["version"]
    assert post(name="easy", seen=seen) == 200
    assert post(name="fair", seen=seen) == 409
    assert post(name="fair") == 200
    assert browser.get("/api/policy/").json()["summaries"]["fair"] == POLICIES["fair"].description.summary


def test_parameters_are_set_on_the_page_and_explained_there(browser: Client, admin: User) -> None:
    shown = browser.get("/policy/").content.decode()
    assert "Minimum seconds that a job runs before it may be stopped." in shown
    places = [shown.index(one) for one in ('id="policy_las"', "Parameters of las", 'id="policy_tiresias"')]
    assert places == sorted(places), "they stand under their policy"
    choice = {"name": "tiresias", "reason": "why", "seen": "0", "las.min_run_s": "5"}
    refused = browser.post("/policy/", {**choice, "tiresias.limits_gpu_s": "20, 10"})
    assert refused.status_code == 400
    assert b"must rise from each number to the next" in refused.content
    browser.post("/policy/", {**choice, "tiresias.limits_gpu_s": "10, 20", "tiresias.min_run_s": "60"})
    assert PolicyChoice.objects.get().parameters == {"limits_gpu_s": [10.0, 20.0]}
    shown = browser.get("/policy/").content.decode()
    assert 'value="10, 20"' in shown
    assert "limits_gpu_s [10.0, 20.0]" in shown


def test_the_page_says_what_would_have_served_best_of_the_own_past(admin_browser: Client) -> None:
    """By the newest comparison, which a worker plays once it is asked for from the same page."""
    shown = admin_browser.get("/policy/").content.decode()
    assert (
        "No comparison on this portal&#x27;s own past" in shown or "No comparison on this portal's" in shown
    )
    assert '<input type="hidden" name="policies" value="easy">' in shown
    figures = {"wait_mean_s": 60.0, "jain": 0.5, "preemptions": 3}
    results = [
        {"policy": name, "jct_mean_s": mean_s, **figures}
        for name, mean_s in (("easy", 7200.0), ("srtf", 3600.0))
    ]
    now = database_now()
    made = Simulation.objects.create(
        policies=["easy", "srtf"], cluster="cpu:1x1", state="done", knowledge="performance", as_it_was=True,
        requested_at=now, until=now, results=results,
    )  # fmt: skip
    shown = admin_browser.get("/policy/").content.decode()
    part = shown[shown.index('id="past"') :].split("</section>")[0]
    assert "srtf has the lowest mean JCT, 1 h" in part
    assert "below the policy in force, easy, with 2 h" in part
    assert made.get_absolute_url() in part
    assert part.index("<td>srtf") < part.index("<td>easy")


def test_a_comparison_that_is_asked_for_on_the_page_is_refused_without_a_past(admin_browser: Client) -> None:
    shown = admin_browser.get("/policy/").content.decode()
    names = re.findall(r'name="policies" value="([a-z-]+)"', shown)
    asked = admin_browser.post("/simulations/", {"policies": names, "knowledge": "performance"})
    assert asked.status_code == 400
    assert "is no policy" not in asked.content.decode()
    assert 1 < len(names) <= MAX_POLICIES
