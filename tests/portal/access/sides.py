"""A portal of two teams that know nothing of each other.

All that belongs to one team alone is named after it.
"""

from __future__ import annotations

import io
import json
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.test import Client

from knowledge.catalogue.catalogue_entries import add_gpu, add_model
from knowledge.core.domain.types import Config
from knowledge.models import PredictorVersion
from knowledge.reading.manifest import ScriptManifest
from knowledge.script_readings.trees import read_upload
from knowledge.services import record_log
from portal.accounts.models import ApiToken, Membership, Role, Scope, Team, User
from portal.accounts.service_accounts import create_service_account
from portal.accounts.services import create_token, revoke_token
from portal.clock import database_now
from scheduler.models import (
    Attempt,
    Calibration,
    Claim,
    DatasetFile,
    Job,
    JobArray,
    JoinToken,
    MaintenanceWindow,
    Market,
    Node,
    Simulation,
    StartQuestion,
)
from scheduler.services.files.parts import begin_upload
from scheduler.services.files.uploads import store_file
from scheduler.services.jobs.verbs import submit_job
from scheduler.services.nodes.register import create_join_token
from tests.harness import world
from tests.harness.fake_node import FakeNode, result, step
from tests.knowledge.catalogue.test_additions import SHAPE
from tests.knowledge.conftest import TINY

SECRETS = {
    "SECRET_KEY": "canary-of-the-secret-key",
    "DATABASE_URL": "postgres://foretune:canary-of-the-address@nowhere/foretune",
    "database": "canary-of-the-database",
    "wrong password": "canary-of-a-wrong-password",
    "HF_TOKEN": "hf_canaryOfTheHubCanaryOfTheHub",
}
OUTPUT = "output/adapter.bin"


@dataclass
class Side:
    """One team, what is its own, and `words`: what nobody else may read anywhere."""

    name: str
    owner: User
    lead: User
    team: Team
    node: FakeNode
    job: Job
    claim: str
    file: DatasetFile
    words: list[str] = field(default_factory=list)


def side(name: str, roots: Path) -> Side:
    """Create a team with an ended job and a running one.

    The ended job trained a model in a folder; the running one fills the team's node.
    """
    owner, lead = (_person(f"{name}-{who}") for who in ("owner", "lead"))
    team = Team.objects.create(name=f"{name}-team")
    Membership.objects.create(team=team, user=owner)
    Membership.objects.create(team=team, user=lead, role=Role.LEAD)
    lines = io.BytesIO(world.training_lines().replace(b"What is", f"{name}-secret-row".encode()))
    file = store_file(owner=owner, stream=lines, filename=f"{name}-corpus.jsonl", now=database_now())
    given = {"owner": owner, "team": team, "training_file": file, "params": {"number_gpus": 2}}
    node = world.fake_node(name=f"node-{len(name)}", slots=2)
    ended = world.placed_job(node, name=f"{name}-ended", model=str(roots / f"{name}-model"), **given)
    node.end(node.take_up(), "succeeded", result())
    running = world.placed_job(node, name=f"{name}-running", **given)
    order = node.take_up()
    node.run(order, step(1), {"kind": "log", "body": {"text": f"{name}-log-line\n"}})
    node.save_checkpoint(order, 1)
    assert node.upload(order, OUTPUT, f"{name}-weights".encode()).status_code == 204
    made = Side(name, owner, lead, team, node, running, order.claim, file)
    attempts = Attempt.objects.filter(job__in=(ended, running)).values_list("pk", flat=True)
    claims = Claim.objects.filter(attempt__in=attempts).values_list("pk", flat=True)
    ids = (*attempts, *claims, ended.pk, running.pk, file.pk, file.sha256)
    made.words = [f"{name}-", *map(str, ids)]
    return made


def let_wait(of: Side, roots: Path) -> None:
    """Submit one more job, of a model in a folder, that finds no room.

    It is to be made when all nodes are full.
    """
    waiting = submit_job(
        owner=of.owner,
        team=of.team,
        training_file=of.file,
        model=str(roots / f"{of.name}-model"),
        name=f"{of.name}-waiting",
        now=database_now(),
    )
    of.words.append(waiting.pk)


def _person(name: str) -> User:
    return User.objects.create_user(name, f"{name}@mail.example", f"{name}-password")


@dataclass
class Askers:
    """Everyone who may send a request.

    tokens: by role, including those that are no longer valid

    sessions: of users

    secrets: texts that no answer may hold for anyone
    """

    admin: User
    tokens: dict[str, str]
    sessions: dict[str, str]
    secrets: list[str]


def askers(first: Side, second: Side) -> Askers:
    admin = User.objects.create_superuser("root", "root@mail.example", "root-password")
    gone = User.objects.create_user("gone", password="gone-password")
    Membership.objects.create(team=first.team, user=gone)
    people = {
        "member": first.owner, "lead": first.lead, "stranger": second.owner, "admin": admin, "gone": gone,
    }  # fmt: skip
    tokens = {
        role: _token(user, Scope.ADMIN if user == admin else Scope.WRITE) for role, user in people.items()
    }
    tokens["admin_write"] = _token(admin, Scope.WRITE)
    tokens |= {"read": _token(first.owner, Scope.READ), "revoked": _token(first.owner, Scope.WRITE)}
    revoke_token(token=ApiToken.objects.latest("pk"), actor=first.owner, now=database_now())
    wrong = {"username": admin.username, "password": SECRETS["wrong password"]}
    Client().post("/login/", wrong)  # who mistypes a password has often typed a right one
    sessions = {role: _session(user) for role, user in people.items()}
    User.objects.filter(pk=gone.pk).update(is_active=False)
    tokens |= {"node": first.node.token, "other": second.node.token}
    return Askers(admin, tokens, sessions, [*tokens.values(), *_planted(admin)])


def _planted(admin: User) -> list[str]:
    """A join token, all passwords, and what the database keeps of either."""
    return [
        create_join_token(actor=admin, now=database_now()),
        *ApiToken.objects.values_list("digest", flat=True),
        *JoinToken.objects.values_list("token_hash", flat=True),
        *Node.objects.values_list("token_hash", flat=True),
        *User.objects.values_list("password", flat=True),
        *(f"{user.username}-password" for user in User.objects.exclude(username__startswith="user")),
        *SECRETS.values(),
    ]


def _token(owner: User, scope: Scope) -> str:
    return create_token(owner=owner, name="program", now=database_now(), scope=scope)[1]


def _session(user: User) -> str:
    client = Client()
    client.force_login(user)
    return client.cookies[settings.SESSION_COOKIE_NAME].value


def _asked_for(first: Side, admin: User, now: datetime) -> tuple[Calibration, Simulation]:
    calibration = Calibration.objects.create(
        node_id=first.node.node_id,
        requested_by=admin,
        requested_at=now,
        until=now + timedelta(hours=1),
        plan=[asdict(TINY)],
        file=first.file,
    )
    simulation = Simulation.objects.create(
        requested_by=admin,
        requested_at=now,
        until=now,
        cluster="cpu:1x2",
        policies=["fifo"],
        knowledge="oracle",
    )
    return calibration, simulation


def places(first: Side, admin: User) -> dict[str, str]:
    """Values for the gaps of an address, always of the first side."""
    now = database_now()
    calibration, simulation = _asked_for(first, admin, now)
    version = PredictorVersion.objects.create(
        number=1, path="predictor-1.skops", sha256="0" * 64, rows=1, created_at=now
    )
    add_gpu(
        name="added-gpu", memory_gib=64, tflops=300, bandwidth_gb_s=2000, link="pcie4", now=now, actor=admin
    )
    add_model(name="added-model", text=json.dumps(SHAPE), now=now, actor=admin)
    window = MaintenanceWindow.objects.create(
        begins_at=now + timedelta(days=9), ends_at=now + timedelta(days=10), team=first.team, created_at=now
    )
    market = Market.objects.create(name="unused", gpu_model="cpu", on_demand_price=1.0, created_at=now)
    array = JobArray.objects.create(owner=first.owner, submitted_at=now)
    Job.objects.filter(pk=first.job.pk).update(array=array)
    script = ScriptManifest({"train.sh": f"train --dataset {first.name}-corpus\n"}, {})
    kept = read_upload(owner=first.owner, manifest=script, command="", now=now)
    question = StartQuestion.objects.create(owner=first.owner, request={}, asked_at=now)
    config = Config(
        model_name="llama3.1-8b", tuning="full", gpu_model="A100-SXM4-80GB", number_gpus=1,
        tokens_per_sample=512, per_device_batch_size=8,
    )  # fmt: skip
    account = create_service_account(
        username=f"{first.name}-robot", team=first.team, actor=first.lead, now=now
    )
    account_token, _ = create_token(owner=account, name="robot", now=now, scope=Scope.SUBMIT)
    run = record_log(config=config, tokens_per_second=900.0, keeper=first.owner, now=now)
    return {
        "job": first.job.pk,
        "array": array.pk,
        "file": first.file.pk,
        "user": str(first.owner.pk),
        "team": str(first.team.pk),
        "member": str(Membership.objects.get(team=first.team, user=first.owner).pk),
        "node": first.node.node_id,
        "claim": first.claim,
        "fence": str(first.job.fence),
        "token": str(ApiToken.objects.filter(owner=first.owner, revoked_at=None).earliest("pk").pk),
        "calibration": calibration.pk,
        "simulation": simulation.pk,
        "window": str(window.pk),
        "account": str(account.pk),
        "account_token": str(account_token.pk),
        "market": str(market.pk),
        "tree": str(kept.row.tree_id),
        "question": question.pk,
        "predictor": str(version.number),
        "predictor_row": str(version.pk),
        "execution": str(run.pk),
        "output": OUTPUT,
        "upload": begin_upload(owner=first.owner, filename="x", size=99, now=now).pk,
        "later": (now + timedelta(days=9)).isoformat().replace("+00:00", "Z"),
        "gpu": "added-gpu",
        "model": "added-model",
    }
