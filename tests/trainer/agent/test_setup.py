"""Starting an agent.

Addresses, tokens, the folder, the machine's hardware and the user that trainings run as are
tested.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from tests.trainer.agent.conftest import ROOT, StartAgent
from tests.trainer.agent.fakes.fake_portal import ONE_SLOT, FakePortal, until
from trainer.agent.__main__ import build
from trainer.agent.errors import SetupError
from trainer.agent.executors.base import ExecutorOptions, Launch
from trainer.agent.executors.process import ProcessExecutor
from trainer.agent.node import discovery
from trainer.agent.node.discovery import cpu_slots, discover
from trainer.agent.node.environment import training_environment
from trainer.agent.node.user import RunAs, training_user
from trainer.agent.portal_api.client import Portal
from trainer.agent.portal_url import check_url
from trainer.agent.settings import Settings, read_settings
from trainer.agent.storage.folder import (
    CHECKPOINTS,
    KEEP_CHECKPOINTS_S,
    TOKENS,
    NodeFolder,
    open_inside,
    write_json,
)
from trainer.protocol import to_json
from trainer.protocol_parsing import parse_facts


@pytest.mark.parametrize(
    "url",
    ["http://portal.example.org", "http://10.0.0.1:8000", "ftp://x", "portal", "", "https://", "http://[::1",
     "https://user:secret@portal.example.org"],
)  # fmt: skip
def test_an_address_that_would_leak_the_token_is_refused(url: str) -> None:
    with pytest.raises(SetupError, match="--portal"):
        check_url(url)


@pytest.mark.parametrize(
    "url", ["https://portal.example.org/", "http://127.0.0.1:8000", "http://localhost", "http://[::1]:80"]
)
def test_https_and_this_machine_are_accepted(url: str) -> None:
    assert check_url(url) == url.rstrip("/")


def test_a_missing_certificate_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="--ca"):
        Portal("https://portal.example.org", tmp_path / "none.pem")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--slots", "0"], "--slots"),
        (["--join", "a", "--join-file", "b"], "--join-file"),
        (["--join-file", "/nowhere/at/all"], "--join-file"),
        (["--name", "x" * 101], "--name"),
        (["--models-limit", "50"], "--online"),
        (["--model-roots", "models"], "absolute"),
        (["--model-roots", "/srv/models", "/"], "--dir"),
        (["--dir", "/srv/node", "--model-roots", "/srv/node/runs"], "--dir"),
    ],
)
def test_a_wrong_option_is_named(options: list[str], named: str) -> None:
    with pytest.raises(SetupError, match=named):
        read_settings(["--portal", "http://127.0.0.1:1", *options])


def test_the_join_token_need_not_stand_in_the_process_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("secret\n")
    given = ["--portal", "http://127.0.0.1:1"]
    assert read_settings([*given, "--join-file", str(tmp_path / "token")]).join_token == "secret"
    monkeypatch.setenv("FORETUNE_JOIN_TOKEN", "other")
    assert read_settings(given).join_token == "other"
    assert "FORETUNE_JOIN_TOKEN" not in os.environ


@pytest.mark.parametrize(
    ("options", "said"),
    [(["--portal", "http://portal.example.org"], "https"), (["--join", "wrong"], "enrol"), ([], "--join")],
)
def test_the_command_says_what_is_wrong_and_exits_2(
    portal: FakePortal, node_dir: Path, options: list[str], said: str
) -> None:
    where = [] if "--portal" in options else ["--portal", portal.url]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "trainer.agent",
            *where,
            "--dir",
            node_dir,
            "--slots=1",
            "--user=nobody,root",
            "--no-speed-test",
            *options,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_belongs_to_one_agent(tmp_path: Path) -> None:
    first, second = NodeFolder(tmp_path), NodeFolder(tmp_path)
    first.lock()
    with pytest.raises(SetupError, match="--dir"):
        second.lock()
    first.unlock()
    second.lock()
    second.unlock()


def test_a_link_or_a_way_out_is_not_read_for_a_training(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "secret").write_text("canary")
    (tmp_path / "run" / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "run" / "folder").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "run" / "pipe")
    for name in ("link", "../secret", "folder/secret", "pipe", "none"):
        with pytest.raises(OSError):
            open_inside(tmp_path / "run", name)


def test_writing_replaces_a_link_and_leaves_what_it_points_to(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "process.json").symlink_to(tmp_path / "precious")
    write_json(tmp_path / "process.json", {"pid": 1})
    assert (tmp_path / "precious").read_text() == "mine"


def test_forgotten_checkpoints_stay_for_a_day_or_as_long_as_they_are_needed(tmp_path: Path) -> None:
    folder = NodeFolder(tmp_path)
    folder.prepare()
    old = time.time() - KEEP_CHECKPOINTS_S - 60
    for name in ("old", "needed", "fresh"):
        (folder.runs / name / "checkpoints").mkdir(parents=True)
        folder.forget(name, keep={CHECKPOINTS})
    for name in ("old", "needed"):
        os.utime(folder.runs / name, (old, old))
    folder.sweep(["needed"])
    assert sorted(path.name for path in folder.runs.iterdir()) == ["fresh", "needed"]


def test_of_a_forgotten_run_only_whole_checkpoints_stay(tmp_path: Path) -> None:
    folder = NodeFolder(tmp_path)
    folder.prepare()
    for name in ("checkpoints/step-5", "checkpoints/.writing-9", "base", "tmp", "inputs/resume", "output"):
        (folder.runs / "c1" / name).mkdir(parents=True)
    folder.forget("c1", keep={CHECKPOINTS})
    assert [path.name for path in (folder.runs / "c1").iterdir()] == ["checkpoints"]
    assert [path.name for path in (folder.runs / "c1" / "checkpoints").iterdir()] == ["step-5"]


def test_tokens_stay_for_another_attempt_and_nothing_stays_where_there_are_none(tmp_path: Path) -> None:
    folder = NodeFolder(tmp_path)
    folder.prepare()
    for name in ("c1/tokens", "c1/inputs", "c2/inputs"):
        (folder.runs / name).mkdir(parents=True)
    for name in ("c1", "c2"):
        folder.forget(name, keep={TOKENS})
    assert [path.relative_to(folder.runs).as_posix() for path in folder.runs.rglob("*")] == [
        "c1",
        "c1/tokens",
    ]


def test_facts_are_what_the_portal_understands(node_dir: Path) -> None:
    folder = NodeFolder(node_dir)
    folder.prepare()
    facts = discover(folder)
    assert parse_facts(to_json(facts)) == facts
    assert facts.memory_bytes > 2**28
    assert facts.software["python"]
    if facts.gpus[0].model == "cpu":
        assert len(facts.gpus) == max(1, facts.cores - 1)


def test_kernels_of_hybrids_are_among_the_facts_where_they_are_installed(
    node_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = NodeFolder(node_dir)
    folder.prepare()
    version = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: "2.3.0" if name == "mamba-ssm" else version(name))
    software = discover(folder).software
    assert software["mamba-ssm"] == "2.3.0"
    assert "flash-linear-attention" not in software


def test_slots_share_the_memory(node_dir: Path) -> None:
    slots = cpu_slots(4, 8 * 2**30, NodeFolder(node_dir))
    assert [(slot.index, slot.model, slot.memory_bytes) for slot in slots] == [
        (index, "cpu", 2 * 2**30) for index in range(4)
    ]


def test_a_speed_that_cannot_be_measured_is_logged_with_its_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = NodeFolder(tmp_path / "node")
    folder.prepare()
    monkeypatch.setattr(discovery, "IMPORT_FOLDER", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert cpu_slots(1, 2**30, folder)[0].peak_flops is None
    assert "No module named 'trainer" in caplog.records[-1].__dict__["error"]


def test_an_online_training_gets_a_proxy_but_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://me:secret@proxy:3128")
    monkeypatch.setenv("HTTP_PROXY", "http://proxy:3128")
    found = training_environment(
        run=Path("/run"), models=Path("/models"), gpus=("GPU-1", "GPU-3"), threads=4, offline=False
    )
    assert "HTTPS_PROXY" not in found
    assert found["HTTP_PROXY"] == "http://proxy:3128"
    assert (found["CUDA_VISIBLE_DEVICES"], found["OMP_NUM_THREADS"], found["HF_HUB_OFFLINE"]) == (
        "GPU-1,GPU-3",
        "4",
        "0",
    )


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users can pass through, which pytest's own are not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o711)
        yield Path(name)


def test_an_agent_that_is_root_starts_trainings_as_somebody_else(open_folder: Path) -> None:
    run = open_folder / "run"
    run.mkdir()
    root = os.geteuid() == 0  # anybody else can start processes as themselves only
    uid = 65534 if root else os.geteuid()
    user = RunAs(name="nobody", uid=uid, gid=uid) if root else None
    executor = ProcessExecutor(ExecutorOptions(folder=NodeFolder(open_folder), user=user))
    command = ["/bin/sh", "-c", "id -u; touch mine"]
    environment = {"PATH": os.defpath}
    launch = Launch(claim="c", command=command, run=run, environment=environment, resources=ONE_SLOT)
    handle = executor.submit(launch, executor.begin("c"))
    ended = until(lambda: executor.poll(handle))
    assert ended.code == 0
    assert (run / "log.txt").read_text() == f"{uid}\n"
    assert (run / "mine").stat().st_uid == uid


def test_trainings_run_as_root_only_where_somebody_said_so(tmp_path: Path) -> None:
    folder = NodeFolder(tmp_path / "closed" / "node")
    folder.prepare()
    (tmp_path / "closed").chmod(0o700)
    assert training_user("nobody,root", folder) is None
    assert training_user("root", folder) is None
    if os.geteuid() != 0:
        return  # nobody else can start processes as root
    with pytest.raises(SetupError, match="say --user root"):
        training_user("nobody", folder)
    with pytest.raises(SetupError, match="--user"):
        training_user("no-such-user,root", folder)


def test_an_agent_on_a_copy_of_a_nodes_folder_does_not_start(
    portal: FakePortal, node_dir: Path, start_agent: StartAgent, tmp_path: Path
) -> None:
    start_agent()
    until(lambda: portal.boot_ids)
    copy = tmp_path / "copy"
    shutil.copytree(node_dir, copy)
    heard = set(portal.boot_ids)
    with pytest.raises(SetupError, match=f"is a copy of {node_dir}"):
        build(Settings(portal=portal.url, dir=copy, user="nobody,root", slots=2))
    assert set(portal.boot_ids) == heard


def test_a_folder_that_was_moved_or_put_back_is_still_the_nodes(tmp_path: Path) -> None:
    first = tmp_path / "first"
    NodeFolder(first).prepare()
    NodeFolder(first).refuse_a_copy()
    moved = first.rename(tmp_path / "moved")
    NodeFolder(moved).refuse_a_copy()
    shutil.copytree(moved, tmp_path / "backup")
    with pytest.raises(SetupError, match=r"delete .*place\.json"):
        NodeFolder(tmp_path / "backup").refuse_a_copy()
    shutil.rmtree(moved)
    put_back = (tmp_path / "backup").rename(moved)
    NodeFolder(put_back).refuse_a_copy()
    NodeFolder(put_back).refuse_a_copy()
