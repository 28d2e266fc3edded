"""Quotas on a team's page, limits of people, and the class of a job."""

from __future__ import annotations

from html import unescape

import pytest
from django.test import Client

from portal.accounts.models import Membership, Role, Team, User
from scheduler.models import Gpu, Job, PersonLimit, TeamQuota
from tests.harness import world


@pytest.fixture
def team(person: User) -> Team:
    made = Team.objects.create(name="Linguists")
    Membership.objects.create(team=made, user=person)
    return made


def test_an_administrator_sets_and_ends_a_quota_that_members_see(admin_browser: Client, team: Team) -> None:
    world.fake_node()
    page = f"/teams/{team.pk}/"
    assert "The team has no quota" in admin_browser.get(page).content.decode()
    sent = {"gpu_model": "cpu", "guaranteed": "2", "borrow_limit": "0", "lending_limit": ""}
    assert admin_browser.post(f"{page}quota/", sent).status_code == 302
    member = world.user("bob")
    Membership.objects.create(team=team, user=member)
    client = Client()
    client.force_login(member)
    seen = client.get(page).content.decode()
    assert "2 guaranteed" in seen
    assert "may borrow 0, lends all" in seen
    assert "Set a quota" not in seen
    assert "Fair share: weight 1," in seen
    assert "Set weight" not in seen
    assert client.post(f"{page}share/", {"weight": "2"}).status_code == 403
    assert admin_browser.post(f"{page}share/", {"weight": "0"}).status_code == 400
    assert admin_browser.post(f"{page}share/", {"weight": "2.5"}).status_code == 302
    assert "Fair share: weight 2.5," in client.get(page).content.decode()
    assert "The team was guaranteed" in seen
    assert client.post(f"{page}end-quota/", {"gpu_model": "cpu"}).status_code == 403
    admin_browser.post(f"{page}end-quota/", {"gpu_model": "cpu"})
    assert TeamQuota.objects.get().until


def test_a_guarantee_beyond_the_cluster_is_a_warning(admin_browser: Client, team: Team) -> None:
    sent = {"gpu_model": "A100-SXM4-80GB", "guaranteed": "2"}
    assert admin_browser.post(f"/teams/{team.pk}/quota/", sent).status_code == 302
    page = admin_browser.get(f"/teams/{team.pk}/").content.decode()
    assert "No registered node has a GPU of the model A100-SXM4-80GB." in page


def test_a_model_that_nobody_knows_is_refused_with_the_nearest(admin_browser: Client, team: Team) -> None:
    world.fake_node()
    for name, near in (("H1000", "H100-SXM5-80GB"), ("A1OO", "cpu"), ("<b>😀</b>", "cpu")):
        answer = admin_browser.post(f"/teams/{team.pk}/quota/", {"gpu_model": name, "guaranteed": "2"})
        text = unescape(answer.content.decode())
        assert answer.status_code == 400
        assert "is neither in the catalogue nor on a registered node; did you mean" in text
        assert near in text
    assert not TeamQuota.objects.exists()


def test_a_quota_outlives_the_last_node_of_a_model_that_the_catalogue_lacks(
    admin_browser: Client, team: Team
) -> None:
    world.fake_node()
    Gpu.objects.update(model="Abacus 9")
    page = f"/teams/{team.pk}/quota/"
    assert admin_browser.post(page, {"gpu_model": "Abacus 9", "guaranteed": "1"}).status_code == 302
    Gpu.objects.update(model="cpu")
    assert admin_browser.post(page, {"gpu_model": "Abacus 9", "guaranteed": "2"}).status_code == 302
    assert admin_browser.post(page, {"gpu_model": "Abacus 8", "guaranteed": "2"}).status_code == 400
    assert TeamQuota.objects.get(until__isnull=True).guaranteed == 2


def test_a_model_has_one_quota_by_whichever_of_its_names(admin_browser: Client, team: Team) -> None:
    """Nodes are registered under the catalogue's name, so a quota of another one would bind nobody."""
    world.fake_node()
    for name, guaranteed in (("cpu", "1"), ("CPU", "2")):
        admin_browser.post(f"/teams/{team.pk}/quota/", {"gpu_model": name, "guaranteed": guaranteed})
    quota = TeamQuota.objects.get(until__isnull=True)
    assert (quota.gpu_model, quota.guaranteed) == ("cpu", 2)
    admin_browser.post(f"/teams/{team.pk}/quota/", {"gpu_model": "NVIDIA A100-SXM4-80GB", "guaranteed": "1"})
    assert TeamQuota.objects.filter(gpu_model="A100-SXM4-80GB").exists()


def test_a_wrong_quota_says_so_at_its_field(admin_browser: Client, team: Team) -> None:
    sent = {"guaranteed": "1", "lending_limit": "2"}
    answer = admin_browser.post(f"/teams/{team.pk}/quota/", sent)
    assert answer.status_code == 400
    assert "cannot exceed what is guaranteed" in answer.content.decode()
    assert admin_browser.post(f"/teams/{team.pk}/quota/", {"guaranteed": "-1"}).status_code == 400
    assert not TeamQuota.objects.exists()


def test_limits_of_everybody_and_of_one_person(admin_browser: Client) -> None:
    bob = world.user("bob")
    admin_browser.post("/users/limits/", {"running_jobs": "3", "max_class": "0"})
    page = admin_browser.get(f"/users/{bob.pk}/").content.decode()
    assert "At most 3 jobs and any number of GPUs at a time" in page
    assert "These are the limits of everybody" in page
    sent = {"gpus": "4", "gpu_hours_month": "100", "max_class": "1", "max_run_s": "1.5"}
    assert admin_browser.post(f"/users/{bob.pk}/limit/", sent).status_code == 302
    client = Client()
    client.force_login(bob)
    own = client.get("/settings/").content.decode()
    assert "at most 4 GPUs at a time; 100 GPU-hours a month; each job may run for 1 h 30 min" in own
    assert "the highest priority class is high" in own
    assert admin_browser.post(f"/users/{bob.pk}/limit/", {"gpus": "x", "max_class": "1"}).status_code == 400
    assert admin_browser.post(f"/users/{bob.pk}/share/", {"weight": "x"}).status_code == 400
    admin_browser.post(f"/users/{bob.pk}/share/", {"weight": "3"})
    assert "Fair share: weight 3," in admin_browser.get(f"/users/{bob.pk}/").content.decode()
    admin_browser.post(f"/users/{bob.pk}/limit/", {"remove": "1"})
    assert not PersonLimit.objects.filter(user=bob).exists()


def test_the_form_offers_the_classes_that_a_person_may_give(
    browser: Client, person: User, data_file: object
) -> None:
    world.fake_node()
    offered = browser.get("/jobs/new/").context["form"].fields["priority"].choices
    assert [word for _, word in offered] == ["normal", "low"]
    file = str(getattr(data_file, "pk", ""))
    sent = {"model": "builtin/tiny-llama", "training_file": file, "priority": "low", "preemptible": "false"}
    sent["max_run_s"] = "2.5"
    assert browser.post("/jobs/new/", sent).status_code == 302
    job = Job.objects.get()
    assert (job.priority, job.preemptible, job.max_run_s) == (-1, False, 9000)
    shown = browser.get(f"/jobs/{job.pk}/").content.decode()
    assert "never stopped for others" in shown
    assert "2 h 30 min <small>of running</small>" in shown
    clone = browser.get("/jobs/new/", {"from": job.pk}).context["form"]
    assert (clone["priority"].value(), clone["preemptible"].value()) == ("low", "false")
    assert clone["max_run_s"].value() == 2.5
    assert browser.post("/jobs/new/", {**sent, "priority": "urgent"}).status_code == 400
    wrong = browser.post("/jobs/new/", {**sent, "max_run_s": "0", "budget": "1e13"}).content.decode()
    assert "Choose at least 1 second, which is 0.0003 hours." in wrong
    assert "must be an amount above 0, at most 1,000,000,000,000" in wrong


def test_a_jobs_class_is_changed_on_its_page(browser: Client, person: User) -> None:
    job = world.job(person)
    page = f"/jobs/{job.pk}/"
    assert "Priority class" in browser.get(page, {"tab": "change"}).content.decode()
    assert browser.post(f"{page}change/", {"priority": "low"}).status_code == 302
    job.refresh_from_db()
    assert job.priority == -1
    wrong = browser.post(f"{page}change/", {"priority": "urgent"})
    assert wrong.status_code == 400
    assert "is not one of the available choices" in wrong.content.decode()
    assert "low" in browser.get(page).content.decode()


def test_a_member_sees_that_others_may_change_a_job(browser: Client, person: User, team: Team) -> None:
    job = world.job(world.user("carol"), team=team)
    page = browser.get(f"/jobs/{job.pk}/", {"tab": "change"}).content.decode()
    assert "a lead of its team and administrators may change it" in page
    Membership.objects.filter(user=person).update(role=Role.LEAD)
    assert "Priority class" in browser.get(f"/jobs/{job.pk}/", {"tab": "change"}).content.decode()


def test_an_administrator_holds_and_releases_a_job_on_its_page(admin_browser: Client) -> None:
    job = world.job(world.user("carol"))
    page = f"/jobs/{job.pk}/"
    assert admin_browser.post(f"{page}hold/", {"note": "Ask me first."}).status_code == 302
    shown = admin_browser.get(page, {"tab": "change"}).content.decode()
    assert "Ask me first." in shown
    assert "Release" in shown
    assert admin_browser.post(f"{page}hold/", {"note": "x" * 201}).status_code == 400
    admin_browser.post(f"{page}release/")
    assert admin_browser.post(f"{page}front/", {"note": "x" * 201}).status_code == 400
    assert "to the front</a>" in admin_browser.get("/queue/").content.decode()
    assert admin_browser.post(f"{page}front/", {"note": "A deadline."}).status_code == 302
    assert "Move back" in admin_browser.get(page, {"tab": "change"}).content.decode()
    assert "moved to the front" in admin_browser.get("/queue/").content.decode()
    admin_browser.post(f"{page}back/")
    job.refresh_from_db()
    assert (job.held_at, job.held_note, job.front_at) == (None, "", None)
