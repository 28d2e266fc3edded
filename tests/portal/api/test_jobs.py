"""Jobs through REST: from two values to a finished attempt."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries
from rest_framework.serializers import ModelSerializer, Serializer
from rest_framework.test import APIClient

from knowledge.models import Execution
from portal.accounts.models import Team, User
from portal.web.templatetags.portal_format import in_own_time
from scheduler.loop.tick import tick
from scheduler.models import Job
from tests.harness import fake_node, world

Body = Callable[..., dict[str, object]]


def submit(api: APIClient, body: dict[str, object], **headers: str) -> Any:
    return api.post("/api/jobs/", body, format="json", headers=headers)


def test_two_values_make_a_job_with_every_parameter_explained(api: APIClient, body: Body) -> None:
    answer = submit(api, body())
    assert answer.status_code == 201, answer.content
    job = answer.json()
    assert job["state"] == job["internal_state"] == "queued"
    assert job["params"]["learning_rate"]["by"] in ("default", "recommended")
    assert all(choice["reason"] for choice in job["params"].values())


def test_what_the_user_fixed_is_kept_and_marked_as_theirs(api: APIClient, body: Body) -> None:
    job = submit(api, body(params={"max_steps": 3, "lora_r": 4}, name="mine", retries=1)).json()
    assert job["params"]["lora_r"] == {**job["params"]["lora_r"], "value": 4, "by": "user"}
    assert (job["name"], job["retries"]) == ("mine", 1)


def test_a_job_runs_and_its_page_compares_promise_and_actual(api: APIClient, body: Body) -> None:
    node = world.fake_node(name="gpu-box")
    job_id = submit(api, body(params={"max_steps": 3, "target_modules": "attention"})).json()["id"]
    assert tick().started == 1
    order = node.take_up()
    assert order.spec is not None
    assert order.spec.params["target_modules"] == "attention"
    node.run(order, fake_node.step(3, loss=1.25))
    running = api.get(f"/api/jobs/{job_id}/").json()
    assert running["state"] == "running"
    assert running["progress"]["loss"] == 1.25
    node.upload(order, "adapter/model.bin", b"weights")
    node.end(order, "succeeded", fake_node.result(first_loss=2.0))
    done = api.get(f"/api/jobs/{job_id}/?include=attempts").json()
    attempt = done["attempts"][-1]
    assert (done["state"], attempt["outcome"], attempt["number"]) == ("succeeded", "succeeded", 1)
    assert attempt["nodes"][0]["node"] == "gpu-box"
    assert attempt["promise"].keys() >= {"duration_s", "tokens_per_second", "peak_memory_bytes", "cost"}
    assert attempt["actual"]["tokens_per_second"] == 1000.0
    assert Execution.objects.get().config.target_modules == "attention"
    assert attempt["actual"]["duration_s"] >= 0
    assert [metric["step"] for metric in api.get(f"/api/jobs/{job_id}/metrics/").json()["data"]] == [3]
    kinds = [event["new"] for event in api.get(f"/api/jobs/{job_id}/events/").json()["data"]]
    assert kinds[0] == "queued"
    assert kinds[-1] == "succeeded"
    files = api.get(f"/api/jobs/{job_id}/artifacts/").json()["data"]
    assert [file["path"] for file in files] == ["adapter/model.bin"]
    download = api.get(f"/api/jobs/{job_id}/artifacts/adapter/model.bin")
    assert b"".join(download.streaming_content) == b"weights"
    assert download["Content-Disposition"].startswith("attachment")


def test_a_waiting_job_says_why(api: APIClient, body: Body) -> None:
    job_id = submit(api, body()).json()["id"]
    tick()
    wait = api.get(f"/api/jobs/{job_id}/").json()["wait"]
    assert wait["code"]
    assert wait["text"]


def test_a_job_that_no_node_takes_says_who_declined_it_and_why(
    api: APIClient, body: Body, browser: Client
) -> None:
    node = world.fake_node(name="gpu-box")
    job_id = submit(api, body()).json()["id"]
    tick()
    node.end(node.take_up(), "declined", reason="disk full: 1,000 bytes are free")
    tick()
    job = api.get(f"/api/jobs/{job_id}/").json()
    assert (job["state"], job["wait"]["code"]) == ("queued", "declined")
    assert job["wait"]["text"].startswith(
        "No ready node accepts it: gpu-box declined it and is asked again at"
    )
    assert "disk full: 1,000 bytes are free" in job["wait"]["text"]
    page = browser.get(f"/jobs/{job_id}/live/").content.decode()
    assert in_own_time(job["wait"]["text"]) in page


def test_logs_are_read_in_pieces(api: APIClient, body: Body) -> None:
    node = world.fake_node()
    job_id = submit(api, body()).json()["id"]
    tick()
    order = node.take_up()
    node.run(order, {"kind": "log", "body": {"text": "hello "}}, {"kind": "log", "body": {"text": "world"}})
    first = api.get(f"/api/jobs/{job_id}/logs/", {"limit": 8}).json()
    second = api.get(f"/api/jobs/{job_id}/logs/", {"offset": first["next_offset"]}).json()
    assert (first["text"], second["text"]) == ("hello wo", "rld")


def test_the_same_key_and_body_give_the_same_job(api: APIClient, body: Body) -> None:
    first = submit(api, body(), **{"Idempotency-Key": "k1"})
    again = submit(api, body(), **{"Idempotency-Key": "k1"})
    assert first.json()["id"] == again.json()["id"]
    assert Job.objects.count() == 1


def test_the_same_key_with_another_body_is_refused_without_effect(api: APIClient, body: Body) -> None:
    submit(api, body(), **{"Idempotency-Key": "k1"})
    answer = submit(api, body(name="other"), **{"Idempotency-Key": "k1"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "key_reused")
    assert Job.objects.count() == 1


def test_a_refused_body_does_not_use_its_key_up(api: APIClient, body: Body) -> None:
    assert submit(api, body(retries=11), **{"Idempotency-Key": "k1"}).status_code == 400
    assert submit(api, body(), **{"Idempotency-Key": "k1"}).status_code == 201


@pytest.mark.parametrize("key", ["", "x" * 201, "a\x07b"])
def test_an_unusable_key_is_refused(api: APIClient, body: Body, key: str) -> None:
    answer = submit(api, body(), **{"Idempotency-Key": key})
    assert answer.status_code == 400
    assert "Idempotency-Key" in answer.json()["error"]["fields"]


def test_verbs_follow_the_state_table(api: APIClient, body: Body) -> None:
    job_id = submit(api, body()).json()["id"]
    verb = lambda name: api.post(f"/api/jobs/{job_id}/{name}/")  # noqa: E731
    assert verb("pause").json()["state"] == "paused"
    assert verb("resume").json()["state"] == "queued"
    assert verb("cancel").json()["state"] == "cancelled"
    assert verb("cancel").status_code == 200
    refused = verb("resume")
    assert refused.status_code == 409
    assert refused.json()["error"]["state"] == "cancelled"


def test_a_verb_on_what_is_so_already_changes_nothing(
    api: APIClient, admin_api: APIClient, body: Body
) -> None:
    """While the job waits, and while it runs."""
    node = world.fake_node(slots=1)
    job = f"/api/jobs/{submit(api, body()).json()['id']}/"

    def twice(name: str, **sent: str) -> tuple[str, str]:
        first = admin_api.post(f"{job}{name}/", sent, format="json").json()
        again = admin_api.post(f"{job}{name}/", sent, format="json")
        assert (again.status_code, again.json()["version"]) == (200, first["version"]), name
        return first["state"], first["internal_state"]

    for name in ("resume", "hold", "release", "preempt"):
        assert twice(name)[0] == "queued"
    assert (twice("pause")[0], twice("resume")[0]) == ("paused", "queued")
    tick()
    node.run(node.take_up(), fake_node.step(1))
    assert twice("resume") == ("running", "running")
    assert twice("pause") == ("pausing", "stopping")
    assert twice("cancel", reason="Enough.") == ("cancelled", "stopping")
    assert api.get(f"{job}events/").json()["data"][-1]["reason"] == "Enough."


def test_a_job_tells_whose_it_is_and_which_token_submitted_it(
    api: APIClient, body: Body, person: User, browser: Client
) -> None:
    made = submit(api, body(), **{"Idempotency-Key": "once"})
    job = made.json()
    assert made["Location"] == f"/api/jobs/{job['id']}/"
    assert "Idempotency-Replayed" not in made
    again = submit(api, body(), **{"Idempotency-Key": "once"})
    assert (again["Location"], again["Idempotency-Replayed"]) == (made["Location"], "true")
    for told in (job, api.get("/api/jobs/").json()["data"][0], api.get(made["Location"]).json()):
        assert told["owner"] == {"id": f"user-{person.pk}", "name": "ada"}
        assert (told["submitted_by_token"], told["team"], told["ended_at"]) == ("test", None, None)
        assert told["created_at"] == job["created_at"]
    form = {"model": "builtin/tiny-llama", "training_file": body()["training_file"]}
    assert browser.post("/jobs/new/", form).status_code == 302
    assert api.get("/api/jobs/").json()["data"][0]["submitted_by_token"] is None
    array = api.post("/api/arrays/", body(values=[{"seed": 1}, {"seed": 2}]), format="json")
    assert array["Location"] == f"/api/arrays/{array.json()['id']}/"
    assert {one["submitted_by_token"] for one in array.json()["jobs"]} == {"test"}
    assert array.json()["owner"]["name"] == "ada"


def test_several_jobs_are_cancelled_and_the_end_of_each_is_told(
    api: APIClient, stranger: APIClient, body: Body
) -> None:
    node = world.fake_node(slots=1)
    runs, waits, ended = (submit(api, body()).json()["id"] for _ in range(3))
    tick()
    node.run(node.take_up(), fake_node.step(1))
    Job.objects.filter(pk=ended).update(state="failed")
    asked = {"ids": [waits, runs, ended, "ftjob-0", waits], "reason": "The data were wrong."}
    cancel = lambda client, sent: client.post("/api/jobs/cancel/", sent, format="json")  # noqa: E731
    foreign = cancel(stranger, asked).json()
    assert {one["outcome"] for one in foreign["data"]} == {"not_found"}
    answer = cancel(api, asked).json()
    assert [(one["id"], one["outcome"], one["state"]) for one in answer["data"]] == [
        (waits, "cancelled", "cancelled"), (runs, "stopping", "cancelled"), (ended, "ended", "failed"),
        ("ftjob-0", "not_found", None),
    ]  # fmt: skip
    assert (answer["cancelled"], answer["stopping"]) == (1, 1)
    assert cancel(api, asked).json()["cancelled"] == 0
    reasons = {api.get(f"/api/jobs/{one}/events/").json()["data"][-1]["reason"] for one in (waits, runs)}
    assert reasons == {"The data were wrong."}
    many: dict[str, object] = {"ids": ["x"] * 101}
    for wrong, field in (
        ({"ids": []}, "ids"),
        (many, "ids"),
        ({"ids": [1]}, "ids.0"),
        ({**asked, "why": "?"}, "why"),
    ):
        refused = cancel(api, wrong)
        assert (refused.status_code, list(refused.json()["error"]["fields"])) == (400, [field])
    refused = api.post(f"/api/jobs/{waits}/cancel/", {"because": "?"}, format="json")
    assert (refused.status_code, list(refused.json()["error"]["fields"])) == (400, ["because"])


def test_cancelling_a_finished_job_says_that_it_finished(api: APIClient, body: Body) -> None:
    job_id = submit(api, body()).json()["id"]
    Job.objects.update(state="succeeded")
    answer = api.post(f"/api/jobs/{job_id}/cancel/")
    assert (answer.status_code, answer.json()["error"]["state"]) == (409, "succeeded")


def test_lists_come_in_pages_newest_first(api: APIClient, body: Body) -> None:
    ids = [submit(api, body()).json()["id"] for _ in range(3)]
    first = api.get("/api/jobs/", {"limit": 2}).json()
    assert [job["id"] for job in first["data"]] == [ids[2], ids[1]]
    assert (first["has_more"], first["total"]) == (True, 3)
    rest = api.get("/api/jobs/", {"after": first["next"]}).json()
    assert [job["id"] for job in rest["data"]] == [ids[0]]
    assert rest["has_more"] is False


def test_a_list_goes_on_after_a_job_that_left_it(api: APIClient, body: Body) -> None:
    """One that was cancelled, or is gone, by REST and by the page."""
    ids = [submit(api, body()).json()["id"] for _ in range(4)]
    first = api.get("/api/jobs/", {"state": "queued", "limit": 2}).json()
    api.post(f"/api/jobs/{first['next']}/cancel/")
    goes_on = lambda: api.get("/api/jobs/", {"state": "queued", "after": first["next"]}).json()  # noqa: E731
    assert [job["id"] for job in goes_on()["data"]] == [ids[1], ids[0]]
    Job.objects.filter(pk=first["next"]).delete()
    assert [job["id"] for job in goes_on()["data"]] == [ids[1], ids[0]]


def test_lists_filter_by_shown_state_and_model(api: APIClient, body: Body, person: User) -> None:
    ids = [submit(api, body()).json()["id"] for _ in range(3)]
    Job.objects.filter(pk=ids[0]).update(state="assigned")
    Job.objects.filter(pk=ids[1]).update(state="stopping", stop_for="cancel")
    found = lambda **query: [job["id"] for job in api.get("/api/jobs/", query).json()["data"]]  # noqa: E731
    assert found(state="queued") == [ids[2], ids[0]]
    assert found(state="cancelled") == [ids[1]]
    assert found(model="elsewhere") == []


def test_a_list_costs_the_same_queries_however_long(
    api: APIClient, body: Body, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(5):
        submit(api, body())
    with django_assert_max_num_queries(6):
        assert len(api.get("/api/jobs/").json()["data"]) == 5


def test_a_list_makes_its_serializers_once(
    api: APIClient, body: Body, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their fields took eight milliseconds a row."""
    made: list[str] = []
    get_fields, fields_of_model = Serializer.get_fields, ModelSerializer.get_fields

    def counted(self: Serializer[Any]) -> Any:
        made.append(type(self).__name__)
        return get_fields(self)

    def counted_of_model(self: ModelSerializer[Any]) -> Any:
        made.append(type(self).__name__)
        return fields_of_model(self)

    monkeypatch.setattr(Serializer, "get_fields", counted)
    monkeypatch.setattr(ModelSerializer, "get_fields", counted_of_model)
    counts = []
    for _ in range(2):
        submit(api, body())
        submit(api, body())
        made.clear()
        assert api.get("/api/jobs/?limit=100").status_code == 200
        counts.append(len(made))
    assert counts[0] == counts[1]


def test_a_team_sees_its_jobs(api: APIClient, person: User) -> None:
    team = Team.objects.create(name="vision")
    mate = world.user("mate")
    team.members.add(person, mate)
    shared = world.job(mate, team=team)
    world.job(mate)
    assert [job["id"] for job in api.get("/api/jobs/").json()["data"]] == [shared.pk]


def test_a_job_may_belong_to_one_of_its_owners_teams(api: APIClient, body: Body, person: User) -> None:
    team = Team.objects.create(name="vision")
    team.members.add(person)
    told = {"id": f"team-{team.pk}", "name": "vision"}
    for named in ("vision", told["id"]):
        assert submit(api, body(team=named)).json()["team"] == told
    assert set(Job.objects.values_list("team", flat=True)) == {team.pk}
    assert [row["team"] for row in api.get("/api/jobs/").json()["data"]] == [told, told]


@pytest.mark.parametrize("team", ["ethics", "nobody's", 7])
def test_a_team_of_others_is_refused_like_one_that_does_not_exist(
    team: object, api: APIClient, body: Body
) -> None:
    Team.objects.create(name="ethics").members.add(world.user("mate"))
    answer = submit(api, body(team=team))
    assert answer.status_code == 400
    assert list(answer.json()["error"]["fields"]) == ["team"]
    assert not Job.objects.exists()


def test_a_recommendation_makes_no_job(api: APIClient, body: Body) -> None:
    world.fake_node()
    answer = api.post("/api/recommendations/", body(), format="json")
    assert answer.status_code == 200, answer.content
    recommendation = answer.json()
    assert recommendation["params"]["learning_rate"]["reason"]
    assert recommendation["options"][0]["duration_s"]["value"] > 0
    assert not Job.objects.exists()


def test_a_deadline_in_the_past_is_refused(api: APIClient, body: Body) -> None:
    past = (timezone.now() - timedelta(hours=1)).isoformat()
    answer = submit(api, body(deadline_at=past))
    assert (answer.status_code, list(answer.json()["error"]["fields"])) == (400, ["deadline_at"])


def test_a_deadline_needs_a_time_zone_and_means_its_moment(api: APIClient, body: Body) -> None:
    year = timezone.now().year + 2
    refused = submit(api, body(deadline_at=f"{year}-01-01T00:00:00")).json()["error"]
    assert "end it with Z for UTC" in refused["fields"]["deadline_at"]
    made = submit(api, body(deadline_at=f"{year}-01-01T00:00:00+02:00")).json()
    assert made["deadline_at"].startswith(f"{year - 1}-12-31T22:00:00")


@pytest.mark.parametrize(("goal", "field"), [("deadline", "deadline_at"), ("budget", "budget")])
def test_a_goal_with_a_limit_asks_for_the_limit(api: APIClient, body: Body, goal: str, field: str) -> None:
    limits = {"deadline_at": f"{timezone.now().year + 2}-01-01T00:00:00Z", "budget": 7.5}
    for path in ("/api/jobs/", "/api/recommendations/"):
        refused = api.post(path, body(goal=goal), format="json")
        assert (refused.status_code, list(refused.json()["error"]["fields"])) == (400, [field])
    made = api.post("/api/jobs/", body(goal=goal, **{field: limits[field]}), format="json")
    assert made.status_code == 201, made.content
    assert (made.json()["goal"], made.json()[field]) == (goal, limits[field])
    assert api.post("/api/recommendations/", body(goal=goal, **limits), format="json").status_code == 200


def test_the_schema_names_the_goals(api: APIClient) -> None:
    schema = api.get("/api/schema/?format=json").json()["components"]["schemas"]
    goals = {"balanced", "fastest", "cheapest", "deadline", "budget"}
    assert any(goals == set(part.get("enum", ())) for part in schema.values())


def test_a_job_that_stops_already_says_so_in_the_words_people_see(api: APIClient, person: User) -> None:
    job = world.placed_job(world.fake_node(), owner=person)
    assert api.post(f"/api/jobs/{job.pk}/pause/").json()["state"] == "pausing"
    resumed = api.post(f"/api/jobs/{job.pk}/resume/")
    assert (resumed.status_code, resumed.json()["error"]["state"]) == (409, "pausing")
    assert resumed.json()["error"]["message"] == "Only a paused job can be resumed; this one is pausing."
    api.post(f"/api/jobs/{job.pk}/cancel/")
    paused = api.post(f"/api/jobs/{job.pk}/pause/").json()["error"]
    assert paused["message"] == "The job is already being stopped (cancel); check again in a moment."


def test_one_answer_names_all_that_is_wrong_and_the_nearest_names(api: APIClient, body: Body) -> None:
    params = {"learning_rat": 1, "xyzzy": 1, "plugh": 1, "epochs": "many"}
    fields = submit(api, {"model": "nope", "training_file": "file-0", "params": params}).json()["error"][
        "fields"
    ]
    assert fields["params.learning_rat"] == "is not a parameter; did you mean learning_rate?"
    assert fields["params.xyzzy"].startswith("is not a parameter; known are tuning, ")
    assert fields["params.plugh"] == "is not a parameter"
    assert fields.keys() == {"model", "training_file", *(f"params.{name}" for name in params)}
    past = (timezone.now() - timedelta(hours=1)).isoformat()
    wrong = body(params={"seed": -1}, deadline_at=past, retries=99, goall="fastest", team="nobody's")
    for address in ("/api/jobs/", "/api/recommendations/", "/api/recommendations/start/"):
        fields = api.post(address, wrong, format="json").json()["error"]["fields"]
        assert fields.keys() == {"params.seed", "retries", "goall", "team"}, address
        assert fields["goall"] == "is not known here; did you mean goal?"
    fields = submit(api, body(params={"seed": -1}, deadline_at=past)).json()["error"]["fields"]
    assert fields.keys() == {"params.seed", "deadline_at"}
    assert not Job.objects.exists()
