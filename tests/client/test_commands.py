"""The commands as people and programs meet them: text, exit codes, JSON."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import click
import httpx2
import pytest
from django.test import Client as Browser
from drf_spectacular.generators import SchemaGenerator
from openapi_schema_validator import OAS30Validator, OAS31Validator
from pytest_django.live_server_helper import LiveServer

from client.foretune import Client, PlanOutdated, _settings
from client.foretune._tables import plain, table
from client.foretune.cli import PLACES, foretune, main
from client.foretune.cli.base import Session, pairs
from client.foretune.cli.errors import exit_code_of
from portal.accounts.models import DeviceGrant, Scope
from portal.accounts.services import create_token
from portal.clock import database_now
from tests.client.answers import client, error, instead_of_sleep, job
from tests.harness import world

GOLDEN = Path(__file__).parent / "golden"
WIDTHS = (80, 200)


class Said:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


Call = Callable[..., Said]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Call:
    """Run a command in this process, in a folder of its own, with nobody at a terminal."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("FORETUNE_URL", "FORETUNE_TOKEN", "FORETUNE_PROFILE", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)

    def called(*arguments: str, typed: str = "") -> Said:
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        code = main(arguments)
        said = capsys.readouterr()
        return Said(code, said.out, said.err)

    return called


def told(text: str, name: str) -> None:
    """Compare with the golden text; GOLDEN=write writes it."""
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("GOLDEN") == "write":
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    assert text == file.read_text(), f"GOLDEN=write renews {file.name}"


def all_commands() -> Iterator[list[str]]:
    for name in PLACES:
        command = foretune.get_command(click.Context(foretune), name)
        yield [name]
        if isinstance(command, click.Group):
            yield from ([name, one] for one in command.commands)


@pytest.mark.parametrize("width", WIDTHS)
def test_help_of_every_command(call: Call, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    texts = []
    for words in [[], *all_commands()]:
        said = call(*words, "--help")
        assert (said.code, said.err) == (0, "")
        assert max(map(len, said.out.splitlines())) <= width
        texts.append(f"$ foretune {' '.join([*words, '--help'])}\n{said.out}")
    told("\n".join(texts), f"help-{width}")


INTERVAL = {"value": 3725.0, "low": 3000.0, "high": 5000.0}
PROMISE = {
    "duration_s": INTERVAL,
    "tokens_per_second": {**INTERVAL, "low": None},
    "cost": {**INTERVAL, "value": None},
    "peak_memory_bytes": {"value": 2.5e10, "low": 2.0e10, "high": 3.0e10},
    "p_valid": 0.9,
    "startup_s": 12.0,
    "steps": 100,
    "source": "model",
    "outside": False,
}
CHOICES = {
    "learning_rate": {"value": 0.0002, "by": "user", "reason": "You set this value."},
    "tuning": {"value": "lora", "by": "default", "reason": "An adapter learns well with a fraction. " * 4},
    "epochs": {"value": None, "by": "default", "reason": "max_steps is set."},
}
RUNNING = job(
    id="ftjob-01a22546746e21bc946f9b71",
    name="naïve \x1b[31mred",
    state="running",
    progress={
        "step": 12,
        "total_steps": 100,
        "loss": 1.23456,
        "tokens_per_second": 4321.0,
        "eta_s": 60.0,
        "silent_since": None,
        "end": {
            "at": "2027-01-01T11:00:00Z",
            "earliest": "2027-01-01T10:55:00Z",
            "latest": "2027-01-01T11:10:00Z",
        },
    },
    params=CHOICES,
    promise=PROMISE,
)
ENDED = job(
    id="ftjob-01a22546746e21bc946f9b72",
    state="succeeded",
    ended_at="2027-01-01T11:00:00Z",
    progress={**RUNNING["progress"], "step": 100, "end": None},
    first_loss=4.2,
    comparison=[
        {"name": "duration_s", **INTERVAL, "actual": 6000.0, "inside": False},
        {"name": "cost", "value": None, "low": None, "high": None, "actual": 1.5, "inside": None},
    ],
)
BUSY = {"code": "busy", "text": "All GPUs are taken. " * 6}
WAITING = job(
    id="ftjob-01a22546746e21bc946f9b73",
    state="queued",
    wait={"code": "busy", "text": "All GPUs are taken. " * 6},
)
PLAN = {
    "plan": "p" * 40,
    "params": CHOICES,
    "trade": "",
    "currency": "EUR",
    "options": [
        {**PROMISE, "config": {"gpu_model": "NVIDIA L4", "number_gpus": 2, "number_nodes": 1}, "step_s": 1.0}
    ],
    "notes": ["Predicted from physics alone."],
}
EXPECTED = {"start_at": "2027-01-01T10:10:00Z", "start_low": "2027-01-01T10:05:00Z", "start_high": None}
STEP = {"id": 1, "step": 1, "loss": 2.0, "eval_loss": None}
FILE = {
    "id": "file-1",
    "filename": "rows.jsonl",
    "bytes": 20_000,
    "rows": 400,
    "format": "chat",
    "sha256": "0" * 64,
    "created_at": "2027-01-01T09:00:00Z",
}
NODE = {
    "id": "node-1",
    "name": "alpha",
    "state": "ready",
    "free_gpus": 1,
    "price_per_gpu_hour": 2.5,
    "reason": "",
    "hostname": "alpha.example",
    "cores": 8,
    "memory_bytes": 2**34,
    "last_seen_at": "2027-01-01T10:00:00Z",
    "gpus": [{"index": 0, "model": "NVIDIA L4", "busy": False}],
}


def canned(request: httpx2.Request) -> httpx2.Response:
    """A portal with three jobs, a file and a node."""
    path = request.url.path.removeprefix("/api/")
    page: dict[str, Any] = {"has_more": False, "next": None}
    answers: dict[str, Any] = {
        "jobs/": {"data": [RUNNING, ENDED, WAITING], **page},
        "jobs/ftjob-01a22546746e21bc946f9b71/": RUNNING,
        "jobs/ftjob-01a22546746e21bc946f9b72/": ENDED,
        "jobs/ftjob-01a22546746e21bc946f9b73/": WAITING,
        "jobs/ftjob-01a22546746e21bc946f9b73/decisions/": {"data": []},
        "jobs/ftjob-01a22546746e21bc946f9b73/failure/": {"failure": None},
        "jobs/ftjob-01a22546746e21bc946f9b71/metrics/": {
            "data": [{"id": 1, "step": 1, "loss": 2.0, "eval_loss": None}],
            **page,
        },
        "files/": {"data": [FILE], **page},
        "files/file-1/": FILE,
        "nodes/": {"data": [NODE], **page},
        "recommendations/": PLAN,
        "recommendations/start/": {"stage": "computing", "address": "/api/recommendations/start/q-1/"},
        "recommendations/start/q-1/": {"stage": "answered", "expected": EXPECTED},
    }
    if path not in answers:
        return error(404, "not_found")
    return httpx2.Response(200, json=answers[path])


@pytest.fixture
def _canned(monkeypatch: pytest.MonkeyPatch) -> None:
    instead_of_sleep(monkeypatch, lambda _: None)
    monkeypatch.setattr(Session, "client", property(lambda _: client(canned)))


SHOWN = (
    ("ls",),
    ("queue",),
    ("show", "ftjob-01a22546746e21bc946f9b71"),
    ("show", "ftjob-01a22546746e21bc946f9b72"),
    ("why", "ftjob-01a22546746e21bc946f9b73"),
    ("metrics", "ftjob-01a22546746e21bc946f9b71"),
    ("diff", "ftjob-01a22546746e21bc946f9b71", "ftjob-01a22546746e21bc946f9b72"),
    ("files", "ls"),
    ("files", "show", "file-1"),
    ("nodes", "ls"),
    ("nodes", "show", "alpha"),
    ("recommend", "-m", "builtin/tiny-llama", "-d", "file-1"),
)


@pytest.mark.usefixtures("_canned")
@pytest.mark.parametrize("width", WIDTHS)
def test_main_outputs(call: Call, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    texts = []
    for words in SHOWN:
        said = call(*words)
        assert said.code == 0, said.err
        texts.append(f"$ foretune {' '.join(words)}\n{said.out}")
    told("\n".join(texts), f"output-{width}")


def test_no_text_of_others_moves_a_terminals_cursor() -> None:
    moved = "a\x1b[2Jb\r\u202ec\n"
    for shown in (table([[moved]], ["name"]), pairs([("name", moved)]), plain(moved, lines=True)):
        assert not any(character in shown for character in "\x1b\r\u202e")
    assert plain(moved, lines=True).endswith("\n")


def test_a_secret_whose_answer_was_lost_is_said_to_be_so(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repeated request tells no secret again."""
    lost = httpx2.Response(201, json={"id": "tok-7", "token": None, "password": None, "join_token": None})
    monkeypatch.setattr(Session, "client", property(lambda _: client(lambda _: lost)))
    for words, remedy in (
        (("tokens", "make", "ci"), "tokens rotate tok-7"),
        (("users", "make", "bo"), "users password bo"),
        (("nodes", "join"), "ask once more"),
    ):
        said = call(*words)
        assert (said.code, said.out, remedy in said.err) == (5, "", True)


def test_a_client_that_is_too_old_says_how_to_get_the_right_one(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    for least, warned in (("0.1", False), ("0.1.1", True), ("12", True)):
        portal = httpx2.Response(200, json={"version": "12.0.0", "minimum_client": least, "features": []})
        monkeypatch.setattr(Session, "client", property(lambda _, told=portal: client(lambda _: told)))
        said = call("version", "--portal")
        assert (said.code, "$(curl -fsS http://portal/client/)" in said.err) == (0, warned)


@pytest.mark.usefixtures("_canned")
def test_json_is_what_the_portal_told(call: Call) -> None:
    for words, answer in (
        (("show", "ftjob-01a22546746e21bc946f9b71"), RUNNING),
        (("files", "show", "file-1"), FILE),
        (("nodes", "show", "alpha"), NODE),
        (("recommend", "-m", "m", "-d", "file-1"), PLAN),
        (("ls",), {"data": [RUNNING, ENDED, WAITING]}),
    ):
        said = call(*words, "--json")
        assert (said.code, json.loads(said.out)) == (0, answer)
    assert json.loads(call("show", "ftjob-none", "--json").err)["error"]["code"] == "not_found"


# What a portal answers to everything, and the exit code of `foretune show JOB`.
ANSWERS = (
    (error(400, "invalid"), 2),
    (error(401, "not_authenticated"), 3),
    (error(403, "permission_denied"), 3),
    (error(404, "not_found"), 4),
    (error(409, "illegal_state"), 6),
    (error(409, "plan_outdated"), 6),
    (error(412, "changed_meanwhile"), 6),
    (error(413, "too_large"), 2),
    (error(422, "key_reused"), 2),
    (error(429, "throttled"), 5),
    (error(500, "internal_error"), 5),
    (error(503, "unavailable"), 5),
    (httpx2.ConnectError("refused"), 5),
    (httpx2.ReadTimeout("slow"), 5),
)


@pytest.mark.parametrize(("answer", "code"), ANSWERS)
def test_exit_codes_by_answer(call: Call, answer: Any, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    instead_of_sleep(monkeypatch, lambda _: None)
    monkeypatch.setattr(Session, "client", property(lambda _: client(lambda _: answer)))
    said = call("show", "ftjob-01a22546746e21bc946f9b71")
    assert (said.code, said.out) == (code, "")
    assert said.err.startswith("foretune: ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("lss",), "did you mean 'ls'"),
        (("run", "-m", "m", "-d", "rows.jsonl"), "Nobody can be asked here"),
        (("run", "-y"), "Name a model"),
        (("run", "-y", "-m", "m"), "Name the training data"),
        (("run", "-y", "-m", "m", "-d", "nowhere.jsonl"), "foretune: nowhere.jsonl: No such file"),
        (("run", "-y", "-m", "m", "-d", "rows.jsonl", "--set", "epochs"), "NAME=VALUE"),
        (("run", "-y", "--fail-on", "accuracy<1"), "outside-promise"),
        (("run", "-y", "wrong.yaml"), "wrong.yaml:2: modle: is not known; did you mean model?"),
        (("run", "-y", "nowhere.yaml"), "does not exist"),
        (("logs", "ftjob-01a22546746e21bc946f9b71", "-f", "--tail", "3"), "do not go together"),
        (("ls", "--state", "done"), "'done' is not one of"),
        (("api", "GET", "jobs/", "-q", "limit"), "NAME=VALUE"),
        (("api", "POST", "jobs/", "-d", "{"), "not valid JSON"),
        (("login",), "Name the portal"),
        (("login", "http://portal", "--token", "ft-x"), "stdin"),
        (("files", "check", "wrong.jsonl"), ""),
    ],
)
@pytest.mark.usefixtures("_canned")
def test_wrong_usage_is_2_before_anything_is_sent(call: Call, words: tuple[str, ...], said: str) -> None:
    Path("wrong.yaml").write_text("model: m\nmodle: m\n")
    Path("wrong.jsonl").write_text('{"text": "a"}\n{"text": \n[1]\n')
    Path("rows.jsonl").write_text('{"text": "a"}\n')
    found = call(*words)
    assert found.code == 2
    assert said in found.err


def test_no_portal_or_no_token_is_3(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    assert call("ls").code == 3
    monkeypatch.setenv("FORETUNE_URL", "http://portal")
    said = call("ls")
    assert (said.code, "foretune login" in said.err) == (3, True)
    assert call("ls", "--profile", "work").code == 3


def watched(*answers: Any) -> Callable[[httpx2.Request], Any]:
    """A portal where a job goes through these states, and stays in the last one."""
    left = list(answers)

    def answer(request: httpx2.Request) -> Any:
        path = request.url.path.removeprefix("/api/jobs/ftjob-01a22546746e21bc946f9b72/")
        if path == "failure/":
            found = {"cause": "gpu-memory", "sentence": "", "remedy": "Take less.", "changes": {}}
            return httpx2.Response(200, json={"failure": found})
        if path == "logs/":
            text = "the last line\n" if request.url.params.get("offset") == "0" else ""
            return httpx2.Response(200, json={"text": text, "next_offset": 14})
        found = left[0] if len(left) == 1 else left.pop(0)
        return found if isinstance(found, BaseException) else httpx2.Response(200, json=found)

    return answer


FAILED = {**ENDED, "state": "failed", "error": {"message": "Out of memory.", "failure_class": "", "code": ""}}


@pytest.mark.parametrize(
    ("options", "answers", "code", "said"),
    [
        ((), (WAITING, RUNNING, ENDED), 0, "loss 4.2 -> 1.235"),
        ((), (RUNNING, httpx2.ConnectError("refused"), RUNNING, ENDED), 0, "waiting for it"),
        (("--fail-on", "loss>2"), (ENDED,), 0, ""),
        (("--fail-on", "loss>1"), (ENDED,), 7, "above 1"),
        (("--fail-on", "outside-promise"), (ENDED,), 7, "duration_s"),
        (("--timeout", "0"), (RUNNING,), 124, "goes on"),
        ((), (RUNNING, FAILED), 1, "Out of memory. Take less."),
        ((), (RUNNING, KeyboardInterrupt(), RUNNING), 130, "comes back to it"),
        ((), (RUNNING, {**ENDED, "state": "cancelled"}), 1, "cancelled"),
    ],
)
def test_exit_codes_of_watching(
    call: Call, options: Any, answers: Any, code: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    instead_of_sleep(monkeypatch, lambda _: None)

    def answered(request: httpx2.Request) -> Any:
        found = states(request)
        if isinstance(found, KeyboardInterrupt):
            raise found
        return found

    states = watched(answers[0], *answers)  # the first finds the job by its id
    portal = client(answered, tries=1)
    monkeypatch.setattr(Session, "client", property(lambda _: portal))
    found = call("watch", "ftjob-01a22546746e21bc946f9b72", *options)
    assert found.code == code, found.err
    assert said in found.out + found.err
    if code == 1:
        assert "the last line" in found.err
    assert "[running]" not in found.out, "progress goes to stderr"


def test_a_matrix_is_an_array_and_complaints_of_the_portal_name_lines(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> Any:
        asked.append(request)
        if request.url.path == "/api/recommendations/":
            wrong = json.loads(request.content)["params"].get("epochs") == 0
            return error(400, "invalid") if wrong else httpx2.Response(200, json=PLAN)
        return httpx2.Response(201, json={"id": "array-1", "jobs": [RUNNING, ENDED]})

    monkeypatch.setattr(Session, "client", property(lambda _: client(answer)))
    text = "model: m\ntraining_file: file-1\nparams:\n  epochs: 2\nmatrix:\n  seed: [1, 2]\nlimit: 1\n"
    Path("job.yaml").write_text(text)
    said = call("run", "--yes")
    assert (said.code, said.out) == (0, "array-1 with 2 jobs\n")
    sent = json.loads(asked[-1].content)
    assert (sent["values"], sent["limit"], sent["params"]) == ([{"seed": 1}, {"seed": 2}], 1, {"epochs": 2})
    assert asked[-1].headers["Idempotency-Key"]
    Path("job.yaml").write_text(text.replace("epochs: 2", "epochs: 0"))
    said = call("run", "--yes")
    assert (said.code, said.err) == (2, "foretune: job.yaml:4: params.epochs: too many\n")
    assert asked[-1].url.path == "/api/recommendations/", "nothing was submitted"


@pytest.mark.one_database
@pytest.mark.django_db(transaction=True)
class TestLive:
    """Against a real server."""

    @pytest.fixture
    def _signed_in(self, live_server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
        person = world.admin()
        _, token = create_token(owner=person, name="shell", scope=Scope.ADMIN, now=database_now())
        monkeypatch.setenv("FORETUNE_URL", live_server.url)
        monkeypatch.setenv("FORETUNE_TOKEN", token)

    def test_json_is_as_the_schema_says(self, call: Call, live_server: LiveServer, request: Any) -> None:
        request.getfixturevalue("_signed_in")
        Path("rows.jsonl").write_text('{"text": "a b c"}\n' * 20)
        uploaded = json.loads(call("files", "put", "rows.jsonl", "--json").out.replace("\n", ""))
        again = json.loads(call("files", "show", uploaded["id"], "--json").out)
        assert again == uploaded
        submitted = call("run", "-m", "builtin/tiny-llama", "-d", uploaded["id"], "--yes", "--json")
        made = json.loads(submitted.out)
        schema = SchemaGenerator().get_schema(public=True)
        for words, component in (
            (("files", "show", uploaded["id"]), "FileOut"),
            (("show", made["id"]), "JobOut"),
            (("recommend", "-m", "builtin/tiny-llama", "-d", uploaded["id"]), "RecommendationOut"),
            (("spending",), "SpendingOut"),
            (("cancel", made["id"]), "JobOut"),
        ):
            said = call(*words, "--json")
            assert said.code == 0, said.err
            answers_schema(schema, component, json.loads(said.out))
        for words in (("models",), ("gpus",)):
            said = call(*words, "--json")
            assert said.code == 0, said.err
            assert isinstance(json.loads(said.out)["data"], list)
            assert call(*words).code == 0
        for words in (("why", made["id"]), ("events", made["id"]), ("logs", made["id"]), ("status",)):
            said = call(*words)
            assert said.code == 0, said.err
        assert f"submitted  {made['created_at'][:10]}" in call("show", made["id"]).out
        assert call("cancel", made["id"]).code == 0, "what is cancelled already stays so"
        assert call("files", "rm", uploaded["id"]).code == 0
        assert call("files", "show", uploaded["id"]).code == 4

    def test_an_administrator_runs_people_and_nodes_from_a_shell(
        self, call: Call, request: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        request.getfixturevalue("_signed_in")
        world.fake_node(name="alpha")
        portal = Client()  # one for all commands: each would load certificates
        monkeypatch.setattr(Session, "client", property(lambda _: portal))

        def does(line: str, *, shows: str = "", code: int = 0) -> Said:
            said = call(*line.split())
            assert said.code == code, f"{line}: {said.err}"
            assert shows in said.out + said.err, line
            if code == 0 and not line.endswith("--json") and " ls" in line:
                assert isinstance(json.loads(call(*line.split(), "--json").out)["data"], list)
            return said

        does("teams make owls")
        assert len(does("users make bo --email bo@example.org").out) > 8, "a password"
        does("teams add owls bo --role lead", shows="lead  bo (user-")
        does("teams ls", shows="owls")
        does("users ls bo", shows="bo@example.org")
        does("users show bo", shows="max class")
        does("users password bo --keep-tokens", shows="only now")
        does("users deactivate bo", shows="--yes", code=2)
        does("users deactivate bo --yes", shows="bo is deactivated")
        does("users activate bo", shows="bo is active")
        does("accounts make ci --team owls", shows="--of ci")
        does("accounts ls", shows="owls")
        made = does("tokens make pipeline --of ci --days 3 --network 127.0.0.0/8")
        assert made.out.startswith("ft-")
        does("tokens rotate pipeline --of ci", shows="ft-")
        two = re.findall(r"tok-\d+", does("tokens end pipeline --of ci", code=2).err)
        does(f"tokens end {' '.join(two)} --of ci", shows="has ended")
        does("tokens end pipeline --of ci", shows="There is no pipeline", code=4)
        does("tokens ls --of ci", shows="pipeline")
        does("tokens make a --days 3 --no-end", code=2)
        does("tokens make mine --scope read", shows="scope read")
        does("tokens end mine")
        does("accounts end ci", code=2)
        does("accounts end ci -y")
        does("accounts activate ci", shows="ci is active")
        does("teams remove owls bo")
        does("teams remove owls bo", code=4)
        does("teams show owls", shows="owls (team-")
        does("teams rm owls", code=2)
        does("nodes price alpha 2.5", shows="2.5 per GPU hour")
        does("nodes drain alpha --reason fans --move-jobs")
        does("nodes resume alpha", shows="takes jobs again")
        begins, ends = (f"{database_now() + timedelta(days=days):%Y-%m-%dT%H:%M:%SZ}" for days in (1, 2))
        window = does(f"windows make alpha --begins {begins} --ends {ends}").out.strip()
        does("windows ls", shows=f"{ends[:10]} {ends[11:16]}")
        does(f"windows rm {window}", shows="is removed")
        does("spending --by node")

    def test_what_was_shown_is_submitted_or_nothing(self, live_server: LiveServer) -> None:
        person = world.user("ada")
        _, token = create_token(owner=person, name="notebook", scope=Scope.SUBMIT, now=database_now())
        node, file = world.fake_node(), world.data_file(person)
        with Client(live_server.url, token) as portal:
            plan = portal.recommend("builtin/tiny-llama", file.pk)
            assert portal.jobs.submit(plan).promise.cost == plan.options[0].cost
            world.price_node(node, 9.0)
            with pytest.raises(PlanOutdated, match="cost was 0 and would be") as refused:
                portal.jobs.submit(plan)
        assert exit_code_of(refused.value, as_json=True) == 6
        assert [one["name"] for one in refused.value.answer["difference"]] == ["cost"]

    def test_signing_in_by_a_browser_and_out_again(
        self, call: Call, live_server: LiveServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        browser = Browser()
        browser.force_login(world.user("ada"))

        def person_confirms(_: float) -> None:
            code = DeviceGrant.objects.values_list("user_code", flat=True).get()
            form = {"code": code, "answer": "confirm", "name": "laptop", "scope": "submit", "days": "30"}
            browser.post("/device/", form)

        instead_of_sleep(monkeypatch, person_confirms)
        said = call("login", live_server.url, "--profile", "work")
        assert said.code == 0, said.err
        assert "confirm the code" in said.err
        assert "ada" in said.err
        kept = _settings.access()
        assert kept.token.startswith("ft-")
        assert kept.token not in said.out + said.err
        assert "person   ada" in call("status").out
        assert json.loads(call("profile", "ls", "--json").out)["data"] == [
            {"name": "work", "url": live_server.url, "used": True}
        ]
        assert call("login", live_server.url, "--token", "-", typed=f"{kept.token}\n").code == 0
        assert call("profile", "use", "work").code == 0
        assert call("logout").code == 0
        assert call("logout", "--profile", "work").code == 4
        assert call("login", live_server.url, "--token", "-", typed="ft-wrong\n").code == 3


def answers_schema(schema: Any, component: str, answer: Any) -> None:
    """Raises ValidationError unless the answer is as the OpenAPI document says."""
    validator = OAS31Validator if schema["openapi"].startswith("3.1") else OAS30Validator
    validator({**schema, "$ref": f"#/components/schemas/{component}"}).validate(answer)
