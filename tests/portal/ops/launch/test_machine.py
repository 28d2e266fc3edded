from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from portal.ops.launch import broker, preflight
from portal.ops.launch.preflight import LaunchFailed
from portal.ops.launch.supervisor import Supervisor
from trainer.formats import check


def test_a_busy_port_is_named_with_the_option_that_helps() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(LaunchFailed, match=rf"Port {port} .*--port"):
            preflight.check_port("127.0.0.1", port)


def test_two_portals_never_share_a_data_folder(tmp_path: Path) -> None:
    held = preflight.own_folder(tmp_path / "data")
    with pytest.raises(LaunchFailed, match="--data"):
        preflight.own_folder(tmp_path / "data")
    os.close(held)
    os.close(preflight.own_folder(tmp_path / "data"))


def test_a_data_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LaunchFailed, match=str(tmp_path / "file" / "data")):
        preflight.own_folder(tmp_path / "file" / "data")


def test_trainings_that_outlived_their_agent_are_ended(tmp_path: Path) -> None:
    run = tmp_path / "runs" / "claim"
    training = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", str(run)])
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", "elsewhere"])
    preflight.end_leftovers(tmp_path)
    assert training.wait(timeout=60) == -9
    assert other.poll() is None
    other.kill()
    other.wait()


def test_messages_survive_a_broker_that_was_killed(tmp_path: Path) -> None:
    import redis

    server = broker.find_server()
    if server is None:
        pytest.skip("no Valkey or Redis here")
    folder, path = tmp_path / "b", broker.socket_in(tmp_path / "b")
    supervisor = Supervisor(env=os.environ, log_dir=tmp_path, say=print)
    supervisor.start(broker.process(server, folder, path))
    broker.wait_until_up(path)
    client = redis.Redis(unix_socket_path=str(path))
    client.config_set("appendfsync", "always")
    client.rpush("control", "look now")
    client.close()
    first = supervisor.children["broker"].popen
    first.kill()
    first.wait()
    while supervisor.children["broker"].popen is first:
        supervisor.tend()
    broker.wait_until_up(path)
    client = redis.Redis(unix_socket_path=str(path))
    assert client.lrange("control", 0, -1) == [b"look now"]
    client.close()
    supervisor.stop()


def test_a_socket_path_that_is_too_long_moves_to_a_temporary_folder(tmp_path: Path) -> None:
    long = tmp_path / ("x" * 100)
    path = broker.socket_in(long)
    assert len(str(path)) <= broker.SOCKET_PATH_LIMIT
    path.parent.rmdir()
    assert broker.socket_in(Path("/srv/broker")) == Path("/srv/broker/broker.sock")


def test_the_corpus_is_training_data_and_the_same_each_time(tmp_path: Path) -> None:
    made = [tmp_path / name for name in ("a.jsonl", "b.jsonl")]
    for path in made:
        subprocess.run([sys.executable, "-m", "portal.ops.launch.sample_data", str(path), "50"], check=True)
    assert made[0].read_bytes() == made[1].read_bytes()
    with made[0].open("rb") as lines:
        facts = check(lines)
    assert (facts.rows, facts.format) == (50, "prompt_completion")
    assert all(json.loads(line)["completion"] for line in made[0].read_text().splitlines())
