"""Bad input at the REST interface."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rest_framework.settings import api_settings
from rest_framework.test import APIClient
from rest_framework.throttling import SimpleRateThrottle

from scheduler.models import Job

Body = Callable[..., dict[str, object]]


def post(api: APIClient, raw: str | bytes, content_type: str = "application/json") -> Any:
    return api.post("/api/jobs/", raw, content_type=content_type)


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "{",
        "[]",
        "null",
        '"text"',
        "NaN",
        '{"model": "a", "model": "b"}',
        '{"params": {"seed": 1, "seed": 2}}',
        '{"budget": NaN}',
        '{"budget": Infinity}',
        '{"budget": 1e999}',
        '{"retries": ' + "9" * 5000 + "}",
        '{"name": "\\ud800"}',
        '{"name": "a\\u0000b"}',
        "[" * 100_000 + "]" * 100_000,
        '{"params":' * 50 + "{}" + "}" * 50,
        b"\xff\xfe",
    ],
)
def test_what_is_not_strict_json_is_refused(api: APIClient, raw: str | bytes) -> None:
    answer = post(api, raw)
    assert answer.status_code == 400, answer.content
    assert answer.json()["error"]["message"]
    assert not Job.objects.exists()


def test_another_content_type_is_415(api: APIClient) -> None:
    assert post(api, "model=x", "application/x-www-form-urlencoded").status_code == 415
    assert post(api, "<x/>", "text/xml").status_code == 415


def test_a_refusal_says_what_would_be_taken(api: APIClient) -> None:
    for answer, status, remedy in (
        (APIClient().get("/api/jobs/"), 401, "Authorization: Bearer ft-"),
        (api.put("/api/jobs/"), 405, "GET, POST"),
        (post(api, "model=x", "text/plain"), 415, "as application/json"),
        (api.post("/api/files/", {}, format="json"), 415, "as multipart/form-data"),
        (api.get("/api/jobs/", headers={"Accept": "text/html"}), 406, "application/json"),
        (api.put("/v1/files"), 405, "GET, POST"),
        (api.get("/api/me/", headers={"Host": "elsewhere.example"}), 400, "ALLOWED_HOSTS"),
        (api.get("/v1/models", headers={"Host": "elsewhere.example"}), 400, "ALLOWED_HOSTS"),
    ):
        assert answer.status_code == status, answer.content
        assert remedy in answer.json()["error"]["message"]


def test_no_address_of_programs_is_sent_on_to_another_one(api: APIClient) -> None:
    for path in (
        "/api",
        "/api/jobs",
        "/oauth",
        "/oauth/token",
        "/oauth/device-authorization",
        "/v1",
        "/openai",
    ):
        for answer in (api.get(path), api.post(path, "{}", content_type="application/json")):
            assert answer.status_code == 404, path
            assert answer["Content-Type"] == "application/json"
    assert "/oauth/token/ with the slash" in api.post("/oauth/token").json()["error"]["message"]


def test_a_period_may_end_in_the_first_days_that_there_are(api: APIClient) -> None:
    for path in ("/api/spending/", "/api/failures/"):
        assert api.get(path, {"until": "0001-01-02T00:00:00Z"}).status_code == 200
        assert api.get(path, {"until": "0001-01-01T00:00:00Z"}).status_code == 400


def test_a_body_over_a_megabyte_is_413(api: APIClient) -> None:
    answer = post(api, json.dumps({"name": "x" * 1_000_001}))
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("owner", "eve"),
        ("state", "succeeded"),
        ("model", 7),
        ("model", None),
        ("model", ""),
        ("model", "x" * 301),
        ("model", "no such model"),
        ("training_file", True),
        ("training_file", "file-none"),
        ("training_file", "../../etc/passwd"),
        ("validation_file", "file-none"),
        ("retries", "3"),
        ("retries", True),
        ("retries", 3.0),
        ("retries", -1),
        ("retries", 10**30),
        ("budget", "10"),
        ("budget", True),
        ("budget", -1),
        ("budget", 10**400),
        ("goal", "best"),
        ("recipe", "magic"),
        ("recipe", None),
        ("name", 3),
        ("name", "x" * 201),
        ("deadline_at", "tomorrow"),
        ("deadline_at", "2100-01-01T00:00:00"),  # of which zone?
        ("deadline_at", 5),
        ("params", []),
        ("params", "lora"),
        ("after", "ftjob-none"),
        ("after", [{"job": "ftjob-none"}] * 101),
    ],
)
def test_a_wrong_field_is_named(api: APIClient, body: Body, field: str, value: object) -> None:
    answer = post(api, json.dumps(body(**{field: value})))
    assert answer.status_code == 400, answer.content
    assert list(answer.json()["error"]["fields"]) == [field]
    assert not Job.objects.exists()


def test_a_list_names_the_one_that_is_wrong(api: APIClient, body: Body) -> None:
    answer = post(api, json.dumps(body(after=["ftjob-none"])))
    assert answer.json()["error"]["fields"] == {"after.0": "must be a JSON object"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epochs", "3"),
        ("epochs", True),
        ("epochs", 0),
        ("epochs", 1_000_000),
        ("lora_r", 3.0),
        ("lora_r", True),
        ("tuning", "magic"),
        ("gpu_model", "abacus"),
        ("gradient_checkpointing", 1),
        ("batch", 3),
        ("seed", [1]),
        ("seed", 10**400),
        ("gpu_model", {"a": 1}),
    ],
)
def test_a_wrong_parameter_is_named(api: APIClient, body: Body, name: str, value: object) -> None:
    answer = post(api, json.dumps(body(params={name: value})))
    assert answer.status_code == 400, answer.content
    assert list(answer.json()["error"]["fields"]) == [f"params.{name}"]
    assert not Job.objects.exists()


def test_missing_fields_are_both_named(api: APIClient) -> None:
    assert sorted(post(api, "{}").json()["error"]["fields"]) == ["model", "training_file"]


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=-1",
        "limit=1000000",
        "limit=ten",
        "after=ftjob-none",
        "after=" + "x" * 100,
        "after=%00",
        "order=owner__password",
        "state=stopping",
        "colour=red",
        "limit=1&limit=2",
    ],
)
@pytest.mark.parametrize("path", ["/api/jobs/", "/api/files/", "/api/executions/", "/api/nodes/"])
def test_a_bad_query_is_refused_by_name(api: APIClient, path: str, query: str) -> None:
    answer = api.get(f"{path}?{query}")
    assert answer.status_code == 400, answer.content
    assert list(answer.json()["error"]["fields"]) == [query.split("=")[0]]


@pytest.mark.parametrize(
    "query", ["offset=-1", "limit=0", "limit=10000000", "offset=1e3", f"offset={10**40}"]
)
def test_a_bad_log_range_is_refused(api: APIClient, body: Body, query: str) -> None:
    job_id = api.post("/api/jobs/", body(), format="json").json()["id"]
    assert api.get(f"/api/jobs/{job_id}/logs/?{query}").status_code == 400


def test_too_many_requests_are_429_with_the_time_to_wait(
    api: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        SimpleRateThrottle, "THROTTLE_RATES", {**api_settings.DEFAULT_THROTTLE_RATES, "user": "2/min"}
    )
    answers = [api.get("/api/me/") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert int(answers[2]["Retry-After"]) > 0
    assert answers[2].json()["error"]["code"] == "throttled"


@pytest.mark.parametrize("method", ["get", "post", "put", "delete"])
def test_an_unknown_address_is_404_in_json(api: APIClient, method: str) -> None:
    answer = getattr(api, method)("/api/nothing/here/")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")


def test_a_forgotten_slash_is_named_and_not_redirected(api: APIClient, body: Body) -> None:
    answer = api.post("/api/jobs", body(), format="json")
    assert answer.status_code == 404
    assert "/api/jobs/ with the slash" in answer.json()["error"]["message"]
    assert not Job.objects.exists()


def test_a_method_that_is_not_offered_is_405(api: APIClient) -> None:
    answer = api.delete("/api/jobs/")
    assert (answer.status_code, answer.json()["error"]["code"]) == (405, "method_not_allowed")


def test_bounds_are_written_as_people_read_them(api: APIClient, body: Body) -> None:
    refused = api.post("/api/jobs/", body(params={"seed": -1}), format="json").json()["error"]["fields"]
    assert refused == {"params.seed": "must be between 0 and 2,147,483,647"}


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ("[]", "body: must be a JSON object"),
        (b'{"model": "\xe9"}', "The body is not UTF-8 (byte 12)."),
        ('{"name": "\\ud800"}', "half a surrogate pair"),
        ('{"retries": ' + "9" * 5000 + "}", "holds a number of thousands of digits"),
        ('{"model": "x", "training_file": "x", "goal": "best"}',
         "goal: must be one of balanced, fastest, cheapest, deadline, budget"),
    ],
)  # fmt: skip
def test_the_message_says_what_to_send_instead(api: APIClient, raw: str | bytes, message: str) -> None:
    assert message in post(api, raw).json()["error"]["message"]


def test_a_filter_names_its_choices(api: APIClient) -> None:
    refused = api.get("/api/jobs/?state=odd").json()["error"]["fields"]
    assert refused["state"].startswith("must be one of queued, running")


def test_part_of_a_name_is_enough_to_be_told_the_whole_one(api: APIClient, body: Body) -> None:
    refused = api.post("/api/jobs/", body(params={"gpu_model": "H100"}), format="json").json()
    assert "H100-SXM5-80GB" in refused["error"]["fields"]["params.gpu_model"]
    refused = api.post("/api/jobs/", body(model="mistral"), format="json").json()
    assert "mistralai/Mistral-7B" in refused["error"]["fields"]["model"]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("https://huggingface.co/meta-llama/Llama-3.1-8B", "give the hub id alone"),
        ("BUILTIN/Tiny-Llama", "builtin are builtin/tiny-llama, builtin/tiny-qwen"),
        ("builtin/large", "There is no model builtin/large"),
        ("../../etc/passwd", "an absolute directory"),
        ("random//etc", "an absolute directory"),
        ("my model", "a hub id"),
        ("meta-llama/Llama-3.1-8B/resolve", "too many parts"),
        ("random/meta-llama/Llama-3.1-8B/x", "too many parts"),
    ],
)
def test_a_model_that_no_node_could_load_is_refused_at_once(
    api: APIClient, body: Body, model: str, message: str
) -> None:
    for address in ("/api/jobs/", "/api/recommendations/"):
        refused = api.post(address, body(model=model), format="json")
        assert refused.status_code == 400
        assert message in refused.json()["error"]["fields"]["model"]
    assert not Job.objects.exists()


def test_whether_a_path_exists_is_nobodys_to_learn(
    api: APIClient, body: Body, settings: Any, tmp_path: Path
) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "link").symlink_to("/etc")
    settings.MODEL_ROOTS = [tmp_path / "models"]
    answers = set()
    for model in ("/etc", "/etc/passwd", "/nowhere", f"{tmp_path}/models/..", f"{tmp_path}/models/link/ssl"):
        for address in ("/api/jobs/", "/api/recommendations/", "/api/recommendations/check/"):
            answer = api.post(address, body(model=model), format="json")
            answers.add((answer.status_code, answer.json()["error"]["fields"]["model"]))
    assert len(answers) == 1
    assert not Job.objects.exists()


NO_4_BITS = "cannot be stored in 4 bits; choose the tuning lora"
NO_POSITION = "gpt2 has 1,024 positions: choose at most 1024 tokens per sample."


@pytest.mark.parametrize(
    ("model", "params", "field", "why"),
    [
        ("mistralai/Mixtral-8x7B-v0.1", {"tuning": "qlora"}, "params.tuning", NO_4_BITS),
        ("mixtral-8x7b", {"quantization": "bnb-4bit"}, "params.quantization", NO_4_BITS),
        ("tiiuae/falcon-7b", {"tuning": "qlora"}, "params.tuning", NO_4_BITS),
        ("openai-community/gpt2", {"tokens_per_sample": 1025}, "params.tokens_per_sample", NO_POSITION),
    ],
)
def test_what_a_model_cannot_do_is_refused_at_once(
    api: APIClient, body: Body, model: str, params: dict[str, object], field: str, why: str
) -> None:
    for address in ("/api/jobs/", "/api/recommendations/", "/api/recommendations/check/"):
        refused = api.post(address, body(model=model, params=params), format="json")
        assert refused.status_code == 400
        assert why in refused.json()["error"]["fields"][field]
    assert not Job.objects.exists()


def test_one_answer_names_every_wrong_field(api: APIClient) -> None:
    body = {"model": 7, "training_file": "f", "retries": "many", "goal": "dearest", "colour": "red"}
    fields = api.post("/api/jobs/", body, format="json").json()["error"]["fields"]
    assert set(fields) == {"model", "training_file", "retries", "goal", "colour"}
    body = {"model": "builtin/tiny-llama", "training_file": "f", "validation_file": "g", "team": "none"}
    body |= {"reading": "x", "after": [{"job": "ftjob-none"}]}
    fields = api.post("/api/jobs/", body, format="json").json()["error"]["fields"]
    assert set(fields) == {"training_file", "validation_file", "team", "reading", "after.0.job"}
