"""What a program written for OpenAI meets: objects, lists, refusals, repetitions."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from rest_framework.test import APIClient

from portal.accounts.models import Membership, Team, User
from scheduler.models import DatasetFile, Job
from tests.harness import world
from tests.harness.fake_node import result, step
from tests.portal.conftest import Program

pytestmark = pytest.mark.django_db
MODEL = "builtin/tiny-llama"
JOBS = "/v1/fine_tuning/jobs"
PREFIXES = ("/v1", "/openai/v1", "/openai")
ROW = b'{"prompt": "1 + 1?", "completion": "2"}\n'


@pytest.fixture
def job_body(data_file: DatasetFile) -> dict[str, Any]:
    return {"model": MODEL, "training_file": data_file.pk}


def send(api: APIClient, address: str, body: Any = None, **headers: str) -> Any:
    return api.post(address, body, format="json", headers=headers)


def upload(api: APIClient, content: bytes = ROW, **fields: str) -> Any:
    sent = {"purpose": "fine-tune", **fields, "file": SimpleUploadedFile("rows.jsonl", content)}
    return api.post("/v1/files", sent, format="multipart")


def test_a_job_has_every_key_of_the_contract_and_auto_is_resolved(
    api: APIClient, job_body: dict[str, Any]
) -> None:
    auto = {"n_epochs": "auto", "batch_size": "auto", "learning_rate_multiplier": "auto"}
    method = {"type": "supervised", "supervised": {"hyperparameters": auto}}
    more = {"method": method, "hyperparameters": {}, "suffix": "my run", "metadata": {"a": "b"}, "seed": 7}
    job = send(api, JOBS, {**job_body, **more, "portal": {"goal": "fastest", "params": {"lora_r": 4}}}).json()
    required = "created_at error finished_at fine_tuned_model hyperparameters id model object organization_id"
    required += " result_files status trained_tokens training_file validation_file seed method metadata"
    assert set(required.split()) <= set(job)
    assert (job["object"], job["status"], job["seed"]) == ("fine_tuning.job", "queued", 7)
    assert isinstance(job["created_at"], int)
    assert job["hyperparameters"] == {"n_epochs": 3, "batch_size": 8, "learning_rate_multiplier": 1.0}
    assert job["portal"]["base_learning_rate"] == 2e-3
    row = Job.objects.get()
    assert (row.name, row.goal, row.params["lora_r"]) == ("my run", "fastest", 4)
    assert api.get(f"{JOBS}/{row.pk}").json()["metadata"] == {"a": "b"}
    explained = api.get(f"{JOBS}/{row.pk}/explanation").json()
    assert explained["portal"]["params"]["learning_rate"]["reason"]


@pytest.mark.parametrize("place", ["hyperparameters", "method"])
def test_a_multiplier_multiplies_the_published_base_rate(
    api: APIClient, job_body: dict[str, Any], place: str
) -> None:
    values = {"learning_rate_multiplier": 0.5, "n_epochs": 2, "batch_size": 4}
    method = {"type": "supervised", "supervised": {"hyperparameters": values}}
    sent = {"hyperparameters": values} if place == "hyperparameters" else {"method": method}
    job = send(api, JOBS, {**job_body, **sent}).json()
    assert job["hyperparameters"] == values
    assert job["method"]["supervised"]["hyperparameters"] == values
    base = api.get(f"/v1/models/{MODEL}").json()["portal"]["base_learning_rates"]["lora"]
    assert Job.objects.get().params["learning_rate"] == pytest.approx(0.5 * base)


WRONG: dict[str, tuple[Any, int, str | None, str]] = {
    "no model": ({"model": None}, 400, "model", "invalid_value"),
    "unknown model": ({"model": "gpt-4o-mini-2024-07-18"}, 404, "model", "model_not_found"),
    "unknown builtin": ({"model": "builtin/none"}, 404, "model", "model_not_found"),
    "fine-tuned": ({"model": "ft:builtin/tiny-llama:a:b:" + "0" * 24}, 400, "model", "unsupported_model"),
    "no file": ({"training_file": "file-none"}, 404, "training_file", "not_found"),
    "no second file": ({"validation_file": "file-none"}, 404, "validation_file", "not_found"),
    "dpo": ({"method": {"type": "dpo", "dpo": {}}}, 400, "method.type", "unsupported_method"),
    "graded": (
        {"method": {"type": "reinforcement", "reinforcement": {"grader": {}}}},
        *(400, "method.type", "unsupported_method"),
    ),
    "wandb": ({"integrations": [{"type": "wandb"}]}, 400, "integrations", "unsupported_integration"),
    "epochs": ({"hyperparameters": {"n_epochs": "3"}}, 400, "hyperparameters.n_epochs", "invalid_value"),
    "none": ({"hyperparameters": {"n_epochs": 0}}, 400, "hyperparameters.n_epochs", "invalid_value"),
    "batch": ({"hyperparameters": {"batch_size": 1.5}}, 400, "hyperparameters.batch_size", "invalid_value"),
    "rate": (
        {"hyperparameters": {"learning_rate_multiplier": 1e9}},
        *(400, "hyperparameters.learning_rate_multiplier", "invalid_value"),
    ),
    "twice": (
        {
            "hyperparameters": {"n_epochs": 2},
            "method": {"type": "supervised", "supervised": {"hyperparameters": {"n_epochs": 3}}},
        },
        *(400, "hyperparameters.n_epochs", "invalid_value"),
    ),
    "seed": ({"seed": -1}, 400, "seed", "invalid_value"),
    "suffix": ({"suffix": "x" * 65}, 400, "suffix", "invalid_value"),
    "metadata": ({"metadata": {"k": 1}}, 400, "metadata", "invalid_value"),
    "portal": ({"portal": {"gaol": "fastest"}}, 400, "portal.gaol", "unknown_parameter"),
    "goal": ({"portal": {"goal": "best"}}, 400, "portal.goal", "invalid_value"),
    "param": ({"portal": {"params": {"lora_r": 0}}}, 400, "portal.params.lora_r", "invalid_value"),
    "typing error": ({"traning_file": "x"}, 400, "traning_file", "invalid_value"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_job_is_refused_by_field_and_none_is_made(
    api: APIClient, job_body: dict[str, Any], case: str
) -> None:
    wrong, status, param, code = WRONG[case]
    answer = send(api, JOBS, {**job_body, **wrong})
    error = answer.json()["error"]
    assert (answer.status_code, error["param"], error["code"]) == (status, param, code), error
    assert error["type"] == "invalid_request_error"
    assert error["message"]
    assert not Job.objects.exists()
    estimate = send(api, "/v1/fine_tuning/estimates", {**job_body, **wrong})
    assert (estimate.status_code, estimate.json()["error"]["param"]) == (status, param)


def test_missing_fields_are_told_as_such(api: APIClient) -> None:
    error = send(api, JOBS, {"model": MODEL}).json()["error"]
    assert (error["param"], error["code"]) == ("training_file", "missing_required_parameter")
    assert send(api, JOBS, [1]).json()["error"]["type"] == "invalid_request_error"


def test_an_estimate_says_what_the_job_would_be_and_stores_nothing(
    api: APIClient, job_body: dict[str, Any]
) -> None:
    found = send(api, "/v1/fine_tuning/estimates", {**job_body, "trainingType": "Standard"}).json()
    assert found["hyperparameters"]["learning_rate_multiplier"] == 1.0
    assert found["portal"]["params"]["epochs"]["reason"]
    assert not Job.objects.exists()


@pytest.mark.parametrize("prefix", PREFIXES)
def test_everything_under_a_prefix_is_told_in_the_form_of_the_contract(api: APIClient, prefix: str) -> None:
    """Unknown paths, methods, types and sizes; never a redirect, never a page."""
    stranger = Client(raise_request_exception=False)
    wrong_key = APIClient(raise_request_exception=False)
    wrong_key.credentials(HTTP_AUTHORIZATION="Bearer ft-none")
    jobs = f"{prefix}/fine_tuning/jobs"
    asked = {
        404: [
            *(api.get(f"{prefix}/{path}") for path in ("", "chat/completions", "models/none", "files/x")),
            *(api.post(f"{prefix}/{path}") for path in ("fine_tuning/alpha/graders/run", "files/", "x")),
            stranger.get(f"{prefix}/nothing"),
            stranger.post(jobs + "/"),
        ],
        405: [api.put(jobs), api.delete(jobs), api.patch(f"{prefix}/models"), api.post(f"{jobs}/x/events")],
        401: [stranger.get(jobs), wrong_key.get(jobs), stranger.post(f"{prefix}/files")],
        400: [
            api.get(f"{jobs}?limit=0"), api.get(f"{jobs}?after=ftjob-none"), api.get(f"{jobs}?nothing=1"),
            api.post(jobs, "{", content_type="application/json"),
            api.get(f"{jobs}?metadata=x"),
        ],
        415: [api.post(jobs, "a=b", content_type="application/x-www-form-urlencoded")],
        413: [api.post(jobs, b"[" + b"1," * 700_000 + b"1]", content_type="application/json")],
    }  # fmt: skip
    for status, answers in asked.items():
        for answer in answers:
            error = answer.json()["error"]
            assert answer.status_code == status, (answer.request["PATH_INFO"], answer.content)
            assert set(error) == {"message", "type", "param", "code"}
            assert error["message"]
            assert error["code"]
            assert answer["X-Request-ID"]
    assert asked[401][0]["WWW-Authenticate"].startswith("Bearer")
    assert asked[401][1].json()["error"]["code"] == "invalid_api_key"
    assert api.get("/v1").status_code == api.get("/openai").status_code == 404


def test_the_page_of_tokens_shows_the_two_lines(browser: Client) -> None:
    page = browser.get("/tokens/").content.decode()
    assert "OPENAI_BASE_URL=http://testserver/v1" in page


def test_pages_of_a_browser_have_no_part_in_it(browser: Client) -> None:
    assert browser.get("/v1/models").status_code == 401


def test_without_tls_programs_are_refused_where_pages_are_sent_on(api: APIClient, settings: Any) -> None:
    settings.SECURE_SSL_REDIRECT = True
    for address in (JOBS, "/openai/files", "/api/jobs/"):
        answer = api.post(address, {}, format="json")
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "https_required")
    assert api.get("/jobs/").status_code == 301


def test_keys_in_the_header_of_azure_and_its_version_are_taken(
    api: Program, job_body: dict[str, Any], person: User
) -> None:
    azure = APIClient()
    azure.credentials(HTTP_API_KEY=api.authorization.removeprefix("Bearer "))
    made = send(azure, "/openai/fine_tuning/jobs?api-version=2024-10-21", job_body)
    assert made.status_code == 200, made.content
    listed = azure.get("/openai/v1/fine_tuning/jobs?api-version=preview&limit=5").json()
    assert [job["id"] for job in listed["data"]] == [made.json()["id"]]
    assert azure.get("/api/jobs/").status_code == 401


def test_headers_for_a_tenant_name_a_team_that_is_charged(
    api: APIClient, job_body: dict[str, Any], person: User
) -> None:
    team = Team.objects.create(name="blue")
    refused = send(api, JOBS, job_body, **{"OpenAI-Organization": "blue"})
    assert (refused.status_code, refused.json()["error"]["type"]) == (403, "permission_error")
    Membership.objects.create(team=team, user=person)
    for name in ("blue", f"team-{team.pk}"):
        job = send(api, JOBS, job_body, **{"OpenAI-Organization": name, "OpenAI-Project": "blue"}).json()
        assert job["organization_id"] == f"team-{team.pk}"
    assert api.get("/v1/models", headers={"OpenAI-Project": "red"}).status_code == 403


def test_lists_go_on_from_the_last_row_and_find_metadata(api: APIClient, job_body: dict[str, Any]) -> None:
    pairs: list[dict[str, str]] = [{}, {"run": "1", "7": "x"}, {"run": "2", 'od"d': "ä"}, {"run": "1"}]
    ids = [send(api, JOBS, {**job_body, "metadata": one}).json()["id"] for one in pairs]

    def found(query: str) -> list[str]:
        return [job["id"] for job in api.get(f"{JOBS}?{query}").json()["data"]]

    first = api.get(f"{JOBS}?limit=3").json()
    assert (first["object"], first["has_more"]) == ("list", True)
    assert [job["id"] for job in first["data"]] == ids[:0:-1]
    assert found(f"limit=3&after={first['last_id']}") == ids[:1]
    assert found(f"after={ids[0]}") == []
    assert found("metadata[run]=1") == [ids[3], ids[1]]
    assert found("metadata%5Brun%5D=1&metadata%5B7%5D=x") == [ids[1]]
    assert found('metadata[od"d]=ä') == [ids[2]]
    assert found("metadata[none]=1") == []
    assert found("metadata=null") == [ids[0]]


def test_others_see_nothing(api: APIClient, stranger: APIClient, job_body: dict[str, Any]) -> None:
    job = send(api, JOBS, job_body).json()
    file = job["training_file"]
    for path in (f"fine_tuning/jobs/{job['id']}", f"files/{file}", f"files/{file}/content"):
        assert api.get(f"/v1/{path}").status_code == 200
        assert stranger.get(f"/v1/{path}").status_code == 404
    for verb in ("cancel", "pause", "resume"):
        assert stranger.post(f"{JOBS}/{job['id']}/{verb}").status_code == 404
    assert send(stranger, JOBS, job_body).status_code == 404
    assert stranger.get(JOBS).json()["data"] == stranger.get("/v1/files").json()["data"] == []
    assert stranger.get(f"{JOBS}?after={job['id']}").status_code == 400


def test_verbs_need_no_body_and_are_refused_with_400_where_they_make_no_sense(
    api: APIClient, job_body: dict[str, Any]
) -> None:
    job = send(api, JOBS, job_body).json()["id"]

    def act(verb: str) -> Any:
        return api.post(f"{JOBS}/{job}/{verb}", content_type="application/json")

    assert [act(verb).json()["status"] for verb in ("pause", "resume", "cancel")] == [
        "paused", "queued", "cancelled",
    ]  # fmt: skip
    assert isinstance(api.get(f"{JOBS}/{job}").json()["finished_at"], int)
    assert act("cancel").json()["status"] == "cancelled"
    for verb in ("pause", "resume"):
        error = act(verb).json()["error"]
        assert (act(verb).status_code, error["type"]) == (400, "invalid_request_error")


def test_a_job_that_succeeded_leaves_a_model_a_file_of_figures_and_its_story(
    api: APIClient, person: User
) -> None:
    node = world.fake_node()
    job = world.placed_job(node, owner=person, name="my: run")
    order = node.take_up()
    node.run(order, step(1, loss=2.5), step(2, loss=1.5))
    shown = api.get(f"{JOBS}/{job.pk}").json()
    assert (shown["status"], shown["fine_tuned_model"], shown["result_files"]) == ("running", None, [])
    node.save_checkpoint(order, 2)
    (checkpoint,) = api.get(f"{JOBS}/{job.pk}/checkpoints").json()["data"]
    assert checkpoint["fine_tuned_model_checkpoint"].endswith(":ckpt-step-2")
    assert checkpoint["metrics"]["train_loss"] == 1.5
    figures = b"step,loss,eval_loss,tokens_per_s\n1,2.5,,9\n2,1.5,,9\n"
    assert node.upload(order, "output/metrics.csv", figures).status_code == 204
    node.end(order, "succeeded", result())

    shown = api.get(f"{JOBS}/{job.pk}").json()
    assert (shown["status"], shown["error"]) == ("succeeded", None)
    name, (file,) = shown["fine_tuned_model"], shown["result_files"]
    assert name == f"ft:{MODEL}:ada:my-run:{job.pk.removeprefix('ftjob-')}"
    assert name in [model["id"] for model in api.get("/v1/models").json()["data"]]
    assert api.get(f"/v1/models/{name}").json()["portal"]["job"] == job.pk
    content = api.get(f"/v1/files/{file}/content", headers={"Accept": "application/binary"}).content
    assert content == figures.replace(b"eval_loss", b"valid_loss").replace(b",loss", b",train_loss")
    told = api.get(f"/v1/files/{file}").json()
    assert (told["bytes"], told["purpose"], told["status"]) == (
        len(content), "fine-tune-results", "processed",
    )  # fmt: skip
    assert [one["id"] for one in api.get("/v1/files?purpose=fine-tune-results").json()["data"]] == [file]
    both = [one["id"] for one in api.get("/v1/files?limit=1").json()["data"]]
    rest = api.get(f"/v1/files?after={both[0]}").json()["data"]
    assert {*both, *(one["id"] for one in rest)} == {file, job.training_file_id}
    ascending = [one["id"] for one in api.get("/v1/files?order=asc").json()["data"]]
    assert ascending == [rest[0]["id"], both[0]]

    seen, after = list[dict[str, Any]](), ""
    while True:
        page = api.get(f"{JOBS}/{job.pk}/events?limit=2{after}").json()
        seen += page["data"]
        if not page["has_more"]:
            break
        after = f"&after={page['data'][-1]['id']}"
    assert len({event["id"] for event in seen}) == len(seen)
    assert [event["created_at"] for event in seen] == sorted((e["created_at"] for e in seen), reverse=True)
    steps = [event["data"] for event in seen if event["type"] == "metrics"]
    assert {one["step"]: one["train_loss"] for one in steps} == {1: 2.5, 2: 1.5}
    assert "job.succeeded" in [event["data"].get("type") for event in seen]
    final = api.get(f"{JOBS}/{job.pk}/checkpoints").json()["data"][0]
    assert (final["fine_tuned_model_checkpoint"], final["step_number"]) == (name, 2)

    assert api.delete(f"/v1/models/{MODEL}").status_code == 403
    assert api.delete(f"/v1/files/{file}").json() == {"object": "file", "id": file, "deleted": True}
    assert api.get(f"/v1/files/{file}").status_code == 404
    assert api.get(f"{JOBS}/{job.pk}").json()["result_files"] == []


def test_a_model_is_deleted_with_its_files(api: APIClient, person: User, stranger: APIClient) -> None:
    node = world.fake_node()
    job = world.placed_job(node, owner=person)
    order = node.take_up()
    node.upload(order, "output/metrics.csv", b"step,loss\n")
    node.upload(order, "output/adapter.bin", b"x")
    node.end(order, "succeeded", result())
    name = api.get(f"{JOBS}/{job.pk}").json()["fine_tuned_model"]
    assert stranger.delete(f"/v1/models/{name}").status_code == 404
    assert api.delete(f"/v1/models/{name}").json()["deleted"] is True
    assert api.get(f"/v1/models/{name}").json()["error"]["code"] == "model_not_found"
    assert not job.artifacts.exists()


def test_a_failed_job_says_why(api: APIClient, person: User) -> None:
    node = world.fake_node()
    job = world.placed_job(node, owner=person)
    node.end(node.take_up(), "error", reason="bad row 7")
    shown = api.get(f"{JOBS}/{job.pk}").json()
    assert shown["status"] == "failed"
    assert set(shown["error"]) == {"code", "message", "param"}
    assert shown["error"]["code"] == "user_error"


def test_files_are_kept_listed_and_deleted(api: APIClient, job_body: dict[str, Any]) -> None:
    ends = {"expires_after[anchor]": "created_at", "expires_after[seconds]": "3600"}
    file = upload(api, **ends).json()
    assert (file["status"], file["purpose"], file["portal"]["rows"]) == ("processed", "fine-tune", 1)
    assert file["expires_at"] == file["created_at"] + 3600
    assert api.get(f"/v1/files/{file['id']}").json() == file
    content = api.get(f"/v1/files/{file['id']}/content", headers={"Accept": "application/binary"})
    assert b"".join(content.streaming_content) == ROW
    other = job_body["training_file"]
    pages = [api.get("/v1/files?limit=1").json()]
    # As scripts do that clean up while they list.
    assert api.delete(f"/v1/files/{file['id']}").json()["deleted"] is True
    pages.append(api.get(f"/v1/files?limit=1&after={pages[0]['last_id']}").json())
    assert [page["data"][0]["id"] for page in pages] == [file["id"], other]
    send(api, JOBS, job_body)
    needed = api.delete(f"/v1/files/{other}")
    assert (needed.status_code, needed["x-should-retry"]) == (409, "false")


@pytest.mark.parametrize(
    ("content", "fields", "param", "code"),
    [
        (b"{bad", {}, None, "invalid_file"),
        (ROW, {"purpose": "assistants"}, "purpose", "invalid_value"),
        (ROW, {"expires_after[anchor]": "created_at", "expires_after[seconds]": "1"}, "expires_after.seconds",
         "invalid_value"),
        (ROW, {"nothing": "1"}, "nothing", "invalid_value"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused(
    api: APIClient, content: bytes, fields: dict[str, str], param: str | None, code: str
) -> None:
    answer = upload(api, content, **fields)
    error = answer.json()["error"]
    assert (answer.status_code, error["param"], error["code"]) == (400, param, code)
    assert not DatasetFile.objects.exists()


def test_a_full_quota_is_429_once_and_for_all(api: APIClient, settings: Any) -> None:
    settings.STORAGE_QUOTA_BYTES = 10
    begun = {"bytes": 11, "filename": "x", "purpose": "fine-tune", "mime_type": "text/jsonl"}
    for answer in (upload(api), send(api, "/v1/uploads", begun)):
        error = answer.json()["error"]
        assert (answer.status_code, error["code"], error["type"]) == (
            429, "insufficient_quota", "rate_limit_error",
        )  # fmt: skip
        assert answer["x-should-retry"] == "false"
